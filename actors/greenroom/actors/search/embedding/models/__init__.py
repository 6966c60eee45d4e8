"""Embedders: models and their backends."""
