"""Clients of MCP: their table, the setup of their files, and their hooks."""
