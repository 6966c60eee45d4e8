"""What was saved: for each operation the tokens of its answers beside those of a stated baseline."""
