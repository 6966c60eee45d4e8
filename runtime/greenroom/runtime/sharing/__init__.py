"""Several processes on one folder: one owns it, the others relay what they are asked to it.

`runtime` is the door for programs; `leader` is the owner's side and `follower` the attached one's. Both
speak the frames of `frames` over a `framed_connection`.
"""
