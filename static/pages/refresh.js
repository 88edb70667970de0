// Brings parts of a page up to date from the page itself: each element with `data-refresh` and an id is taken anew;
// `data-refresh="empty"` only while it holds nothing, for what draws itself from then on. Figures' data come too.

import { toast } from "./kilter.js";
import { ago, local, say } from "./words.js";

const LEAST_MS = 1000; // the page changes at most once a second
const RETRY_MS = 5000; // after one that failed, as while the portal starts anew
let busy = false;
let again = false;
let last = -Infinity;

/** Make a part that just came look as the reader left it: times in their zone, folded parts as they were. */
function settle(fresh, old) {
  for (const time of fresh.querySelectorAll("time[data-local]")) time.textContent = local(new Date(time.dateTime));
  for (const time of fresh.querySelectorAll("time[data-ago]")) time.textContent = ago(new Date(time.dateTime).getTime());
  const folded = old.querySelectorAll("details");
  fresh.querySelectorAll("details").forEach((part, index) => {
    if (folded[index]) part.open = folded[index].open;
  });
}

async function take() {
  const answer = await fetch(location.href, { headers: { Accept: "text/html" }, credentials: "same-origin" });
  if (answer.redirected) return location.reload(); // signed out meanwhile
  if (!answer.ok) throw new Error(String(answer.status));
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  for (const old of document.querySelectorAll("[data-refresh]")) {
    if (old.dataset.refresh === "empty" && old.childElementCount) continue;
    const fresh = page.getElementById(old.id);
    if (!fresh) continue;
    settle(fresh, old);
    if (fresh.outerHTML !== old.outerHTML) old.replaceWith(document.adoptNode(fresh));
  }
  for (const old of document.querySelectorAll('script[type="application/json"][id]')) {
    const fresh = page.getElementById(old.id);
    if (fresh && fresh.textContent !== old.textContent) old.textContent = fresh.textContent;
  }
  document.dispatchEvent(new CustomEvent("kilter:refreshed"));
}

/** Take the parts anew, now or as soon as the last time is a second ago. */
export async function refresh() {
  if (busy) {
    again = true;
    return;
  }
  busy = true;
  do {
    again = false;
    const wait = last + LEAST_MS - performance.now();
    if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait));
    last = performance.now();
    try {
      await take();
    } catch (error) {
      toast(say("request_failed", { status: error.message }));
      setTimeout(refresh, RETRY_MS);
    }
  } while (again);
  busy = false;
}
