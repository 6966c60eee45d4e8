"""Prompts: texts for a model, with context from workspace, memory and session."""
