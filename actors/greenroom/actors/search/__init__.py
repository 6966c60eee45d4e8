"""The engine of all three searches: index, ranking, embedding."""
