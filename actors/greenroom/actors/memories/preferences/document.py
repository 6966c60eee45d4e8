"""The document of preferences: its limits, its known members, and merge patches (RFC 7396)."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from greenroom.actors.core.auth.errors import invalid, too_large
from greenroom.actors.core.validation.parse import parse_part
from greenroom.actors.memories.preferences.requests import MAX_BYTES, MAX_MEMBERS, MAX_NAME, KnownPreferences

_FIELD: Final = "preferences"
_LONGEST_WORD: Final = 64
_NULL: Final = b"null"
_split = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def merge(document: bytes, patch: bytes) -> bytes:
    """Apply a merge patch to a JSON document; other values keep their bytes.

    The patch is strictly valid JSON, which limits the depth of the recursion. A number in it may be too large
    or too precise for a float.
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
            members[name] = msgspec.Raw(merge(before, given))
    return msgspec.json.encode(members)


def check_size(document: bytes) -> None:
    """Refuse a document, or a patch of one, that is too large."""
    if len(document) > MAX_BYTES:
        raise too_large(_FIELD, len(document), MAX_BYTES)


def check_document(document: bytes) -> None:
    """Check a whole document, which is strictly valid JSON, before it is stored."""
    check_size(document)
    members = msgspec.json.decode(document)
    if len(members) > MAX_MEMBERS:
        raise invalid(
            _FIELD,
            f"{_FIELD}: there are {len(members):,} members and the limit is {MAX_MEMBERS:,}; null removes",
            limit=MAX_MEMBERS,
            size=len(members),
        )
    _check_names(members)
    _check_compression(known_preferences(document).default_compression)


def known_preferences(document: bytes) -> KnownPreferences:
    """Return the members of a document that have a known meaning, or refuse invalid ones."""
    return parse_part(KnownPreferences, document, _FIELD)


def _check_names(document: dict[str, Any]) -> None:
    """Refuse a name that is too long."""
    waiting: list[Any] = [document]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            for name in value:
                if len(name) > MAX_NAME:
                    raise invalid(
                        _FIELD,
                        f"{_FIELD}: the name {name[:40]!r}… has {len(name):,} characters and the limit is "
                        f"{MAX_NAME}",
                        limit=MAX_NAME,
                        size=len(name),
                        unit="characters",
                    )
            waiting.extend(value.values())
        elif isinstance(value, list):
            waiting.extend(value)


def _check_compression(value: object) -> None:
    if isinstance(value, str):
        fits = 1 <= len(value) <= _LONGEST_WORD
    elif isinstance(value, int | float):
        fits = 0 <= value <= 1
    else:
        return
    if not fits:
        field = f"{_FIELD}.default_compression"
        raise invalid(
            field,
            f"{field}: it takes a ratio from 0 to 1, a word of up to {_LONGEST_WORD} characters, or true or "
            "false",
        )
