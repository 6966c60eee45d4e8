"""What a hook injects: the briefing, and memories for a prompt."""
