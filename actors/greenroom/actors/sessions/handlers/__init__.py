"""Handlers of the requests to a session."""
