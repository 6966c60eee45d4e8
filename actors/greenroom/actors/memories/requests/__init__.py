"""Requests about memories, and their replies."""
