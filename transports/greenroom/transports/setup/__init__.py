"""Files of MCP clients: what is installed, what Greenroom adds there, and how that is taken back."""
