"""Checkpoints of graphs: one actor for each thread of a user, or of an agent that works for none."""
