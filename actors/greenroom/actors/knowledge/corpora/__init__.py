"""Corpora of documents: ingesting them, and finding passages."""
