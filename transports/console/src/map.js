// The script of the map. Without it the page has only the list below the map.
import { ask } from "./forms.js";
import { MapView } from "./map/view.js";
import { REFRESHED } from "./page.js";

const TIMES = 10; // the pause after a map, as a multiple of its loading time
const AFTER_FAILURE = 30_000;
const section = document.querySelector("section[data-map]");
let view = null;
let revision = null; // the page's revision when the drawn map was requested
let isAsking = false;
let restsUntil = 0;
let soon = null;

document.addEventListener(REFRESHED, look);
look();

/** Draws the map, or redraws it if the page reports a change. */
function look() {
  const count = document.getElementById("map-count");
  if (!section || !count) return;
  section.hidden = count.dataset.total === "0";
  if (section.hidden) {
    view = null;
    revision = null;
    section.replaceChildren();
  } else if (!isAsking && count.dataset.revision !== revision) {
    const rest = restsUntil - performance.now();
    if (rest > 0) {
      clearTimeout(soon);
      soon = setTimeout(look, rest);
      return;
    }
    isAsking = true;
    draw(count.dataset.revision).finally(() => {
      isAsking = false;
      look(); // the page may have changed meanwhile, and a failed map is requested again
    });
  }
}

async function draw(wanted) {
  const began = performance.now();
  if (!view) say("The map is being drawn …");
  try {
    const mapped = await ask("memory_map", JSON.parse(section.dataset.map));
    revision = wanted;
    restsUntil = performance.now() + TIMES * (performance.now() - began);
    if (view) view.update(mapped);
    else {
      view = new MapView(section, mapped);
      view.show();
    }
  } catch (error) {
    restsUntil = performance.now() + AFTER_FAILURE;
    say(error.message, true);
  }
}

/** Shows the state of the map: in its place, or beside it if it is drawn. */
function say(text, isRefusal = false) {
  if (view) return view.tell(isRefusal ? `This map is not drawn anew: ${text}` : text);
  const said = document.createElement("p");
  said.className = isRefusal ? "refusal" : "dim";
  said.setAttribute("role", isRefusal ? "alert" : "status");
  said.textContent = text;
  section.replaceChildren(said);
}
