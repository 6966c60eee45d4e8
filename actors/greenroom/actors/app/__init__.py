"""The agent, and the parts that combine all rooms: addressing, opening, services, prompts, resources."""
