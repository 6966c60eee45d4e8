"""Corpora of documents: filling them, and finding passages."""
