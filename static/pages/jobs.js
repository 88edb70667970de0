// The list of jobs: states live, and the filter that applies itself.

import { watchJobs } from "./watch.js";

const form = document.querySelector("[data-filter]");
form?.addEventListener("change", () => {
  for (const field of form.elements) if (field.name && !field.value) field.disabled = true; // a short address
  form.requestSubmit();
});
window.addEventListener("pageshow", () => {
  for (const field of form?.elements ?? []) field.disabled = false;
});

watchJobs();
