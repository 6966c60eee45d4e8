// The colour of each node, and its meaning. Types also have shapes.

const COLOURS = 6;
const OTHERS = { namespace: "other namespaces", cluster: "other memories" };
const SHAPES = { memory: "disc", session: "square", conversation: "diamond", entity: "triangle" };

/** Returns groups `{label, colour, shape, count}`, those of `before` first, and the group's number of each node. */
export function grouped(graph, by, before) {
  if (by === "cluster" && !graph.mapped.clusters.length) return grouped(graph, "type", before);
  const found = new Map();
  const names = [];
  for (let node = 0; node < graph.count; node += 1) {
    const isMemory = graph.type(node) === "memory";
    const name = isMemory && by !== "type" ? (graph[by](node) ?? OTHERS[by]) : graph.kind(node);
    names.push(name);
    const group = found.get(name) ?? { label: name, shape: SHAPES[graph.type(node)], isMemory, count: 0 };
    group.count += 1;
    found.set(name, group);
  }
  const place = new Map(before?.groups.map((group, number) => [group.label, number]));
  const placeOf = (group) => place.get(group.label) ?? place.size;
  const all = [...found.values()].sort(
    (one, other) => other.isMemory - one.isMemory || placeOf(one) - placeOf(other) || other.count - one.count,
  );
  const kept = by in OTHERS ? all.filter((group) => group.isMemory).slice(0, COLOURS) : all;
  const groups = kept.map((group, number) => ({ ...group, colour: `--chart-${(number % COLOURS) + 1}` }));
  const numbers = new Map(groups.map((group, number) => [group.label, number]));
  if (by in OTHERS) {
    for (const group of all.filter((each) => !numbers.has(each.label))) {
      const label = group.isMemory ? OTHERS[by] : group.label;
      const at = groups.findIndex((each) => each.label === label);
      if (at < 0) groups.push({ ...group, label, colour: "--dim" });
      else groups[at].count += group.count;
      numbers.set(group.label, at < 0 ? groups.length - 1 : at);
    }
  }
  return { groups, of: names.map((name) => numbers.get(name)) };
}
