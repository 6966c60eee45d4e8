"""Sessions, memories and corpora as resources: URIs, listing and completion."""
