// The page's words in the reader's language, and amounts as people read them (the same rules as amounts.py).

const element = document.getElementById("kilter-strings");
const words = element ? JSON.parse(element.textContent) : {};

/** Return the sentence for `key` with its `{names}` filled in; the key itself if the page has no such word. */
export function say(key, values = {}) {
  return (words[key] ?? key).replace(/\{(\w+)\}/g, (whole, name) => values[name] ?? whole);
}

const short = (number, digits = 1) => String(Number(number.toFixed(digits)));

export const UNKNOWN = "–";

export function memory(mib) {
  if (mib == null) return UNKNOWN;
  if (Math.abs(mib) >= 1048576) return `${short(mib / 1048576)} TiB`;
  return Math.abs(mib) >= 1024 ? `${short(mib / 1024)} GiB` : `${short(mib)} MiB`;
}

export function percent(frac) {
  return frac == null ? UNKNOWN : `${Math.round(frac * 100)} %`;
}

export function cores(milli) {
  return milli == null ? UNKNOWN : short(milli / 1000);
}

export function duration(seconds) {
  const whole = Math.max(0, Math.floor(seconds));
  const days = Math.floor(whole / 86400);
  const hours = Math.floor((whole % 86400) / 3600);
  const minutes = Math.floor((whole % 3600) / 60);
  if (days) return say("days", { days, hours });
  if (hours) return say("hours", { hours, minutes: String(minutes).padStart(2, "0") });
  return minutes ? say("minutes", { minutes }) : say("seconds", { seconds: whole });
}

/** Return how long `then` (ms) is before or after `now` (ms). */
export function ago(then, now = Date.now()) {
  const age = (now - then) / 1000;
  return age < -1 ? say("in", { duration: duration(-age) }) : say("ago", { duration: duration(age) });
}

const stamp = new Intl.DateTimeFormat("sv-SE", { dateStyle: "short", timeStyle: "medium" });

/** Return a moment in the reader's zone, e.g. `2026-12-02 16:05:09`. */
export function local(date) {
  return stamp.format(date);
}
