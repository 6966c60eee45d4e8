"""Shared by all rooms of the actors: validation, replies, access rights, keys, audit log."""
