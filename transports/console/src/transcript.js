// A transcript while it grows: a reader at its end follows it, others see how many messages are new.
import { REFRESHED, button } from "./page.js";

const NEAR = 120; // pixels from the end that count as its end
let atEnd = false;
let seen = 0;
let note = null;

/** Follows a transcript that grows. */
export function followTranscript() {
  if (!growing()) return;
  seen = newest();
  atEnd = isAtEnd();
  if (!atEnd && !location.hash) hold();
  addEventListener("scroll", look, { passive: true });
  document.addEventListener(REFRESHED, grown);
}

function growing() {
  return document.querySelector(".transcript[data-grows]");
}

function newest() {
  return Math.max(0, ...shown().map((each) => Number(each.dataset.message)));
}

function shown() {
  return [...document.querySelectorAll(".transcript [data-message]")];
}

function isAtEnd() {
  const end = document.getElementById("end");
  return Boolean(end) && end.getBoundingClientRect().top < innerHeight + NEAR;
}

function toEnd() {
  document.getElementById("end")?.scrollIntoView({ block: "end" });
}

function look() {
  const now = isAtEnd();
  if (now) told();
  if (now === atEnd) return;
  atEnd = now;
  hold();
}

/** Keeps the first message of the page in place while the reader is above the end. */
function hold() {
  const address = new URL(location.href);
  const first = shown()[0]?.dataset.message;
  if (!atEnd && first) address.searchParams.set("from", first);
  else address.searchParams.delete("from");
  address.hash = "";
  history.replaceState(history.state, "", address);
}

function grown() {
  const fresh = shown().filter((each) => Number(each.dataset.message) > seen);
  const isFull = !growing() && document.querySelector('.transcript ~ p a[rel="next"]');
  if (!fresh.length && !isFull) return;
  if (atEnd) {
    toEnd();
    told();
    return;
  }
  tellOf(fresh.length, Boolean(isFull));
}

function told() {
  seen = newest();
  note?.remove();
  note = null;
}

function tellOf(count, isMore) {
  if (!note) {
    note = button("", () => {
      note = null;
      toEnd();
    });
    note.className = "new-messages";
    note.setAttribute("aria-live", "polite");
    document.body.append(note);
  }
  note.textContent = `${count}${isMore ? " or more" : ""} new`;
}
