// The current page: its address, updates of it, and messages.
import { Idiomorph } from "idiomorph";

export const REFRESHED = "greenroom:refreshed";
const HELD = "form[data-dirty], [role=alert]:not([hidden])";

/** Returns the main part of the page, which updates replace. */
export function main() {
  return document.getElementById("main");
}

/** Returns the URL of a path below the first page. */
export function urlOf(path) {
  return new URL(document.documentElement.dataset.root + path, location.href);
}

/** Adds the page's impersonation to a URL. */
export function asSeen(url) {
  for (const [name, value] of new URLSearchParams(location.search)) {
    if (/^as(_|$)/.test(name)) url.searchParams.append(name, value);
  }
  return url;
}

/** Shows a message, also to screen readers; `button` is an action for it. */
export function tell(text, button) {
  const status = document.getElementById("status");
  status.replaceChildren(text, ...(button ? [" ", button] : []));
  status.classList.add("shown");
  clearTimeout(tell.timer);
  tell.timer = setTimeout(() => status.classList.remove("shown"), button ? 30_000 : 6_000);
}

/** Returns a button that works once. */
export function button(label, act) {
  const made = document.createElement("button");
  made.type = "button";
  made.textContent = label;
  made.addEventListener("click", () => {
    made.remove();
    act();
  });
  return made;
}

let refreshing = null;
let again = null;
let tag = null; // the server's tag of the page; null if a part of it was not updated

/**
 * Fetches the page again and updates what has changed; typed text stays. A fetch in progress may have been
 * answered before the change, so another one follows it.
 */
export function refresh() {
  tag = null;
  return refreshChanged();
}

/** Does the same, but the server sends nothing if the page has not changed. */
export function refreshChanged() {
  if (refreshing) {
    again ??= refreshing.then(() => {
      again = null;
      return refreshChanged();
    });
    return again;
  }
  refreshing = fetchAgain().finally(() => {
    refreshing = null;
  });
  return refreshing;
}

async function fetchAgain() {
  const address = location.href.replace(/#.*/, "");
  let answer;
  let text;
  try {
    const headers = { accept: "text/html", ...(tag && { "if-none-match": tag }) };
    answer = await fetch(address, { headers, redirect: "error" });
    text = await answer.text();
  } catch {
    tell("The server does not answer. This page shows what was last known.");
    return;
  }
  if (answer.status === 304) return;
  const fetched = new DOMParser().parseFromString(text, "text/html");
  const shown = fetched.getElementById("main");
  if (fetched.getElementById("confirm-form")) return location.reload();
  if (!shown?.dataset.csrf) {
    if (!answer.ok) tell(`The server answers with ${answer.status}. This page shows what was last known.`);
    else if (main().dataset.csrf) loggedOut();
    return;
  }
  tag = isInUse() ? null : answer.headers.get("etag");
  Idiomorph.morph(main(), shown, {
    ignoreActiveValue: true,
    callbacks: { beforeNodeMorphed: mayChange, beforeNodeRemoved: mayGo, beforeAttributeUpdated: keepsState },
  });
  document.dispatchEvent(new CustomEvent(REFRESHED));
}

/** Returns whether a part of the page was not updated, so that the next fetch must be complete. */
function isInUse() {
  return main().querySelector(`${HELD}, :is(input, select, textarea):focus`) !== null;
}

/** A form with typed text, a refusal, and what the script drew are not updated. */
function mayChange(old) {
  return !(old instanceof Element && old.matches(`${HELD}, [data-drawn]`));
}

/** The script removes what it drew. A form with typed text is not removed. */
function mayGo(old) {
  return !(old instanceof Element && (old.hasAttribute("data-drawn") || old.querySelector("form[data-dirty]") || old.matches("form[data-dirty]")));
}

/** Opened details stay open. */
function keepsState(name, node) {
  return !(name === "open" && (node.localName === "details" || node.localName === "dialog"));
}

function loggedOut() {
  delete main().dataset.csrf;
  const link = document.createElement("a");
  link.href = location.href;
  link.textContent = "Log in again";
  const note = document.createElement("p");
  note.className = "refusal";
  note.setAttribute("role", "alert");
  note.append("You are logged out, so this page shows nothing new. ", link);
  main().prepend(note);
}
