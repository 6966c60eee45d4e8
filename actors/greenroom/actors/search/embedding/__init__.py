"""Embedding: vectors from an embedder that may be absent, slow or failing.

This package does not import numpy. A thread imports numpy, the tokenizers and the models for the first text.
"""
