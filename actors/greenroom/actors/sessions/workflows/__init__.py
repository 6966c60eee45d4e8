"""Workflows: recorded steps by user and project, patterns, predictions."""
