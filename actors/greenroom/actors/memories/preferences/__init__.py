"""Preferences: one actor for each user, and for each agent without a user."""
