// One job, live: its state and all that follows from it, and its log.

import { connect } from "./live.js";
import { tail } from "./log.js";
import { refresh } from "./refresh.js";

const page = document.querySelector("[data-job-page]");
const uid = page.dataset.jobPage;
const FINAL = new Set(["succeeded", "failed", "cancelled", "timed_out"]);
const card = document.querySelector("[data-log]");
const log = card && tail(card);
let shown = page.dataset.state;

async function look(row) {
  if (!row) return;
  log?.pull();
  await refresh();
  if (row.state !== shown && FINAL.has(row.state)) await log?.finish();
  shown = row.state;
}

connect(`/ws/jobs/${uid}/`, {
  onSnapshot: (rows) => look(rows.get(uid) ?? rows.get(`job:${uid}`)),
  onDelta: ({ changed }) => look(changed.get(uid) ?? changed.get(`job:${uid}`)),
});
