"""Hook events of clients: store what they report, and answer with context."""
