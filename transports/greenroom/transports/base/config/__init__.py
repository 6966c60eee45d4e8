"""The settings: declared, parsed, and loaded from flags, environment and file."""
