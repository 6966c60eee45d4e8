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
const REST = 120; // milliseconds without a move after which all is drawn anew
const GLIDE = 250;
const HELP = "Arrow keys move the map, plus and minus zoom, 0 shows all of it, Enter opens what is selected; Tab goes on to the largest nodes.";

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
    }).observe(this.canvas);
    this.section.dataset.ready = "";
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

  /** Has the pointer and touch move the map; a wheel does where the map has the focus, else the page scrolls. */
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
      if (this.act(event.key)) event.preventDefault();
    });
    onOtherColours(() => {
      this.picture.recolour();
      this.panel.recolour();
      this.draw(false);
    });
  }

  act(key) {
    const arrows = { ArrowLeft: [STEP, 0], ArrowRight: [-STEP, 0], ArrowUp: [0, STEP], ArrowDown: [0, -STEP] };
    if (arrows[key]) {
      const [x, y] = arrows[key];
      this.target.call(this.zoom.translateBy, x / this.transform.k, y / this.transform.k);
    } else if (key === "+" || key === "=") this.zoomBy(CLOSER);
    else if (key === "-") this.zoomBy(1 / CLOSER);
    else if (key === "0") this.goTo(zoomIdentity);
    else if (key === "Escape") this.select(-1, false);
    else if (key === "Enter" && this.picture.selected >= 0) this.panel.element.querySelector(".map-selected a").click();
    else return false;
    return true;
  }

  zoomBy(factor) {
    this.target.call(this.zoom.scaleBy, factor);
  }

  /** Goes to a transform: gliding, unless people want less motion. */
  goTo(transform) {
    const isStill = matchMedia("(prefers-reduced-motion: reduce)").matches;
    const target = isStill ? this.target : this.target.transition().duration(GLIDE);
    target.call(this.zoom.transform, transform);
  }

  /** Selects a node, or nothing; `goes` brings it into the middle. */
  select(node, goes) {
    this.picture.selected = node;
    if (node < 0) this.panel.nothing();
    else this.panel.show(node);
    if (node >= 0 && goes) {
      const k = Math.max(4, this.transform.k);
      const [x, y] = this.picture.base(node);
      this.goTo(zoomIdentity.translate(this.picture.width / 2 - x * k, this.picture.height / 2 - y * k).scale(k));
    }
    this.draw(false);
  }

  find(text, goes) {
    if (!goes) {
      this.matches = this.graph.find(text);
      this.match = -1;
      this.picture.found = text.trim() ? new Set(this.matches) : null;
      this.panel.tellFound(text, this.matches.length);
      this.draw(false);
    } else if (this.matches.length) {
      this.match = (this.match + 1) % this.matches.length;
      this.select(this.matches[this.match], true);
    }
  }

  /** Draws in the next frame; after a move all of it once more when nothing moves. */
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
