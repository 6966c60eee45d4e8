"""Documents, entities and code: corpora, ingestion, workspaces."""
