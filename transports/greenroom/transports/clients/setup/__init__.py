"""Setup of MCP clients: edits of their files, and the removal of those edits."""
