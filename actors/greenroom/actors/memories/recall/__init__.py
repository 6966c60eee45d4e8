"""Search across namespaces: ask their actors in parallel, and merge the hits."""
