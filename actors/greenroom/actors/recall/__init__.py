"""Finding memories across namespaces: their owners are asked side by side, and what they find is merged."""
