"""One client with its state, and the notes of its work."""
