"""Ingest files into a corpus: select, read and parse them, and watch for changes.

This runs in the process that a person or a client connects to, since the files are there. Files that may be
hostile are parsed in separate processes.
"""
