"""Secrets in base64: assignments, credentials, and data of Kubernetes Secrets."""

from __future__ import annotations

import binascii
import re
from collections.abc import Iterator
from functools import cache
from typing import Final

from greenroom.actors.content.secrets.values import Span, compile_pattern, is_placeholder

_NAME_PARTS: Final = "passw Passw PASSW passphrase secret SECRET token= TOKEN= _KEY= api_key pwd="
_NAMES: Final = tuple(_NAME_PARTS.split())
_ASSIGNED: Final = r"(?i)(?:passw\w{0,40}+|passphrase|pwd|secret\w{0,40}+|token|key)[\"']?\s{0,3}[=:]"
_RUN: Final = r"[A-Za-z0-9+/_-]{12,8192}+={0,2}"
_BEFORE: Final = 512
_LEAST: Final = 3
_AUTH: Final = r"[\"']?(?:_?auth|basic)[\"']?[ \t]{0,4}[:= ][ \t]{0,4}[\"']?([A-Za-z0-9+/_-]{8,400}+={0,2})"
_KIND: Final = r"[\"']?kind[\"']?\s{0,4}:\s{0,4}[\"']?Secret\b"
_DATA: Final = r"(?m)(?:^(?P<indent>[ \t]{0,12})|[{,]\s{0,12})[\"']?(?:string)?[dD]ata[\"']?:[ \t]{0,4}"
_LINE: Final = r"(?P<indent>[ \t]*+)[\"']?[\w.-]{1,100}[\"']?:[ \t]*+(?P<value>[^\n]*)"
_BLOCK: Final = r"[|>][0-9+-]{0,2}\s*(?:#.*)?"
_MEMBER: Final = (
    r"[\s{,]{0,400}+[\"']?[\w.-]{1,100}[\"']?\s{0,4}:\s{0,4}"
    r"(?:\"(?P<double>(?:[^\"\\\n]|\\.)*+)\"|'(?P<single>[^'\n]*+)'|(?P<bare>[^\s\"',{}]{1,8192}))"
)
_END_OF_DOCUMENT: Final = r"(?m)^---.*$"
_LEAST_VALUE: Final = 4


@cache
def _needles() -> tuple[str, ...]:
    """Return the base64 forms of the names, one for each of three alignments."""
    found = set()
    for name in _NAMES:
        for shift in range(3):
            coded = binascii.b2a_base64(b"\0" * shift + name.encode(), newline=False).decode().rstrip("=")
            whole = (shift + len(name)) * 8 // 6
            found.add(coded[(shift * 8 + 5) // 6 : whole])
    return tuple(found)


def encoded_secrets(text: str) -> Iterator[Span]:
    """Find secrets in base64."""
    for needle in _needles():
        at = text.find(needle)
        while at >= 0:
            run = _run_around(text, at)
            if run is not None and compile_pattern(_ASSIGNED).search(_decoded(text[slice(*run)])):
                yield Span(*run, "password in base64", 1)
            at = text.find(needle, max(at + len(needle), run[1] if run else 0))
    if "auth" in text or "asic" in text or "AUTH" in text:
        for found in re.finditer(_AUTH, text, re.IGNORECASE):
            user, sign, password = _decoded(found[1]).partition(":")
            if sign and user.isprintable() and password.isprintable() and len(password) >= _LEAST:
                yield Span(*found.span(1), "authorization", 1)
    if "Secret" in text and compile_pattern(_KIND).search(text):
        first = 0
        for end in (*(each.start() for each in compile_pattern(_END_OF_DOCUMENT).finditer(text)), len(text)):
            if compile_pattern(_KIND).search(text, first, end):
                yield from _of_kubernetes(text, first, end)
            first = end


def _run_around(text: str, at: int) -> tuple[int, int] | None:
    first = max(0, at - _BEFORE)
    before = re.search(r"[A-Za-z0-9+/_-]*\Z", text[first:at])
    first = at - (len(before[0]) if before else 0)
    run = compile_pattern(_RUN).match(text, first)
    return None if run is None else run.span()


def _decoded(value: str) -> str:
    """Decode base64 into text; an empty text if malformed."""
    value = value.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        return binascii.a2b_base64(
            value[: len(value) // 4 * 4 + (len(value) % 4 if len(value) % 4 > 1 else 0)] + "=="
        ).decode()
    except (binascii.Error, UnicodeDecodeError, ValueError):
        return ""


def _of_kubernetes(text: str, first: int, end: int) -> Iterator[Span]:
    """Find the data of a Kubernetes Secret in a span."""
    done = first
    for data in compile_pattern(_DATA).finditer(text, first, end):
        if data.start() < done:
            continue
        is_block = data["indent"] is not None and not text[data.end() : data.end() + 1].strip(" #\r\n")
        values = (
            _of_lines(text, data.end(), end, data["indent"]) if is_block else _of_object(text, data.end())
        )
        for begin, last in values:
            done = last
            value = text[begin:last]
            if len(value) >= _LEAST_VALUE and ("\n" in value or not is_placeholder(value)):
                yield Span(begin, last, "secret value", 1)


def _of_object(text: str, at: int) -> Iterator[tuple[int, int]]:
    """Yield the spans of values in a JSON object that begins at a place."""
    while member := compile_pattern(_MEMBER).match(text, at):
        at = member.end()
        yield member.span(member.lastgroup or 0)
        if text[at : at + 2].strip("\"'").startswith("}"):
            return


def _of_lines(text: str, at: int, end: int, outer: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of the values in the indented lines after a place."""
    block = None  # the start of a text of several lines, and the indentation of the text's name
    last = at
    at = (text.find("\n", at, end) + 1) or end
    while at < end:
        next_line = (text.find("\n", at, end) + 1) or end
        line = text[at:next_line].rstrip()
        indent = len(line) - len(line.lstrip())
        if line and block is not None and indent > block[1]:
            block = (block[0] or at + indent, block[1])
        elif line:
            if block is not None and block[0]:
                yield block[0], last
            block = None
            if indent <= len(outer):
                return
            found = compile_pattern(_LINE).match(line)
            if found is not None and re.fullmatch(_BLOCK, found["value"]):
                block = (0, indent)
            elif found is not None:
                value = found["value"].strip("\"'")
                begin = at + line.rfind(value)
                yield begin, begin + len(value)
        last = at + len(line) if line else last
        at = next_line
    if block is not None and block[0]:
        yield block[0], last
