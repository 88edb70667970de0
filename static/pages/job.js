// One job, live: its state and all that follows from it, its log, and what it uses.

import { drawAll, extend } from "./charts.js";
import { connect } from "./live.js";
import { tail } from "./log.js";
import { refresh } from "./refresh.js";

const uid = document.querySelector("[data-job-page]").dataset.jobPage;
const card = document.querySelector("[data-log]");
const log = card && tail(card);
let shown = null; // the job row as last drawn, as text

function use(row) {
  const chart = document.getElementById("job-metrics");
  if (!chart || !row?.at) return;
  const memory = row.memory_mib == null ? null : row.memory_mib / 1024;
  extend(chart, new Date(row.at).toISOString(), { cpu: row.cpu_cores, memory });
}

function take(rows, changed) {
  const job = rows.get("job");
  if (!job) return;
  if (changed.has("log") || changed.has("job")) log?.pull();
  if (changed.has("use")) use(rows.get("use"));
  const text = JSON.stringify([job, rows.get("placement")]);
  const isFirst = shown === null && document.querySelector("#job-state [data-state]")?.dataset.state === job.state;
  if (text !== shown && !isFirst) refresh();
  shown = text;
  if (job.ended) log?.finish();
}

document.addEventListener("kilter:refreshed", () => drawAll(document.getElementById("job-figure")));

connect(`/ws/jobs/${uid}/`, {
  onSnapshot: (rows) => take(rows, rows),
  onDelta: ({ changed }, rows) => take(rows, changed),
});
