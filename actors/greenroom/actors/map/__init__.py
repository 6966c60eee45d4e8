"""The map of memories: its nodes and links from several actors, and where they lie."""
