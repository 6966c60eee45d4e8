"""Hooks of clients: what they tell is kept without its secrets, what they ask is answered as inert data."""
