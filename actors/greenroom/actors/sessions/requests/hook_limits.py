"""Limits of hook events, for hooks, which have no time to import the events' types."""

MAX_TURNS = 400
MAX_TURN = 20_000
"""The most turns of a hook event (the newest), and the most characters of one (its two ends)."""
MAX_PROMPT = 20_000
