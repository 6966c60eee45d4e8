"""Clients of MCP: a table of clients, the setup of their files, and their hooks."""
