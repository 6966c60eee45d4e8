"""Actors, and what their handlers use: messages, the context, effects."""
