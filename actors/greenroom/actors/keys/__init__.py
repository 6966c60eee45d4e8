"""API keys: what they look like, who has one, what each lets its holder do, and when one ends."""
