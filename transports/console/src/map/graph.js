// The data of a map: the columns of the server's reply, links, and search.

export class Graph {
  constructor(mapped, paths, how) {
    this.mapped = mapped;
    this.nodes = mapped.nodes;
    this.edges = mapped.edges;
    this.count = mapped.nodes.id.length;
    this.paths = paths;
    this.how = how;
    this.x = Float32Array.from(mapped.nodes.x);
    this.y = Float32Array.from(mapped.nodes.y);
    this.numbers = new Map();
    for (let node = 0; node < this.count; node += 1) this.numbers.set(this.key(node), node);
    this.folded = mapped.nodes.label.map((label) => label.toLowerCase());
    this.links = Array.from({ length: this.count }, () => []);
    for (let edge = 0; edge < this.edges.source.length; edge += 1) {
      this.links[this.edges.source[edge]].push(edge);
      this.links[this.edges.target[edge]].push(edge);
    }
  }

  type(node) {
    return this.mapped.types[this.nodes.type[node]];
  }

  kind(node) {
    return this.mapped.kinds[this.nodes.kind[node]] ?? this.type(node);
  }

  /** Returns the name of a node's cluster; undefined without one. */
  cluster(node) {
    return this.mapped.clusters[this.mapped.cluster_of[node]];
  }

  namespace(node) {
    return this.mapped.namespaces[this.nodes.namespace[node]];
  }

  /** Returns a node's key, which is unique on every map. */
  key(node) {
    const below = this.type(node) === "conversation" ? `${this.namespace(node)}:` : "";
    return `${this.type(node)}:${below}${this.nodes.id[node]}`;
  }

  /** Returns the node with a key, -1 if it is not here. */
  number(key) {
    return this.numbers.get(key) ?? -1;
  }

  /** Returns the nodes that are new, gone (as they were before), and changed since another map. */
  changesSince(before) {
    const came = [];
    const changed = [];
    for (const [key, node] of this.numbers) {
      const was = before.number(key);
      if (was < 0) came.push(node);
      else if (this.facts(node) !== before.facts(was)) changed.push(node);
    }
    const went = [...before.numbers].filter(([key]) => this.number(key) < 0).map(([, node]) => node);
    return { came, changed, went };
  }

  facts(node) {
    const { label, uses, rating } = this.nodes;
    return JSON.stringify([label[node], this.kind(node), this.namespace(node), uses[node], rating[node]]);
  }

  /** Moves each node a part of the way from its place on another map; 1 is the whole way. */
  moveFrom(before, part) {
    const { x, y } = this.nodes;
    for (const [key, node] of this.numbers) {
      const was = before.number(key);
      const isNew = was < 0;
      this.x[node] = isNew ? x[node] : before.nodes.x[was] + part * (x[node] - before.nodes.x[was]);
      this.y[node] = isNew ? y[node] : before.nodes.y[was] + part * (y[node] - before.nodes.y[was]);
    }
  }

  /** Returns the path of a node's page. */
  path(node) {
    const path = this.paths[this.type(node)] + encodeURIComponent(this.nodes.id[node]);
    const namespace = this.namespace(node);
    if (this.type(node) === "memory" || namespace === undefined) return path;
    return `${path}&namespace=${encodeURIComponent(namespace)}`;
  }

  /** Returns a node's links: the label and the other node. */
  linked(node) {
    return this.links[node].map((edge) => {
      const [there, back] = this.how[this.mapped.links[this.edges.type[edge]]];
      const isSource = this.edges.source[edge] === node;
      return { how: isSource ? there : back, node: isSource ? this.edges.target[edge] : this.edges.source[edge] };
    });
  }

  /** Returns the nodes with a text in their labels. */
  find(text) {
    const wanted = text.trim().toLowerCase();
    if (!wanted) return [];
    return this.folded.flatMap((label, node) => (label.includes(wanted) ? [node] : []));
  }

  /** Returns the largest nodes, in descending order. */
  largest(most) {
    const { size } = this.nodes;
    return [...size.keys()].sort((one, other) => size[other] - size[one] || one - other).slice(0, most);
  }
}
