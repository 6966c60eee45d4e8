"""The session actor: one per session, with its messages, fields, counts and search."""
