"""What the next agent must know of a session's conversation, taken from it word for word."""
