"""Errors and exit codes, for all rooms."""
