"""Who may come in, over any socket: API keys, access tokens, origins."""
