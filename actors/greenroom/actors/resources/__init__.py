"""Sessions and memories as resources: their URIs, what reading, listing and completing them answers."""
