"""JSON merge patches (RFC 7396) of documents that are kept as the bytes received."""

from __future__ import annotations

from typing import Final

import msgspec

_NULL: Final = b"null"
_split = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def merged(document: bytes, patch: bytes) -> bytes:
    """Return a JSON document after a patch. Values that the patch does not change stay the bytes they were.

    The patch is strictly valid JSON, which bounds how deep this goes. A number in it may be too large or too
    precise for a float.
    """
    if not patch.startswith(b"{"):
        return patch
    members = _split(document) if document.startswith(b"{") else {}
    for name, value in _split(patch).items():
        given = bytes(value)
        if given == _NULL:
            members.pop(name, None)
        else:
            before = bytes(members.get(name, msgspec.Raw(_NULL)))
            members[name] = msgspec.Raw(merged(before, given))
    return msgspec.json.encode(members)
