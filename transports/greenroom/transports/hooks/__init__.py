"""Hooks of clients: which there are, and what a client's event and our answer look like."""
