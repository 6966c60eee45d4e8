// The side of the map: search, selection, largest nodes, legend, and what is left out.
import { asSeen, urlOf } from "../page.js";
import { resolved } from "../theme.js";
import { outline } from "./picture.js";

const LARGEST = 20;
const LINKS = 30;

const PLURALS = { memory: "memories", session: "sessions", conversation: "conversations", entity: "entities" };

/** Returns an element with attributes and content; texts stay texts. */
export function made(name, attributes = {}, ...content) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...content);
  return element;
}

/** Replaces the content of an element if it differs, so that focus and screen readers keep their place. */
function put(element, ...content) {
  const wanted = element.cloneNode(false);
  wanted.append(...content);
  if (!wanted.isEqualNode(element)) element.replaceChildren(...wanted.childNodes);
}

export class Panel {
  constructor(graph, colours, { onSelect, onFind, onGroup }) {
    this.graph = graph;
    this.details = made("div", { class: "map-selected", role: "status", "aria-label": "Selected" });
    this.legend = made("ul", { class: "map-legend", "aria-label": "Legend" });
    this.colours = colours;
    this.news = made("p", { class: "dim", role: "status", "aria-label": "Changes" });
    this.list = made("ol", { class: "map-largest" });
    this.remarks = made("div");
    this.field = made("input", { type: "search", id: "map-find", placeholder: "words of a label", spellcheck: "false" });
    this.found = made("p", { class: "dim", role: "status" });
    this.field.addEventListener("input", () => onFind(this.field.value));
    this.field.addEventListener("keydown", (event) => {
      if (event.key === "Enter") onFind(this.field.value, true);
    });
    this.element = made(
      "div",
      { class: "map-panel" },
      made("label", { for: "map-find" }, "Search in the map"),
      this.field,
      this.found,
      this.news,
      this.details,
      made("details", { open: "" }, made("summary", {}, "The largest"), this.list),
      this.remarks,
    );
    this.element.addEventListener("click", (event) => {
      const { key } = event.target.closest("button[data-key]")?.dataset ?? {};
      if (key) onSelect(this.graph.number(key));
    });
    this.legend.addEventListener("click", (event) => {
      const { at } = event.target.closest("button")?.dataset ?? {};
      if (at !== undefined) onGroup(this.press(at === this.pressed ? null : at));
    });
    this.pressed = null; // the chosen group of the legend
    this.remark();
    this.nothing();
  }

  /** Chooses a group in the legend, or none; returns its number, -1 if it does not exist. */
  press(label) {
    const number = this.colours.groups.findIndex((group) => group.label === label);
    this.pressed = number < 0 ? null : label;
    for (const button of this.legend.querySelectorAll("button")) button.setAttribute("aria-pressed", button.dataset.at === this.pressed);
    return number;
  }

  /** Returns the name of the focused element here, which stays the same after a redraw. */
  focused() {
    const here = [this.element, this.legend].some((each) => each.contains(document.activeElement));
    return here ? (document.activeElement.dataset.key ?? document.activeElement.dataset.at) : undefined;
  }

  /** Restores the focus, or moves it to the search if the element is gone. */
  refocus(focused) {
    if (focused === undefined || this.focused() === focused) return;
    const name = CSS.escape(focused);
    const found = [this.element, this.legend].map((each) => each.querySelector(`[data-key="${name}"], [data-at="${name}"]`)).find(Boolean);
    (found ?? this.field).focus({ preventScroll: true });
  }

  /** Switches to another graph. */
  take(graph, colours, selected) {
    const wasSelected = this.selected >= 0;
    this.graph = graph;
    this.colours = colours;
    this.remark();
    this.recolour();
    if (selected >= 0) this.show(selected);
    else if (wasSelected) this.nothing("What was selected is gone.");
  }

  button(node) {
    const attributes = { type: "button", class: "quiet", "data-key": this.graph.key(node) };
    return made("button", attributes, made("bdi", {}, this.graph.nodes.label[node]));
  }

