"""The interface for embedders: open a runtime and send requests to actors."""
