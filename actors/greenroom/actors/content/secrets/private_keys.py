"""Detect private keys in text form."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from greenroom.actors.content.secrets.values import Span, compile_pattern

_KEY_EDGE: Final = r"-----(BEGIN|END) (?:[A-Z0-9]{1,20} ){0,3}PRIVATE KEY(?: BLOCK)?-----"
_KEY_BODY: Final = (
    r"(?:(?:\\{1,4}[nr]|[\r\n]){1,4}"
    r"(?:[ \t>|#+*]|[0-9]{1,6}[\u2192:|\t]){0,16}"
    r"(?:(?:Proc-Type|DEK-Info|Version|Comment|Hash): [^\r\n\\]{1,200}"
    r"|[A-Za-z0-9+/=]{1,4096}+(?=[\"',]{0,3}(?:\s|\\|-----|$)))?[\"',]{0,3}[ \t]{0,4})*+"
)
_KEY_LINE: Final = r"[A-Za-z0-9+/=]{16,}"
_BETWEEN_LINES: Final = r"[\s\\nr>|#+*0-9\u2192:\"',]{1,24}(?:[A-Za-z0-9+/=]{1,15}[\s\\nr\"',]{1,8})?"
_LEAST_OF_KEY: Final = 16
_MOST_OF_KEY: Final = 8_192
"""At most this many characters of a private key in text form are read."""


def private_keys(text: str) -> Iterator[Span]:
    """Find private keys in text form: whole, without an end, or without a beginning."""
    if "PRIVATE KEY" not in text:
        return
    done = 0
    for edge in compile_pattern(_KEY_EDGE).finditer(text):
        if edge.start() < done:
            continue
        first, last = edge.span()
        if edge[1] == "BEGIN":
            body = compile_pattern(_KEY_BODY).match(text, last)
            done = last if body is None else body.end()
            is_key = done - last >= _LEAST_OF_KEY
            end = compile_pattern(_KEY_EDGE).match(text, done)
            done = done if end is None or end[1] == "BEGIN" else end.end()
        else:
            first = _first_line(text, max(done, first - _MOST_OF_KEY), first)
            done = last
            is_key = edge.start() - first >= _LEAST_OF_KEY
        if is_key:
            yield Span(first, done, "private key")


def _first_line(text: str, least: int, end: int) -> int:
    """Return the start of the lines of a key that end at a place."""
    first = end
    for line in reversed(list(compile_pattern(_KEY_LINE).finditer(text, least, end))):
        if not compile_pattern(_BETWEEN_LINES).fullmatch(text, line.end(), first):
            break
        first = line.start()
    return first
