// The script of the map. The list below it is the page without this.
import { ask } from "./forms.js";
import { MapView } from "./map/view.js";
import { REFRESHED } from "./page.js";

const TIMES = 10; // as long as a map took to come, no other one is asked for
const AFTER_FAILURE = 30_000;
const section = document.querySelector("section[data-map]");
let view = null;
let revision = null; // that of what is drawn, as the page said it when the map was asked for
let isAsking = false;
let restsUntil = 0;
let soon = null;

document.addEventListener(REFRESHED, look);
look();

/** Draws the map, or draws it anew, if the page says that what it shows has changed. */
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
      look(); // what the page says may have changed meanwhile, and a map that failed is asked for again
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

/** Says how it is with the map: in its place, or beside it if it is there. */
function say(text, isRefusal = false) {
  if (view) return view.tell(isRefusal ? `This map is not drawn anew: ${text}` : text);
  const said = document.createElement("p");
  said.className = isRefusal ? "refusal" : "dim";
  said.setAttribute("role", isRefusal ? "alert" : "status");
  said.textContent = text;
  section.replaceChildren(said);
}
