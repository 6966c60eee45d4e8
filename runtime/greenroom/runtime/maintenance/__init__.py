"""Work on a whole store: backup, scrub, repair, re-encryption."""