  /** Shows the largest nodes, what is left out, and the placement. */
  remark() {
    const { mapped } = this.graph;
    put(this.list, ...this.graph.largest(LARGEST).map((node) => made("li", {}, this.button(node))));
    const said = [...mapped.notes];
    if (mapped.total > mapped.memories) {
      said.unshift(`${mapped.memories.toLocaleString("en")} of ${mapped.total.toLocaleString("en")} memories are shown.`);
    }
    if (mapped.kind === "plane" && mapped.without_vectors) {
      said.push(`${mapped.without_vectors.toLocaleString("en")} memories have no vector yet and lie around the others`);
    }
    const method = made("p", { class: "dim" }, `Drawn ${new Date().toLocaleTimeString()}; placed by ${mapped.method}.`);
    const notes = said.map((text) => made("li", {}, text));
    put(this.remarks, ...(notes.length ? [made("ul", { class: "map-notes" }, ...notes)] : []), method);
  }

  /** Redraws the legend in the current colours. */
  recolour() {
    const rows = this.colours.groups.map((group) => {
      const sample = made("canvas", { width: 32, height: 32, "aria-hidden": "true" });
      const context = sample.getContext("2d");
      context.translate(16, 16);
      context.fillStyle = resolved(group.colour, this.legend);
      outline(context, group.shape, 12);
      context.fill();
      const button = made("button", { type: "button", class: "quiet", "data-at": group.label }, sample, made("bdi", {}, group.label));
      button.append(made("small", {}, ` ${group.count.toLocaleString("en")}`));
      return made("li", {}, button);
    });
    this.legend.replaceChildren(...rows);
    this.press(this.pressed);
  }

  nothing(why = "Nothing is selected.") {
    this.selected = -1;
    put(this.details, made("p", { class: "dim" }, why));
  }

  /** Shows a node: its data, its page and its links. */
  show(node) {
    const { graph } = this;
    this.selected = node;
    const { nodes } = graph;
    const facts = [["Type", graph.kind(node)]];
    if (graph.cluster(node)) facts.push(["Cluster", graph.cluster(node)]);
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
    const open = { class: "button", href: asSeen(urlOf(graph.path(node))).href, "data-at": `open ${graph.key(node)}` };
    put(
      this.details,
      made("h3", {}, made("bdi", {}, nodes.label[node])),
      list,
      made("p", {}, made("a", open, "Open")),
      ...(links.length ? [made("ul", { class: "map-links", "aria-label": "Linked to" }, ...links)] : []),
    );
  }

  /** Shows a message about the whole map; `button` is an action for it. */
  tell(text, button) {
    this.news.replaceChildren(text, ...(button ? [" ", button] : []));
  }

  /** Reports new, gone and changed nodes, by type. */
  tellChanges({ came, went, changed }, before, onShow) {
    const parts = [
      ["New", this.graph, came],
      ["Gone", before, went],
      ["Changed", this.graph, changed],
    ].filter(([, , nodes]) => nodes.length);
    const said = parts.map(([what, graph, nodes]) => `${what}: ${counted(graph, nodes)}.`);
    const button = came.length ? made("button", { type: "button", "data-at": "what is new" }, "Show what is new") : null;
    button?.addEventListener("click", onShow);
    this.tell(["The map was drawn anew.", ...said].join(" "), button);
  }

  /** Shows the number of search results. */
  tellFound(text, count) {
    this.found.textContent = text.trim() ? `${count.toLocaleString("en")} found${count ? "; Enter goes to the next" : ""}` : "";
  }
}

/** Returns the number of nodes of each type, in words. */
function counted(graph, nodes) {
  const counts = new Map();
  for (const node of nodes) counts.set(graph.type(node), (counts.get(graph.type(node)) ?? 0) + 1);
  return [...counts].map(([type, count]) => `${count.toLocaleString("en")} ${count === 1 ? type : PLURALS[type]}`).join(", ");
}
