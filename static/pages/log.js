// Tails a job's log: bytes since an offset, decoded across chunks, shown as text and never as markup.

import { say } from "./words.js";

const KEEP_LINES = 5000;
const LINE_CHARS = 8192; // a line without end is continued on the next one
const POLL_MS = 5000; // only a net below the live pushes
// Colour and cursor sequences of terminals.
const ANSI = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)|[@-_])/g;
const CONTROL = /[\u0000-\u0008\u000b-\u001f]/g;

const visible = (text) =>
  text
    .replace(/\r+$/, "")
    .replace(ANSI, "")
    .replace(CONTROL, (char) => String.fromCharCode(0x2400 + char.charCodeAt(0)))
    .replace(/\u007f/g, "\u2421");

function cutMark() {
  const mark = document.createElement("div");
  mark.className = "k-log-note";
  mark.textContent = say("log_cut");
  return mark;
}

/** Follow the log in `card` (templates/parts/log.html); call `pull()` when the server says that it grew. */
export function tail(card) {
  const lines = card.querySelector("[data-log-lines]");
  const status = card.querySelector("[data-log-status]");
  const follow = card.querySelector("[data-log-follow]");
  const decoder = new TextDecoder("utf-8"); // ill-formed bytes become U+FFFD, wherever a chunk ends
  let offset = 0;
  let open = null; // the element of the last, unfinished line
  let openText = "";
  let busy = false;
  let again = false;
  let final = card.hasAttribute("data-log-final");
  let following = true;
  let unseen = 0;

  const setFollowing = (next) => {
    following = next;
    follow?.setAttribute("aria-pressed", String(next));
    if (next) {
      unseen = 0;
      status.textContent = final ? say("log_ended") : "";
      lines.scrollTop = lines.scrollHeight;
    }
  };

  const put = (text, batch) => {
    if (!open) {
      open = document.createElement("div");
      batch.append(open);
    }
    open.textContent = visible(text);
  };

  const end = () => {
    open = null;
    openText = "";
    unseen += 1;
  };

  const append = (text) => {
    const batch = document.createDocumentFragment();
    const pieces = text.split("\n");
    if (pieces.length > KEEP_LINES) {
      pieces.splice(0, pieces.length - KEEP_LINES);
      lines.replaceChildren(cutMark());
      open = null;
      openText = "";
    }
    pieces.forEach((piece, index) => {
      openText += piece;
      const last = index === pieces.length - 1;
      // A carriage return starts the line again, as progress bars want it; one at the end waits for what follows.
      const body = openText.replace(/\r+$/, "");
      openText = body.slice(body.lastIndexOf("\r") + 1) + (last ? openText.slice(body.length) : "");
      while (openText.length > LINE_CHARS) {
        const rest = openText.slice(LINE_CHARS);
        put(openText.slice(0, LINE_CHARS), batch);
        end();
        openText = rest;
      }
      if (openText || !last) put(openText, batch);
      if (!last) end();
    });
    lines.append(batch);
    trim();
    if (following) setFollowing(true);
    else if (unseen) status.textContent = say("log_paused", { count: unseen });
  };

  const trim = () => {
    let spare = lines.childElementCount - KEEP_LINES;
    if (spare <= 0) return;
    while (spare-- > 0) lines.firstElementChild.remove();
    lines.firstElementChild.replaceWith(cutMark());
  };

  const fetchOnce = async () => {
    const url = new URL(card.dataset.log, location.href);
    url.searchParams.set("since", String(offset));
    const answer = await fetch(url, { headers: { Accept: "text/plain" }, credentials: "same-origin" });
    if (!answer.ok) throw new Error(String(answer.status));
    const bytes = new Uint8Array(await answer.arrayBuffer());
    offset += bytes.byteLength;
    if (bytes.byteLength) append(decoder.decode(bytes, { stream: true }));
    return bytes.byteLength;
  };

  async function pull() {
    if (busy) {
      again = true;
      return;
    }
    busy = true;
    try {
      do {
        again = false;
        while (await fetchOnce());
      } while (again);
      if (!offset && !final) status.textContent = say("log_waiting");
      else if (following) status.textContent = final ? say("log_ended") : "";
    } catch (error) {
      status.textContent = say("log_unreachable");
      console.warn("log", error);
    } finally {
      busy = false;
    }
  }

  const net = setInterval(() => {
    if (!lines.isConnected) clearInterval(net);
    else if (!document.hidden) pull();
  }, POLL_MS);

  follow?.addEventListener("click", () => setFollowing(!following));
  lines.addEventListener("wheel", (event) => event.deltaY < 0 && following && setFollowing(false), { passive: true });
  lines.addEventListener("keydown", (event) => {
    if (["ArrowUp", "PageUp", "Home"].includes(event.key)) setFollowing(false);
    if (event.key === "End") setFollowing(true);
  });

  if (final) clearInterval(net);
  pull();
  return {
    pull,
    /** The job has ended: read what is left and stop asking. */
    async finish() {
      final = true;
      clearInterval(net);
      await pull();
    },
  };
}
