"""The memory actor: one for each namespace root, and one for each agent's bare id."""
