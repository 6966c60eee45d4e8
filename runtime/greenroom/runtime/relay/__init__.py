"""Several processes on one folder: one owns it, the others relay what they are asked to it.

`_shared` is the door for programs; `_host` is the owner's side and `_guest` the attached one's. Both
speak the frames of `_frames` over a `_wire`.
"""
