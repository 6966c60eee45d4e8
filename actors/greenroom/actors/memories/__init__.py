"""The memory actor: one per agent, with everything that the agent keeps for itself."""
