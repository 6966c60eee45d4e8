"""Helpers without a domain: default folders, file access, threads, compression, Unicode."""
