"""Changes of memories: store, rate, import, forget, remove, repair."""
