"""Checkpoints of graphs: one actor for each thread of a user or agent."""
