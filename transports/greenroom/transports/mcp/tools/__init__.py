"""Tools: their listing, schemas, names and errors."""
