"""Convert session ids of a framework, of any text, to ids of Greenroom's sessions."""

from __future__ import annotations

import re
from hashlib import blake2b
from typing import Final

_PLAIN: Final = re.compile(r"[A-Za-z0-9_.-]{1,128}")
_FOREIGN: Final = re.compile(r"[^A-Za-z0-9.-]")
_ESCAPED: Final = "x-"
_DIGESTED: Final = "xx-"
_RESERVED: Final = frozenset({"all", "current"})
_LONGEST: Final = 128
_SHOWN: Final = 80


def session_key(session_id: str) -> str:
    """Return the id of the session of Greenroom; different ids have different ones.

    An id of 1-128 of ``A-Za-z0-9_.-`` is unchanged. In others, each unsuitable byte becomes ``_`` and two
    hexadecimal digits, after ``x-``; what is too long ends with a digest, after ``xx-``.

    Raises:
        ValueError: it is no text, or has a lone surrogate.
    """
    if not isinstance(session_id, str):
        raise ValueError(f"session_id: it takes a text, and got {type(session_id).__name__}")  # noqa: TRY004
    try:
        raw = session_id.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"session_id: it holds a lone surrogate at character {error.start}") from None
    is_ours = session_id.startswith((_ESCAPED, _DIGESTED))
    if _PLAIN.fullmatch(session_id) is not None and session_id not in _RESERVED and not is_ours:
        return session_id
    written = _FOREIGN.sub(lambda found: "".join(f"_{byte:02x}" for byte in found[0].encode()), session_id)
    if len(_ESCAPED) + len(written) <= _LONGEST:
        return _ESCAPED + written
    return f"{_DIGESTED}{written[:_SHOWN]}-{blake2b(raw, digest_size=16).hexdigest()}"
