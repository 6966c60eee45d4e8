"""Presence: each process sends heartbeats to the owner of the folder."""
