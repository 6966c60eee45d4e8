// The picture of a graph: drawn onto its own canvas, which is moved and scaled during panning and zooming.
import { resolved } from "../theme.js";

const BATCH = 1_000; // lines in one stroke
const FAST = 12; // milliseconds of a drawing that can be repeated in each frame
const LABELS = 40;
const FEW_LABELS = 16; // beside names of clusters
const FONT = 12;
const NAME = 15; // pixels of a cluster's name
const CLOSE = 3; // from this zoom on, labels alone are shown

export class Picture {
  constructor(canvas, graph, colours) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d", { alpha: false });
    this.kept = document.createElement("canvas");
    this.keptContext = this.kept.getContext("2d", { alpha: false });
    this.graph = graph;
    this.colours = colours;
    this.cost = 0; // milliseconds of the last complete drawing
    this.drawnAt = null; // the transform of the cached drawing
    this.found = null; // the set of search results
    this.selected = -1;
    this.recolour();
  }

  /** Switches to another graph; canvas and selection stay. */
  take(graph, colours, selected) {
    this.graph = graph;
    this.colours = colours;
    this.selected = selected;
    this.across = this.along = undefined;
    this.drawnAt = null;
    this.recolour();
  }

  /** Reads the page's colours again, and draws each shape once in each size. */
  recolour() {
    const beside = this.canvas.parentElement;
    this.ground = resolved("--panel", beside);
    this.ink = resolved("--ink", beside);
    this.dim = resolved("--dim", beside);
    this.accent = resolved("--accent", beside);
    this.warn = resolved("--warn", beside);
    this.bad = resolved("--bad", beside);
    this.stamps = this.colours.groups.map((group) => ({ colour: resolved(group.colour, beside), shape: group.shape, sizes: new Map() }));
  }

  /** Fits the canvas to its place on the page. */
  resize() {
    const { clientWidth, clientHeight } = this.canvas;
    this.ratio = Math.min(2, devicePixelRatio);
    this.width = clientWidth;
    this.height = clientHeight;
    for (const each of [this.canvas, this.kept]) {
      each.width = Math.round(clientWidth * this.ratio);
      each.height = Math.round(clientHeight * this.ratio);
    }
    this.drawnAt = null;
  }

  /** Returns the pixels of a position in the graph, within -1 and 1, before panning and zooming. */
  base(node) {
    const { x, y } = this.graph;
    const scale = Math.min(this.width, this.height) / 2.3;
    return [this.width / 2 + x[node] * scale * this.stretch, this.height / 2 + y[node] * scale];
  }

  /** The ratio of width to height: it fills the canvas without distortion. */
  get stretch() {
    return Math.min(1.6, Math.max(1, this.width / this.height));
  }

  /** Returns the radius of a node in pixels: larger with few nodes, and when zoomed in. */
  radius(node, zoom) {
    const grown = Math.min(3, Math.max(0.9, Math.sqrt(400 / this.graph.count)));
    return Math.max(1.5, this.graph.nodes.size[node] * Math.min(3, grown * Math.sqrt(zoom)));
  }

  /** Shows the graph at a transform; while moving it moves the cached drawing, unless drawing is fast. */
  show(transform, isMoving) {
    const at = this.drawnAt;
    const isNear = at && Math.abs(transform.k / at.k - 1) < 1 && this.isCovered(transform, at);
    if (!isMoving || this.cost < FAST || !isNear) this.drawWhole(transform);
    const { context } = this;
    const before = this.drawnAt;
    const scale = transform.k / before.k;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.fillStyle = this.ground;
    context.fillRect(0, 0, this.canvas.width, this.canvas.height);
    const shift = [transform.x - before.x * scale, transform.y - before.y * scale].map((each) => each * this.ratio);
    context.drawImage(this.kept, shift[0], shift[1], this.kept.width * scale, this.kept.height * scale);
  }

  /** Returns whether the cached drawing covers at least half of the canvas. */
  isCovered(transform, at) {
    const scale = transform.k / at.k;
    return (
      Math.abs(transform.x - at.x * scale + (this.width * (scale - 1)) / 2) < this.width / 2 &&
      Math.abs(transform.y - at.y * scale + (this.height * (scale - 1)) / 2) < this.height / 2
    );
  }

  drawWhole(transform) {
    const began = performance.now();
    const context = this.keptContext;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.fillStyle = this.ground;
    context.fillRect(0, 0, this.kept.width, this.kept.height);
    context.scale(this.ratio, this.ratio);
    this.place(transform);
    this.drawLinks(context);
    this.drawNodes(context, transform);
    this.drawSelection(context, transform);
    this.drawLabels(context, transform, this.drawClusters(context, transform));
    this.drawnAt = { k: transform.k, x: transform.x, y: transform.y };
    this.cost = performance.now() - began;
  }

  /** Computes where each node is on the canvas. */
  place(transform) {
    const { count } = this.graph;
    this.across ??= new Float32Array(count);
    this.along ??= new Float32Array(count);
    for (let node = 0; node < count; node += 1) {
      const [x, y] = this.base(node);
      this.across[node] = x * transform.k + transform.x;
      this.along[node] = y * transform.k + transform.y;
    }
  }

  isSeen(node, margin = 20) {
    const x = this.across[node];
    const y = this.along[node];
    return x > -margin && y > -margin && x < this.width + margin && y < this.height + margin;
  }

  /** Draws the links, the important ones last. */
  drawLinks(context) {
    const { links } = this.graph.mapped;
    const telling = { supersedes: this.warn, contradicts: this.bad };
    context.lineWidth = 1;
    context.strokeStyle = this.dim;
    context.globalAlpha = this.found ? 0.1 : 0.28;
    this.strokeLinks(context, (type) => !(links[type] in telling));
    context.globalAlpha = 0.9;
    for (const [name, colour] of Object.entries(telling)) {
      context.strokeStyle = colour;
      context.setLineDash(name === "contradicts" ? [4, 3] : []);
      this.strokeLinks(context, (type) => links[type] === name);
    }
    context.setLineDash([]);
    context.globalAlpha = 1;
  }

  strokeLinks(context, isWanted) {
    const { source, target, type } = this.graph.edges;
    const { across, along } = this;
    let batch = 0;
    context.beginPath();
    for (let edge = 0; edge < source.length; edge += 1) {
      const from = source[edge];
      const to = target[edge];
      if (!isWanted(type[edge]) || (!this.isSeen(from) && !this.isSeen(to))) continue;
      context.moveTo(across[from], along[from]);
      context.lineTo(across[to], along[to]);
      batch += 1;
      if (batch % BATCH === 0) {
        context.stroke();
        context.beginPath();
      }
    }
    context.stroke();
  }

  drawNodes(context, transform) {
    const { of } = this.colours;
    for (let node = this.graph.count - 1; node >= 0; node -= 1) {
      if (!this.isSeen(node)) continue;
      const stamp = this.stamp(of[node], this.radius(node, transform.k));
      const half = stamp.width / this.ratio / 2;
      if (this.found) context.globalAlpha = this.found.has(node) ? 1 : 0.15;
      context.drawImage(stamp, this.across[node] - half, this.along[node] - half, 2 * half, 2 * half);
    }
    context.globalAlpha = 1;
  }

  /** Returns a small image of a group's shape, cached by size. */
  stamp(group, radius) {
    const { colour, shape, sizes } = this.stamps[group];
    const size = Math.round(radius * 2 * this.ratio);
    let made = sizes.get(size);
    if (!made) {
      made = document.createElement("canvas");
      made.width = made.height = size + 2;
      const context = made.getContext("2d");
      context.translate(size / 2 + 1, size / 2 + 1);
      context.fillStyle = colour;
      outline(context, shape, size / 2);
      context.fill();
      sizes.set(size, made);
    }
    return made;
  }

  drawSelection(context, transform) {
    const node = this.selected;
    if (node < 0) return;
    context.strokeStyle = this.accent;
    context.lineWidth = 2;
    context.beginPath();
    for (const { node: other } of this.graph.linked(node)) {
      context.moveTo(this.across[node], this.along[node]);
      context.lineTo(this.across[other], this.along[other]);
    }
    context.stroke();
    context.beginPath();
    context.arc(this.across[node], this.along[node], this.radius(node, transform.k) + 4, 0, 2 * Math.PI);
    context.lineWidth = 3;
    context.stroke();
  }

  /** Writes the names of clusters amid their memories, while the map is not zoomed in; returns their boxes. */
  drawClusters(context, transform) {
    const taken = [];
    if (transform.k > CLOSE || this.found) return taken;
    const { clusters, cluster_of: of } = this.graph.mapped;
    const members = clusters.map(() => [[], []]);
    for (let node = 0; node < of.length; node += 1) {
      if (of[node] < 0) continue;
      members[of[node]][0].push(this.across[node]);
      members[of[node]][1].push(this.along[node]);
    }
    context.font = `600 ${NAME}px system-ui, sans-serif`;
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.lineWidth = 5;
    context.lineJoin = "round";
    for (const [number, name] of clusters.entries()) {
      const half = context.measureText(name).width / 2;
      const [across, y] = members[number].map(middle);
      if (across < 0 || across > this.width) continue;
      const x = Math.max(half + 4, Math.min(this.width - half - 4, across));
      const box = [x - half, y - NAME / 2 - 2, x + half, y + NAME / 2 + 2];
      if (taken.some((other) => overlap(box, other))) continue;
      taken.push(box);
      context.strokeStyle = this.ground;
      context.strokeText(name, x, y);
      context.fillStyle = this.ink;
      context.fillText(name, x, y);
    }
    context.textAlign = "start";
    return taken;
  }

  /** Writes the labels of the largest visible nodes, without overlaps, also with what is `taken`. */
  drawLabels(context, transform, taken) {
    const most = taken.length ? Math.min(FEW_LABELS, this.width / 60) : LABELS;
    const names = taken.length;
    context.font = `${FONT}px system-ui, sans-serif`;
    context.textBaseline = "middle";
    context.lineWidth = 3;
    context.lineJoin = "round";
    const { size, label } = this.graph.nodes;
    const wanted = [...size.keys()].filter((node) => this.isSeen(node, 0) && (!this.found || this.found.has(node)));
    wanted.sort((one, other) => size[other] - size[one] || one - other);
    if (this.selected >= 0) wanted.unshift(this.selected);
    for (const node of wanted.slice(0, 10 * LABELS)) {
      if (taken.length - names >= most) break;
      const text = label[node].length > 32 ? `${label[node].slice(0, 31)}…` : label[node];
      const width = context.measureText(text).width;
      const apart = this.radius(node, transform.k) + 4;
      const right = this.across[node] + apart;
      const left = right + width < this.width ? right : this.across[node] - apart - width;
      const top = this.along[node] - FONT / 2 - 2;
      const box = [left, top, left + width, top + FONT + 4];
      if (left < 0 || taken.some((other) => overlap(box, other))) continue;
      taken.push(box);
      context.strokeStyle = this.ground;
      context.strokeText(text, left, this.along[node]);
      context.fillStyle = this.ink;
      context.fillText(text, left, this.along[node]);
    }
  }

  /** Returns the node at a point of the canvas, or the nearest one within a few pixels; -1 for none. */
  at(x, y, transform) {
    this.place(transform);
    let best = -1;
    let nearest = 24 ** 2;
    for (let node = 0; node < this.graph.count; node += 1) {
      const apart = Math.max(0, Math.hypot(this.across[node] - x, this.along[node] - y) - this.radius(node, transform.k)) ** 2;
      if (apart < nearest) {
        best = node;
        nearest = apart;
      }
    }
    return best;
  }

  /** Returns the nearest node on one side of another, or of the middle of the canvas; -1 for none. */
  towards(from, [right, down], transform) {
    this.place(transform);
    const x = from < 0 ? this.width / 2 : this.across[from];
    const y = from < 0 ? this.height / 2 : this.along[from];
    let best = -1;
    let nearest = Number.POSITIVE_INFINITY;
    for (let node = 0; node < this.graph.count; node += 1) {
      if (node === from || (this.found && !this.found.has(node))) continue;
      const ahead = (this.across[node] - x) * right + (this.along[node] - y) * down;
      const aside = Math.abs((this.across[node] - x) * down - (this.along[node] - y) * right);
      const apart = ahead + 2 * aside; // prefers straight directions
      if (ahead > 0 && aside <= ahead && apart < nearest) {
        best = node;
        nearest = apart;
      }
    }
    return best;
  }
}

function overlap(box, other) {
  return box[0] < other[2] && box[2] > other[0] && box[1] < other[3] && box[3] > other[1];
}

function middle(values) {
  return values.sort((one, other) => one - other)[Math.floor(values.length / 2)];
}

/** Makes a path of a shape around the middle. */
export function outline(context, shape, radius) {
  context.beginPath();
  if (shape === "disc") context.arc(0, 0, radius, 0, 2 * Math.PI);
  else if (shape === "square") context.rect(-radius * 0.85, -radius * 0.85, radius * 1.7, radius * 1.7);
  else {
    const corners = shape === "diamond" ? 4 : 3;
    for (let corner = 0; corner < corners; corner += 1) {
      const angle = (corner / corners) * 2 * Math.PI - Math.PI / 2;
      context.lineTo(radius * Math.cos(angle), radius * Math.sin(angle));
    }
    context.closePath();
  }
}
