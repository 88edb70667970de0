// Keeps a page with job badges true: it is brought up to date when a job's state, or why it waits, changes.

import { connect } from "./live.js";
import { refresh } from "./refresh.js";

const gist = (row) => `${row.state} ${row.pending?.code ?? ""}`;

/** Watch the viewer's active jobs, or those of them that `concerns` picks. */
export function watchJobs(concerns = () => true) {
  let known = null; // uid -> gist; null until the first snapshot
  const take = (rows) => {
    const now = new Map([...rows].filter(([, row]) => concerns(row)).map(([uid, row]) => [uid, gist(row)]));
    const differs = known && (now.size !== known.size || [...now].some(([uid, text]) => known.get(uid) !== text));
    if (differs || (!known && behind(rows))) refresh();
    known = now;
  };
  return connect("/ws/jobs/", { onSnapshot: take, onDelta: (_delta, rows) => take(rows) });
}

/** Return whether a badge on the page is older than the rows. */
function behind(rows) {
  return [...rows].some(([uid, row]) => {
    const badge = document.querySelector(`[data-job-state="${CSS.escape(uid)}"] [data-state]`);
    return badge && badge.dataset.state !== row.state;
  });
}
