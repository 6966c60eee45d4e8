"""Requests about corpora, and their replies."""
