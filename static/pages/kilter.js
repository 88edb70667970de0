// What every page does: theme buttons, ages that keep counting, local times, confirmations, failed requests.

import { ago, local, say } from "./words.js";

function markTheme() {
  const choice = document.documentElement.dataset.themeChoice;
  for (const button of document.querySelectorAll("[data-theme-choose]")) {
    button.setAttribute("aria-pressed", String(button.dataset.themeChoose === choice));
  }
}

function setTimes(root = document) {
  for (const element of root.querySelectorAll("time[data-local]")) {
    element.textContent = local(new Date(element.dateTime));
  }
  for (const element of root.querySelectorAll("time[data-ago]")) {
    const then = new Date(element.dateTime);
    element.title = local(then);
    const text = ago(then.getTime());
    if (element.textContent !== text) element.textContent = text;
  }
}

/** Show a short notice at the edge of the page for some seconds. */
export function toast(text) {
  let shelf = document.querySelector(".k-toasts");
  if (!shelf) {
    shelf = document.createElement("div");
    shelf.className = "k-toasts";
    shelf.setAttribute("role", "status");
    document.body.append(shelf);
  }
  const note = document.createElement("div");
  note.className = "k-toast";
  note.textContent = text;
  shelf.append(note);
  setTimeout(() => note.remove(), 8000);
}

async function copy(button) {
  const source = document.getElementById(button.dataset.copy);
  await navigator.clipboard.writeText(source.value ?? source.textContent);
  toast(say("copied"));
}

document.addEventListener("click", (event) => {
  const target = event.target instanceof Element ? event.target : null;
  const theme = target?.closest("[data-theme-choose]");
  if (theme) {
    window.kilterTheme.choose(theme.dataset.themeChoose);
    markTheme();
  }
  const copier = target?.closest("[data-copy]");
  if (copier) copy(copier);
});

// <form data-confirm="Stop job x?">: asks first.
document.addEventListener("submit", (event) => {
  const question = event.submitter?.dataset.confirm ?? event.target.dataset.confirm;
  if (question && !window.confirm(question)) event.preventDefault();
});

const failed = (event) => toast(say("request_failed", { status: event.detail.xhr?.status || "–" }));
document.addEventListener("htmx:responseError", failed);
document.addEventListener("htmx:sendError", failed);
document.addEventListener("htmx:afterSettle", (event) => setTimes(event.target));

markTheme();
setTimes();
setInterval(() => document.hidden || setTimes(), 1000);
