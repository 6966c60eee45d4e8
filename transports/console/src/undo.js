// Undoing an action: the requests for it, by the request that was sent and its reply.

/** Returns the requests that undo a request, in order; none if it cannot be undone. */
export function undoOf(name, values, answer) {
  switch (name) {
    case "update_memory":
    case "restore_memory":
      return [before(answer)];
    case "merge_memories":
      return answer.changed.map(before).reverse();
    case "forget_memory":
      return answer.memories.map((each) => ["restore_memory", { memory_id: each.memory_id, expected_version: each.version }]);
    case "move_memory":
      return [["move_memory", { memory_id: answer.memory_id, to: answer.before, expected_version: answer.version }]];
    case "rate_memory":
      return [["withdraw_rating", { memory_id: answer.memory_id, expected_rating: values.rating }]];
    case "settle_memory_pair": {
      const { memory_id, other_id, settled } = answer;
      return [["settle_memory_pair", { memory_id, other_id, settled: !settled }]];
    }
    default:
      return [];
  }
}

/** The version before, unless someone has changed or forgotten the memory since. */
function before({ memory_id, version }) {
  return ["restore_memory", { memory_id, version: version - 1, expected_version: version, expected_forgotten: false }];
}
