"""The detector of secrets in texts and code."""
