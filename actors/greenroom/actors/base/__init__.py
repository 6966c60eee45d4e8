"""Helpers without a domain of their own: times, cursors, JSON, token budgets."""
