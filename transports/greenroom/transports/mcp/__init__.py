"""MCP: JSON-RPC messages to requests and back, in both protocol eras, on any transport."""
