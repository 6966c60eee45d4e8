"""Find memories in a client's turns: decisions, failures, commands that worked."""
