// What is on a map: the columns of the server's reply, what is linked to what, and what is looked for.

export class Graph {
  constructor(mapped, paths, how) {
    this.mapped = mapped;
    this.nodes = mapped.nodes;
    this.edges = mapped.edges;
    this.count = mapped.nodes.id.length;
    this.paths = paths;
    this.how = how;
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

  namespace(node) {
    return this.mapped.namespaces[this.nodes.namespace[node]];
  }

  /** Returns the path of a node's page. */
  path(node) {
    const path = this.paths[this.type(node)] + encodeURIComponent(this.nodes.id[node]);
    const namespace = this.namespace(node);
    if (this.type(node) === "memory" || namespace === undefined) return path;
    return `${path}&namespace=${encodeURIComponent(namespace)}`;
  }

  /** Returns what a node is linked to: how, and to which. */
  linked(node) {
    return this.links[node].map((edge) => {
      const [there, back] = this.how[this.mapped.links[this.edges.type[edge]]];
      const isSource = this.edges.source[edge] === node;
      return { how: isSource ? there : back, node: isSource ? this.edges.target[edge] : this.edges.source[edge] };
    });
  }

  /** Returns the nodes whose labels have a text in them. */
  find(text) {
    const wanted = text.trim().toLowerCase();
    if (!wanted) return [];
    return this.folded.flatMap((label, node) => (label.includes(wanted) ? [node] : []));
  }

  /** Returns the largest nodes, the largest first. */
  largest(most) {
    const { size } = this.nodes;
    return [...size.keys()].sort((one, other) => size[other] - size[one] || one - other).slice(0, most);
  }
}
