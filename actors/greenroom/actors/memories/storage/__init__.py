"""Storage of memories: records, indexes, links, and the directory of namespaces."""
