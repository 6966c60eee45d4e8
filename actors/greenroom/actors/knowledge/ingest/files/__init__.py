"""Select the files to read: walking, exclusions, watching."""
