"""Text to tokens and terms."""
