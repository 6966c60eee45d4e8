"""Parts that commands share: the terminal, the store, listeners, authentication and errors."""
