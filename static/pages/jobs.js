// The list of jobs: states live, and the filter that applies itself.

import { connect } from "./live.js";
import { refresh } from "./refresh.js";

const form = document.querySelector("[data-filter]");
form?.addEventListener("change", () => {
  for (const field of form.elements) if (field.name && !field.value) field.disabled = true; // a short address
  form.requestSubmit();
});
window.addEventListener("pageshow", () => {
  for (const field of form?.elements ?? []) field.disabled = false;
});

const shown = (changed) => [...changed.keys()].some((key) => document.querySelector(`[data-job-state="${CSS.escape(key.split(":").pop())}"]`));
const differs = (rows) => [...rows].some(([key, row]) => {
  const badge = document.querySelector(`[data-job-state="${CSS.escape(key.split(":").pop())}"] [data-state]`);
  return badge && badge.dataset.state !== row.state;
});

connect("/ws/jobs/", {
  onSnapshot: (rows) => { if (differs(rows)) refresh(); },
  onDelta: ({ changed }) => { if (shown(changed)) refresh(); },
});
