"""What several commands have in common: the terminal, opening a store, listening, who is let in, errors."""
