"""Handlers of a corpus's requests."""
