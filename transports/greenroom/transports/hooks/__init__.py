"""Hooks of clients: what they say, what waits for the owner of a folder, and what failed."""
