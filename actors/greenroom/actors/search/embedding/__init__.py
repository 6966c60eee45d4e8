"""Embedding: vectors from an embedder that may be absent, slow or failing.

If something cannot be read, loaded or called, the package raises an `EmbedderError`.

This package does not import numpy. A thread imports numpy, the tokenizers and the models for the first text.
"""
