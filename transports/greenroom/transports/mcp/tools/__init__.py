"""Tools: which are listed, their schemas, names and errors."""
