"""Embedding: vectors of memories and queries, from an embedder that may be absent, late or failing.

Importing this package imports no numbers: numpy, the tokenizers and the models come in when
the first text is to be embedded, in a thread.
"""
