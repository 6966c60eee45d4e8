"""One client of a connection: its identity, roots and subscriptions."""
