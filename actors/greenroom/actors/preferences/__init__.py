"""Preferences of users: one actor for each user, and for each agent that works for none."""
