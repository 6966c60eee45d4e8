"""Bytes to messages and replies to bytes: MCP over standard input and output, and the command line.

Nothing is exported: the door for programs is `greenroom.actors`, and for people `greenroom`.
"""
