"""Setup of MCP clients: add entries to their files, and remove these entries again."""
