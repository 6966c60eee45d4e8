"""Ingest files into a corpus: select, read and parse them, and watch for changes.

This runs in the process that a person or a client connects to, since the files are there. Separate processes
parse the files, because files may be hostile.
"""
