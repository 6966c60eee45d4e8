"""Workspaces: the folders of code that clients work in, kept in corpora, and reading their files.

It runs in the process that a client is connected to, since that is where the files are.
"""
