// Draws the figures that Python built. A figure names colours by token; the theme of the moment gives them a value.

import { ago, local } from "./words.js";

const TOKEN = /^var\((--k-[\w-]+)\)$/;
const UTC = /^\d{4}-\d\d-\d\dT[\d:.]+(Z|\+00:00)$/;
const CONFIG = { displayModeBar: false, responsive: true, showTips: false, doubleClick: "reset" };
const drawn = new Map(); // element -> figure, as Python gave it

const pad = (number, size = 2) => String(number).padStart(size, "0");

/** Return a UTC stamp as plotly wants it: local and without a zone. */
function zoned(text) {
  const at = new Date(text);
  const day = `${at.getFullYear()}-${pad(at.getMonth() + 1)}-${pad(at.getDate())}`;
  return `${day} ${pad(at.getHours())}:${pad(at.getMinutes())}:${pad(at.getSeconds())}.${pad(at.getMilliseconds(), 3)}`;
}

/** Return a copy of the figure with colours and times of this reader. */
function resolve(value, style) {
  if (typeof value === "string") {
    const token = TOKEN.exec(value);
    if (token) return style.getPropertyValue(token[1]).trim();
    return UTC.test(value) ? zoned(value) : value;
  }
  if (Array.isArray(value)) return value.map((item) => resolve(item, style));
  if (value && typeof value === "object") {
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, resolve(item, style)]));
  }
  return value;
}

function note(element, meta) {
  const target = document.querySelector(`[data-chart-note="${CSS.escape(element.id)}"]`);
  if (!target || !meta) return;
  const parts = [meta.what, meta.source].filter(Boolean);
  target.textContent = parts.join(" ");
  if (!meta.at) return;
  const time = document.createElement("time");
  time.dateTime = meta.at;
  time.dataset.ago = "";
  time.title = local(new Date(meta.at));
  time.textContent = ago(new Date(meta.at).getTime());
  target.append(" · ", time);
}

/** Draw (or redraw in place) a figure made by portal/pages/charts. */
export function draw(element, figure) {
  const { meta, ...layout } = figure.layout;
  drawn.set(element, figure);
  const style = getComputedStyle(document.documentElement);
  const frame = { ...resolve(layout, style), autosize: true };
  frame.font = { ...frame.font, family: getComputedStyle(document.body).fontFamily };
  if (frame.height) element.style.height = `${frame.height}px`;
  note(element, meta);
  return window.Plotly.react(element, resolve(figure.data, style), frame, CONFIG);
}

/** Return whether `at` is further from the last point than 2.5 usual steps, and than half a minute. */
function isGap(xs, at) {
  if (xs.length < 2) return false;
  const [before, last] = xs.slice(-2).map((x) => Date.parse(x));
  return Date.parse(at) - last > Math.max(30_000, 2.5 * (last - before));
}

/**
 * Append points to a drawn time series and forget those that leave its window.
 *
 * @param {HTMLElement} element a drawn chart
 * @param {string} at UTC stamp of the new points
 * @param {Record<string, number|null>} values trace `name` or `meta` key -> value
 * @param {number} keep most points per trace
 */
export function extend(element, at, values, keep = 720) {
  const figure = drawn.get(element);
  if (!figure) return;
  for (const trace of figure.data) {
    const key = trace.meta?.key ?? trace.name;
    if (!(key in values) || trace.x.at(-1) === at) continue;
    if (isGap(trace.x, at)) {
      trace.x.push(at);
      trace.y.push(null); // the line breaks where nothing was heard
    }
    trace.x.push(at);
    trace.y.push(values[key]);
    if (trace.x.length > keep) {
      trace.x.splice(0, trace.x.length - keep);
      trace.y.splice(0, trace.y.length - keep);
    }
  }
  if (figure.layout.meta) figure.layout.meta.at = at;
  return draw(element, figure);
}

/** Draw every figure that the page carries, or only those under `root`. */
export function drawAll(root = document) {
  for (const element of root.querySelectorAll("[data-chart]")) {
    const data = document.getElementById(element.dataset.chart);
    if (data) draw(element, JSON.parse(data.textContent));
  }
}

document.addEventListener("kilter:theme", () => {
  for (const [element, figure] of drawn) {
    if (element.isConnected) draw(element, figure);
    else drawn.delete(element);
  }
});
document.addEventListener("htmx:afterSettle", (event) => drawAll(event.target));

if (!window.Plotly) throw new Error("plotly.js must be loaded before charts.js");
drawAll();
