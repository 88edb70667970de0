// Home: my jobs and the clusters' pulse, brought up to date when a job of mine changes.

import { connect } from "./live.js";
import { refresh } from "./refresh.js";

const shown = (changed) => [...changed.keys()].some((key) => document.querySelector(`[data-job-state="${CSS.escape(key.split(":").pop())}"]`));

connect("/ws/jobs/", {
  onSnapshot: (rows) => {
    const differs = [...rows].some(([key, row]) => {
      const badge = document.querySelector(`[data-job-state="${CSS.escape(key.split(":").pop())}"] [data-state]`);
      return badge && badge.dataset.state !== row.state;
    });
    if (differs) refresh();
  },
  onDelta: ({ changed }) => { if (shown(changed)) refresh(); },
});
