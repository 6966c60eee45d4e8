"""Authentication at sockets: API keys, access tokens, origins."""
