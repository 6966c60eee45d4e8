"""Why searches and listings come back empty; computed only for empty answers."""
