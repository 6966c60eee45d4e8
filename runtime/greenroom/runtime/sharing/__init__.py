"""Several processes on one folder: one owns it, the others relay their requests to it.

`runtime` is the interface for programs. `owner_side` and `attached_side` exchange words, which `frames`
defines, over a `framed_connection`.
"""
