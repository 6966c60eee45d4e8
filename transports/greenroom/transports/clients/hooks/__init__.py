"""Hooks of clients: their input, the spool of events for the owner, and failures."""
