"""Tools for code: read and search the folders that a client works in."""
