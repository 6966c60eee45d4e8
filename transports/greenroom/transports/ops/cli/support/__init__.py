"""Shared parts of commands: the terminal, the store, listeners, authentication and errors."""
