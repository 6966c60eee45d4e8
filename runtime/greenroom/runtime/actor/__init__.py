"""Actors and what their handlers get: messages, context, effects."""
