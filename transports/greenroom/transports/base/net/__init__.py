"""Addresses, listening sockets, proxies, and the limits of connections and bodies."""
