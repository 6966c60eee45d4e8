"""Compression of texts for prompts within a budget: pure functions, no model."""
