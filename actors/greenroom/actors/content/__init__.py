"""Readers of texts, times in words, documents and source code, without storage."""
