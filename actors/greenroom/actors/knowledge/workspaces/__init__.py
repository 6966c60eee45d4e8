"""Workspaces: indexed folders of code that clients work in.

This runs in the process that a client is connected to, since the files are there.
"""
