"""Requests about sessions, and their replies."""
