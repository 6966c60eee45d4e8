"""The map of memories: nodes and links from several actors, and their positions."""
