"""Parse files in separate processes."""
