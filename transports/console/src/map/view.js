// The map on the page: panning, zooming and selecting, by pointer, touch and keys.
import { select } from "d3-selection";
import "d3-transition";
import { zoom, zoomIdentity } from "d3-zoom";
import { onOtherColours } from "../theme.js";
import { grouped } from "./colours.js";
import { Graph } from "./graph.js";
import { Panel, made } from "./panel.js";
import { Picture } from "./picture.js";

const STEP = 80; // pixels of an arrow key
const CLOSER = 1.4;
const REST = 120; // milliseconds without a move before a complete redraw
const GLIDE = 250;
const HELP =
  "Arrow keys move the map, with Shift they select the next node that way; plus and minus zoom, 0 shows all of it, " +
  "Enter opens what is selected, slash goes to the search; Tab goes on to the legend and the largest nodes.";
const WAYS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

export class MapView {
  constructor(section, mapped) {
    this.section = section;
    this.graph = new Graph(mapped, JSON.parse(section.dataset.paths), JSON.parse(section.dataset.how));
    this.colours = grouped(this.graph, section.dataset.colour);
    this.transform = zoomIdentity;
    this.matches = [];
    this.match = -1;
  }

  /** Puts the map onto the page. */
  show() {
    this.canvas = made("canvas", { tabindex: "0", role: "img", "aria-label": this.summary(), "aria-describedby": "map-help" });
    const field = made("div", { class: "map-field" }, this.canvas, this.buttons());
    this.panel = new Panel(this.graph, this.colours, {
      onSelect: (node) => this.select(node, true),
      onFind: (text, goes) => this.find(text, goes),
      onGroup: (number) => this.showGroup(number),
    });
    const help = made("p", { class: "dim map-help", id: "map-help" }, HELP);
    const left = made("div", {}, field, this.panel.legend, help);
    this.section.replaceChildren(made("div", { class: "map-both" }, left, this.panel.element));
    this.picture = new Picture(this.canvas, this.graph, this.colours);
    this.panel.recolour();
    this.move();
    this.hear();
    new ResizeObserver(() => {
      this.picture.resize();
      this.draw(false);
      if (this.wanted !== undefined && this.picture.width) this.showWanted();
    }).observe(this.canvas);
    this.wanted = nodeInAddress();
    addEventListener("hashchange", () => {
      clearTimeout(this.naming); // what a person puts into the address comes before the selection
      this.wanted = nodeInAddress();
      if (this.wanted !== undefined && this.picture.width) this.showWanted();
    });
    this.section.dataset.ready = "";
  }

  /** Selects the node in the address, once there is room to show it. */
  showWanted() {
    const node = this.graph.number(this.wanted);
    this.wanted = undefined;
    if (node >= 0) this.select(node, true);
    else this.tell("What the address names is not on this map: another filter may show it.");
  }

  /** Replaces the map: the selection stays, and nodes glide to their new places. */
  update(mapped) {
    const before = this.graph;
    const { selected } = this.picture;
    const focused = this.panel.focused();
    this.graph = new Graph(mapped, before.paths, before.how);
    this.colours = grouped(this.graph, this.section.dataset.colour, this.colours);
    const stays = selected < 0 ? -1 : this.graph.number(before.key(selected));
    this.picture.take(this.graph, this.colours, stays);
    this.panel.take(this.graph, this.colours, stays);
    this.canvas.setAttribute("aria-label", this.summary());
    if (this.panel.pressed === null) this.find(this.panel.field.value, false);
    else this.showGroup(this.panel.press(this.panel.pressed));
    this.match = this.matches.indexOf(stays);
    const changes = this.graph.changesSince(before);
    this.panel.tellChanges(changes, before, () => this.showOnly(changes.came));
    this.panel.refocus(focused);
    this.glideFrom(before);
  }

  /** Moves all nodes to their new places; at once if people want less motion. */
  glideFrom(before) {
    const { graph } = this;
    const began = performance.now();
    const step = () => {
      if (graph !== this.graph) return;
      const part = isStill() ? 1 : Math.min(1, (performance.now() - began) / GLIDE);
      graph.moveFrom(before, part);
      this.draw(false);
      if (part < 1) requestAnimationFrame(step);
    };
    step();
  }

  /** Shows a message about the whole map. */
  tell(text) {
    this.panel.tell(text);
  }

  summary() {
    const { mapped, count } = this.graph;
    const others = count - mapped.memories;
    const memories = mapped.memories === 1 ? "memory" : "memories";
    return `Map of ${mapped.memories} ${memories}; sessions, conversations and entities: ${others}; links: ${mapped.edges.source.length}`;
  }

  buttons() {
    const row = made("div", { class: "map-buttons" });
    for (const [sign, name, act] of [
      ["+", "Zoom in", () => this.zoomBy(CLOSER)],
      ["−", "Zoom out", () => this.zoomBy(1 / CLOSER)],
      ["All", "Show the whole map", () => this.goTo(zoomIdentity)],
    ]) {
      const button = made("button", { type: "button", "aria-label": name }, sign);
      button.addEventListener("click", act);
      row.append(button);
    }
    return row;
  }

