"""Stored form of sessions: records, message log, directory."""
