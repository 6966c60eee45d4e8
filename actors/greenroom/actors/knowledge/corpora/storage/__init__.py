"""Storage of a corpus: documents, entities, mentions."""
