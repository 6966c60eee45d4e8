"""Validation of input: JSON, types, limits, times."""
