"""Sessions, memories and corpora as resources: their URIs, what listing and completing them answers."""
