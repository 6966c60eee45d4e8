"""What is done to a whole store: backup, scrub, repair, re-encryption."""
