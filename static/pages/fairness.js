// Shares, live: the page is brought up to date when a cycle changes them.

import { draw } from "./charts.js";
import { connect } from "./live.js";
import { refresh } from "./refresh.js";

const slug = document.querySelector("[data-fairness]").dataset.fairness;

document.addEventListener("kilter:refreshed", () => {
  for (const chart of document.querySelectorAll("[data-chart]")) {
    const data = document.getElementById(chart.dataset.chart);
    if (data) draw(chart, JSON.parse(data.textContent));
  }
});

let first = true;
connect(`/ws/fairness/${slug}/`, {
  onSnapshot: () => { if (!first) refresh(); first = false; },
  onDelta: () => refresh(),
});
