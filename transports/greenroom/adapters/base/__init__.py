"""What several adapters have in common."""
