// One websocket per page: a snapshot, then deltas with a sequence number. What is not fresh is shown as stale.

import { ago, duration, say } from "./words.js";

const SILENCE_MS = 12_000; // the server ticks at least every 5 s
const DRAW_MS = 1_000; // the page changes at most once a second
const SIGNED_OUT = 4401; // the session has ended: loading the page again leads to the sign-in
const BACKOFF_MS = [500, 15_000];
const SETTLED_MS = 10_000; // a connection that lived so long was a good one: the next retry is quick again

/**
 * Keep a keyed state equal to the server's.
 *
 * @param {string} path address on this origin, e.g. "/ws/fleet/demo/"
 * @param {object} on onSnapshot(rows), onDelta({changed, removed}, rows), onStale(): `rows` is a Map key -> row.
 * @returns {{rows: Map, close: function}}
 */
export function connect(path, { onSnapshot = () => {}, onDelta = () => {}, onStale = () => {} } = {}) {
  const rows = new Map();
  let socket = null;
  let seq = null;
  let attempt = 0;
  let since = null; // when this connection brought its snapshot
  let heard = performance.now();
  let fresh = null; // wall clock of the last message, for "updated 3 s ago"
  let state = "";
  let changed = new Map();
  let removed = new Set();
  let snapshotDue = false;
  let drawnAt = -Infinity;
  let drawTimer = 0;
  let retryTimer = 0;
  let closed = false;

  const badge = () => {
    const text =
      state === "live" ? say("live_updated", { age: ago(fresh) })
      : state === "stale" && fresh ? say("live_stale", { duration: duration((Date.now() - fresh) / 1000) })
      : say("live_connecting");
    for (const element of document.querySelectorAll("[data-live-text]")) {
      if (element.textContent !== text) element.textContent = text;
    }
  };

  const become = (next) => {
    if (state === next) return;
    state = document.body.dataset.live = next;
    badge();
    if (next === "stale") onStale();
  };

  const draw = () => {
    drawTimer = 0;
    drawnAt = performance.now();
    const delta = { changed, removed };
    changed = new Map();
    removed = new Set();
    if (snapshotDue) {
      snapshotDue = false;
      onSnapshot(rows);
    } else if (delta.changed.size || delta.removed.size) {
      onDelta(delta, rows);
    }
  };

  const plan = () => {
    drawTimer ||= setTimeout(draw, Math.max(0, drawnAt + DRAW_MS - performance.now()));
  };

  const take = {
    snapshot(message) {
      rows.clear();
      for (const [key, row] of Object.entries(message.data)) rows.set(key, row);
      snapshotDue = true;
      since ??= performance.now();
    },
    delta(message) {
      for (const [key, row] of Object.entries(message.changed ?? {})) {
        rows.set(key, row);
        changed.set(key, row);
        removed.delete(key);
      }
      for (const key of message.removed ?? []) {
        rows.delete(key);
        changed.delete(key);
        removed.add(key);
      }
    },
    tick() {},
  };

  const drop = () => {
    if (!socket) return;
    const old = socket;
    socket = null;
    old.onopen = old.onmessage = old.onclose = null;
    old.close();
  };

  const retry = () => {
    drop();
    if (since !== null && performance.now() - since > SETTLED_MS) attempt = 0;
    since = null;
    become(fresh ? "stale" : "connecting");
    if (closed || retryTimer) return;
    const ceiling = Math.min(BACKOFF_MS[1], BACKOFF_MS[0] * 2 ** attempt++);
    retryTimer = setTimeout(open, ceiling * (0.5 + Math.random() / 2));
  };

  const receive = (event) => {
    const message = JSON.parse(event.data);
    if (!Object.hasOwn(take, message.type)) return; // a kind that a newer server knows
    // Every message takes the next number; anything else means that one was missed.
    if (message.type !== "snapshot" && message.seq !== seq + 1) return retry();
    seq = message.seq;
    heard = performance.now();
    fresh = Date.now();
    take[message.type](message);
    become("live");
    if (message.type !== "tick") plan();
  };

  function open() {
    retryTimer = 0;
    drop();
    seq = null;
    heard = performance.now();
    const scheme = location.protocol === "https:" ? "wss:" : "ws:";
    socket = new WebSocket(`${scheme}//${location.host}${path}`);
    socket.onmessage = receive;
    socket.onclose = (event) => (event.code === SIGNED_OUT ? location.reload() : retry());
  }

  const watch = setInterval(() => {
    badge();
    if (socket && performance.now() - heard > SILENCE_MS) retry();
  }, 1000);

  const hurry = () => {
    if (socket || closed) return;
    clearTimeout(retryTimer);
    attempt = 0;
    open();
  };
  window.addEventListener("online", hurry);
  document.addEventListener("visibilitychange", () => document.hidden || hurry());

  become("connecting");
  open();
  return {
    rows,
    close() {
      closed = true;
      clearInterval(watch);
      clearTimeout(retryTimer);
      clearTimeout(drawTimer);
      drop();
    },
  };
}
