"""What embedders call: opening a runtime, asking actors, callbacks."""
