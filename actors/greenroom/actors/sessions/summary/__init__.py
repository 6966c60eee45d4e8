"""Extractive summaries and briefings of a session's conversation."""
