"""The agent, and what combines all rooms: addressing, opening, services, prompts, resources."""
