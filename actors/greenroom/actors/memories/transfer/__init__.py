"""Import and export of memories, in several formats."""
