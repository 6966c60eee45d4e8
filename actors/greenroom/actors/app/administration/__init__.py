"""Administration: the state of a server, its users, and the erasure of a person."""
