// The script of the map. The list below it is the page without this.
import { ask } from "./forms.js";
import { MapView } from "./map/view.js";

const place = document.querySelector("section[data-map]");
if (place) draw(place);

async function draw(section) {
  section.hidden = false;
  const waiting = document.createElement("p");
  waiting.className = "dim";
  waiting.setAttribute("role", "status");
  waiting.textContent = "The map is being drawn …";
  section.replaceChildren(waiting);
  let mapped;
  try {
    mapped = await ask("memory_map", JSON.parse(section.dataset.map));
  } catch (error) {
    waiting.className = "refusal";
    waiting.setAttribute("role", "alert");
    waiting.textContent = error.message;
    return;
  }
  new MapView(section, mapped).show();
}
