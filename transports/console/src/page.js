// The page that is shown: where it is, fetching it again, and telling people what happened.
import { Idiomorph } from "idiomorph";

export const REFRESHED = "greenroom:refreshed";
const HELD = "form[data-dirty], [role=alert]:not([hidden])";

/** Returns the main part of the page, which is replaced when the page is fetched again. */
export function main() {
  return document.getElementById("main");
}

/** Returns the URL of a path below the first page. */
export function urlOf(path) {
  return new URL(document.documentElement.dataset.root + path, location.href);
}

/** Has a URL say as whom the page is seen, so that what it leads to is seen so, too. */
export function asSeen(url) {
  for (const [name, value] of new URLSearchParams(location.search)) {
    if (/^as(_|$)/.test(name)) url.searchParams.append(name, value);
  }
  return url;
}

/** Says something to people, also to those who hear the page; `button` is what they can do about it. */
export function tell(text, button) {
  const status = document.getElementById("status");
  status.replaceChildren(text, ...(button ? [" ", button] : []));
  status.classList.add("shown");
  clearTimeout(tell.timer);
  tell.timer = setTimeout(() => status.classList.remove("shown"), button ? 30_000 : 6_000);
}

/** Returns a button that does something once. */
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
let tag = null; // the server's name for what is shown; null where something of that was not taken over

/**
 * Fetches the page again and shows what has changed in it; what is being typed stays. A fetch that is under way may
 * have been answered before what changed, so another one follows it.
 */
export function refresh() {
  tag = null;
  return refreshChanged();
}

/** Does the same, but has the server send nothing where the page is what it sent last. */
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
  try {
    const headers = { accept: "text/html", ...(tag && { "if-none-match": tag }) };
    answer = await fetch(address, { headers, redirect: "error" });
  } catch {
    tell("The server does not answer. This page shows what was last known.");
    return;
  }
  if (answer.status === 304) return;
  const fetched = new DOMParser().parseFromString(await answer.text(), "text/html");
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

/** Returns whether something on the page stays as it is now, so that it is to be fetched whole again. */
function isInUse() {
  return main().querySelector(`${HELD}, :is(input, select, textarea):focus`) !== null;
}

/** A form into which something was typed, a refusal, and what the script itself drew, stay as they are. */
function mayChange(old) {
  return !(old instanceof Element && old.matches(`${HELD}, [data-drawn]`));
}

/** What the script drew goes with what it was drawn for, by the script. What somebody types into does not go. */
function mayGo(old) {
  return !(old instanceof Element && (old.hasAttribute("data-drawn") || old.querySelector("form[data-dirty]") || old.matches("form[data-dirty]")));
}

/** What people opened stays open. */
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
