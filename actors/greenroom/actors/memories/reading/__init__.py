"""Reads of memories: by key, lists, search, export, statistics."""
