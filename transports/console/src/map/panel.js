// What stands beside the map: a search in it, what is selected, the largest nodes, the legend, what is missing.
import { asSeen, urlOf } from "../page.js";
import { resolved } from "../theme.js";
import { outline } from "./picture.js";

const LARGEST = 20;
const LINKS = 30;

/** Returns an element with attributes and content; texts stay texts. */
export function made(name, attributes = {}, ...content) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...content);
  return element;
}

export class Panel {
  constructor(graph, colours, { onSelect, onFind }) {
    this.graph = graph;
    this.onSelect = onSelect;
    this.details = made("div", { class: "map-selected", role: "status", "aria-label": "Selected" });
    this.legend = made("ul", { class: "map-legend", "aria-label": "Legend" });
    this.colours = colours;
    const field = made("input", { type: "search", id: "map-find", placeholder: "words of a label", spellcheck: "false" });
    this.found = made("p", { class: "dim", role: "status" });
    field.addEventListener("input", () => onFind(field.value));
    field.addEventListener("keydown", (event) => {
      if (event.key === "Enter") onFind(field.value, true);
    });
    this.element = made(
      "div",
      { class: "map-panel" },
      made("label", { for: "map-find" }, "Search in the map"),
      field,
      this.found,
      this.details,
      made("details", { open: "" }, made("summary", {}, "The largest"), this.largest()),
      ...this.remarks(),
    );
    this.nothing();
  }

  button(node) {
    const button = made("button", { type: "button", class: "quiet" }, made("bdi", {}, this.graph.nodes.label[node]));
    button.addEventListener("click", () => this.onSelect(node));
    return button;
  }

  largest() {
    return made("ol", { class: "map-largest" }, ...this.graph.largest(LARGEST).map((node) => made("li", {}, this.button(node))));
  }

  remarks() {
    const { mapped } = this.graph;
    const said = [...mapped.notes];
    if (mapped.total > mapped.memories) {
      said.unshift(`${mapped.memories.toLocaleString("en")} of ${mapped.total.toLocaleString("en")} memories are shown.`);
    }
    if (mapped.kind === "plane" && mapped.without_vectors) {
      said.push(`${mapped.without_vectors.toLocaleString("en")} memories have no vector yet and lie around the others`);
    }
    const method = made("p", { class: "dim" }, `Drawn ${new Date().toLocaleTimeString()}; placed by ${mapped.method}.`);
    const notes = said.map((text) => made("li", {}, text));
    return [...(notes.length ? [made("ul", { class: "map-notes" }, ...notes)] : []), method];
  }

  /** Draws the legend again, in the colours that the page has now. */
  recolour() {
    const rows = this.colours.groups.map((group) => {
      const sample = made("canvas", { width: 32, height: 32, "aria-hidden": "true" });
      const context = sample.getContext("2d");
      context.translate(16, 16);
      context.fillStyle = resolved(group.colour, this.legend);
      outline(context, group.shape, 12);
      context.fill();
      return made("li", {}, sample, made("bdi", {}, group.label), made("small", {}, ` ${group.count.toLocaleString("en")}`));
    });
    this.legend.replaceChildren(...rows);
  }

  nothing() {
    this.details.replaceChildren(made("p", { class: "dim" }, "Nothing is selected."));
  }

  /** Shows a node: what it is, where its page is, what it is linked to. */
  show(node) {
    const { graph } = this;
    const { nodes } = graph;
    const facts = [["Type", graph.kind(node)]];
    if (graph.type(node) === "memory") {
      facts.push(["Namespace", graph.namespace(node)], ["Uses", nodes.uses[node].toLocaleString("en")]);
      if (nodes.rating[node]) facts.push(["Rating", nodes.rating[node]]);
      facts.push(["Created", new Date(nodes.created[node] * 1_000).toISOString().slice(0, 10)]);
    }
    const list = made("dl", { class: "facts" });
    for (const [term, value] of facts) list.append(made("dt", {}, term), made("dd", {}, made("bdi", {}, String(value))));
    const linked = graph.linked(node);
    const links = linked.slice(0, LINKS).map((each) => made("li", {}, made("span", { class: "dim" }, each.how), this.button(each.node)));
    if (linked.length > LINKS) links.push(made("li", { class: "dim" }, `${linked.length - LINKS} more`));
    this.details.replaceChildren(
      made("h3", {}, made("bdi", {}, nodes.label[node])),
      list,
      made("p", {}, made("a", { class: "button", href: asSeen(urlOf(graph.path(node))).href }, "Open")),
      ...(links.length ? [made("ul", { class: "map-links", "aria-label": "Linked to" }, ...links)] : []),
    );
  }

  /** Says how many nodes a search found. */
  tellFound(text, count) {
    this.found.textContent = text.trim() ? `${count.toLocaleString("en")} found${count ? "; Enter goes to the next" : ""}` : "";
  }
}
