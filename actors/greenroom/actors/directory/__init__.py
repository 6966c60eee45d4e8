"""The directory of sessions: what a session writes of itself, and the listing that reads it."""
