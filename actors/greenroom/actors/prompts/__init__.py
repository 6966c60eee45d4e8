"""Prompts: texts for a user to send to a model, filled with what the workspace, memory and session say."""
