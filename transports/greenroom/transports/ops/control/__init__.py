"""The control socket of a running store: protocol, client and server."""
