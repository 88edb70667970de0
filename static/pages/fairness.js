// Shares, live: the page is brought up to date when a cycle changes them.

import { drawAll } from "./charts.js";
import { connect } from "./live.js";
import { refresh } from "./refresh.js";

const slug = document.querySelector("[data-fairness]").dataset.fairness;

document.addEventListener("kilter:refreshed", () => drawAll());

let known = null; // the shares as last drawn
function take(rows) {
  const text = JSON.stringify([...rows].filter(([key]) => key !== "cycle").sort(([a], [b]) => (a < b ? -1 : 1)));
  if (known !== null && text !== known) refresh();
  known = text;
}

connect(`/ws/fairness/${slug}/`, { onSnapshot: take, onDelta: (_delta, rows) => take(rows) });
