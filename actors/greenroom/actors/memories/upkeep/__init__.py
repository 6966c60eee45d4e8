"""Upkeep of memories: review, pairs, erasure, and the key-value interface."""