  /** Lets pointer and touch move the map; the wheel zooms only while the map has the focus. */
  move() {
    this.zoom = zoom()
      .scaleExtent([0.5, 60])
      .filter((event) => !event.button && (event.type !== "wheel" || event.ctrlKey || document.activeElement === this.canvas))
      .on("zoom", (event) => {
        this.transform = event.transform;
        this.draw(true);
      });
    this.target = select(this.canvas).call(this.zoom).on("dblclick.zoom", null);
    this.canvas.addEventListener("click", (event) => {
      const box = this.canvas.getBoundingClientRect();
      this.select(this.picture.at(event.clientX - box.left, event.clientY - box.top, this.transform), false);
    });
    this.canvas.addEventListener("pointerdown", () => this.canvas.focus({ preventScroll: true }));
  }

  hear() {
    this.canvas.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (this.act(event.key, event.shiftKey)) event.preventDefault();
    });
    onOtherColours(() => {
      this.picture.recolour();
      this.panel.recolour();
      this.draw(false);
    });
  }

  act(key, isShifted) {
    const arrows = { ArrowLeft: [STEP, 0], ArrowRight: [-STEP, 0], ArrowUp: [0, STEP], ArrowDown: [0, -STEP] };
    if (isShifted && WAYS[key]) this.step(WAYS[key]);
    else if (arrows[key]) {
      const [x, y] = arrows[key];
      this.target.call(this.zoom.translateBy, x / this.transform.k, y / this.transform.k);
    } else if (key === "+" || key === "=") this.zoomBy(CLOSER);
    else if (key === "-") this.zoomBy(1 / CLOSER);
    else if (key === "0") this.goTo(zoomIdentity);
    else if (key === "Escape") this.select(-1, false);
    else if (key === "/") this.panel.field.focus();
    else if (key === "Enter" && this.picture.selected >= 0) this.panel.element.querySelector(".map-selected a").click();
    else return false;
    return true;
  }

  /** Selects the nearest node in a direction, among search results if any, and moves the map if it is not visible. */
  step(way) {
    const { picture } = this;
    const node = picture.towards(picture.selected, way, this.transform);
    if (node < 0) return;
    this.select(node, false);
    if (!picture.isSeen(node, 0)) this.target.call(this.zoom.translateTo, ...picture.base(node));
  }

  zoomBy(factor) {
    this.target.call(this.zoom.scaleBy, factor);
  }

  /** Goes to a transform: gliding, unless people want less motion. */
  goTo(transform) {
    const target = isStill() ? this.target : this.target.transition().duration(GLIDE);
    target.call(this.zoom.transform, transform);
  }

  /** Selects a node, or nothing; `goes` centres it. */
  select(node, goes) {
    this.picture.selected = node;
    this.nameSoon();
    if (node < 0) this.panel.nothing();
    else this.panel.show(node);
    if (node >= 0 && goes) {
      const k = Math.max(4, this.transform.k);
      const [x, y] = this.picture.base(node);
      this.goTo(zoomIdentity.translate(this.picture.width / 2 - x * k, this.picture.height / 2 - y * k).scale(k));
    }
    this.draw(false);
  }

  /** Puts the selection into the address after a moment: browsers forbid frequent changes. */
  nameSoon() {
    clearTimeout(this.naming);
    this.naming = setTimeout(() => {
      const { selected } = this.picture;
      const name = selected < 0 ? "" : `#${new URLSearchParams({ node: this.graph.key(selected) })}`;
      history.replaceState(null, "", location.pathname + location.search + name);
    }, REST);
  }

  /** Shows only the nodes of a group of the legend; all for -1. */
  showGroup(number) {
    const { of } = this.colours;
    this.panel.field.value = "";
    this.panel.tellFound("", 0);
    this.showOnly(number < 0 ? null : [...of.keys()].filter((node) => of[node] === number));
  }

  /** Fades all nodes except some, which Enter in the search and the keys go through; none for null. */
  showOnly(nodes) {
    this.matches = nodes ?? [];
    this.match = -1;
    this.picture.found = nodes && new Set(nodes);
    this.draw(false);
  }

  find(text, goes) {
    if (!goes) {
      this.panel.press(null);
      this.showOnly(text.trim() ? this.graph.find(text) : null);
      this.panel.tellFound(text, this.matches.length);
    } else if (this.matches.length) {
      this.match = (this.match + 1) % this.matches.length;
      this.select(this.matches[this.match], true);
    }
  }

  /** Draws in the next frame; after a move redraws completely once nothing moves. */
  draw(isMoving) {
    this.isMoving = isMoving && this.isMoving !== false;
    clearTimeout(this.resting);
    if (isMoving) this.resting = setTimeout(() => this.draw(false), REST);
    this.frame ??= requestAnimationFrame(() => {
      this.frame = null;
      if (this.picture.width) this.picture.show(this.transform, this.isMoving);
      this.isMoving = undefined;
    });
  }
}

/** Returns the key of the node that the address names. */
function nodeInAddress() {
  return new URLSearchParams(location.hash.slice(1)).get("node") ?? undefined;
}

function isStill() {
  return matchMedia("(prefers-reduced-motion: reduce)").matches;
}
