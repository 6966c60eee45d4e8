"""The order of search results for a query: signals and their weights."""
