// One cluster, live: grid, numbers above it, and the newest point of the chart.

import { extend } from "./charts.js";
import { grid } from "./grid.js";
import { connect } from "./live.js";
import { percent } from "./words.js";

const slug = document.querySelector("[data-fleet]").dataset.fleet;
const card = document.querySelector("[data-grid]");
const cells = card && grid(card);

function numbers(row) {
  if (!row) return;
  for (const element of document.querySelectorAll("[data-stat]")) {
    const key = element.dataset.stat;
    const text = key.endsWith("_frac") ? percent(row[key]) : String(row[key] ?? "–");
    if (element.textContent !== text) element.textContent = text;
  }
  const chart = document.getElementById("utilisation");
  if (chart && row.sampled_at) {
    extend(chart, new Date(row.sampled_at).toISOString(), { allocated_frac: row.allocated_frac, utilised_frac: row.utilised_frac });
  }
}

const take = (rows) => {
  cells?.update(rows);
  numbers(rows.get("cluster"));
};

connect(`/ws/fleet/${slug}/`, { onSnapshot: take, onDelta: (_delta, rows) => take(rows) });

document.querySelector("[data-span]")?.closest("nav").addEventListener("click", (event) => {
  const chosen = event.target.closest("[data-span]");
  if (!chosen) return;
  history.replaceState(null, "", chosen.href);
  for (const one of document.querySelectorAll("[data-span]")) one.toggleAttribute("aria-current", one === chosen);
});
