"""Secrets in a text are left out of it: by shapes that issuers publish, and by what stands before a value.

Every search takes time by the length of the text: what is rare is looked for first, a pattern takes a bounded
number of characters before it may fail, and nothing is taken twice. Each run of a hook imports this, so
little is imported here, and a pattern is compiled when a text has its first letters.

Detectors that are kept well were tried in its place. One in Python takes many times as long, and longer to be
imported than this may; those in Go and Rust weigh 25 to 54 MB. `python -m bench secrets` measures what one
finds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Final

from greenroom.actors.content.secrets.names import named_secrets
from greenroom.actors.content.secrets.shapes import PATTERNS, SHAPES, Shape
from greenroom.actors.content.secrets.values import Span, is_name, is_token

LEFT_OUT_BEGINS: Final = "[secret left out: "
LEFT_OUT: Final = re.compile(rf"{re.escape(LEFT_OUT_BEGINS)}[A-Za-z0-9. ]{{1,40}}\]")
"""What stands for a secret in a text."""
_KEY_EDGE: Final = re.compile(r"-----(BEGIN|END) (?:[A-Z0-9]{1,20} ){0,3}PRIVATE KEY(?: BLOCK)?-----")
_KEY_BODY: Final = re.compile(
    r"(?:(?:\\{1,4}[nr]|[\r\n]){1,4}"
    r"(?:[ \t>|#+*]|[0-9]{1,6}[\u2192:|\t]){0,16}"
    r"(?:(?:Proc-Type|DEK-Info|Version|Comment|Hash): [^\r\n\\]{1,200}"
    r"|[A-Za-z0-9+/=]{1,4096}+(?=[\"',]{0,3}(?:\s|\\|-----|$)))?[\"',]{0,3}[ \t]{0,4})*+"
)
_KEY_LINE: Final = re.compile(r"[A-Za-z0-9+/=]{16,}")
_BETWEEN_LINES: Final = re.compile(
    r"[\s\\nr>|#+*0-9\u2192:\"',]{1,24}(?:[A-Za-z0-9+/=]{1,15}[\s\\nr\"',]{1,8})?"
)
_LEAST_OF_KEY: Final = 16
_MOST_OF_KEY: Final = 8_192
"""Characters of a private key, as text."""
_RUN: Final = re.compile(r"[A-Za-z0-9_.~%+/:=-]{20,}")
"""What a secret with a shape of its own is part of. Most texts have few of these."""
_DOTTED: Final = re.compile(r"[A-Za-z0-9._-]{24,}")
_TOKEN: Final = re.compile(r"eyJ[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]+){2,4}")


def without_secrets(text: str) -> tuple[str, int]:
    """Return a text in which ``[secret left out: KIND]`` stands for each secret, and how many there were."""
    masked = LEFT_OUT.sub(lambda mark: "\0" * len(mark[0]), text)
    parts: list[str] = []
    done = 0
    spans = _merged(sorted(_secrets(masked), key=lambda span: (span.first, -span.last)))
    for span in spans:
        parts += (text[done : span.first], f"{LEFT_OUT_BEGINS}{span.kind}]")
        done = span.last
    return "".join((*parts, text[done:])), len(spans)


def _secrets(text: str) -> Iterator[Span]:
    yield from _private_keys(text)
    yield from _shaped(text)
    yield from _json_web_tokens(text)
    yield from named_secrets(text)


def _merged(spans: list[Span]) -> list[Span]:
    """Return what spans cover together; what several cover is called as the most certain of them is."""
    merged: list[Span] = []
    for span in spans:
        if merged and span.first < merged[-1].last:
            last = merged.pop()
            surest = min(last, span, key=lambda each: each.doubt)
            merged.append(surest._replace(first=last.first, last=max(last.last, span.last)))
        else:
            merged.append(span)
    return merged


def _shaped(text: str) -> Iterator[Span]:
    """Find what looks as issuers publish it."""
    runs = "\n".join(_RUN.findall(text))
    for shape in SHAPES:
        for prefix in shape.prefixes:
            if prefix in runs:
                for found in _of_shape(shape, prefix).finditer(text):
                    first, last = found.span()
                    last -= len(found[0]) - len(found[0].rstrip(".-"))
                    tail = text[first + len(prefix) : last]
                    if is_token(tail) and not (shape.alone and (_continues(text, first) or is_name(tail))):
                        yield Span(first, last, shape.kind)
    for pattern in PATTERNS:
        if pattern.part in runs:
            for found in _compiled(pattern.pattern).finditer(text):
                yield Span(*found.span(found.re.groups), pattern.kind)


@cache
def _of_shape(shape: Shape, prefix: str) -> re.Pattern[str]:
    return re.compile(f"{re.escape(prefix)}[{shape.alphabet}]{{{shape.least},}}")


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def _continues(text: str, first: int) -> bool:
    """Return whether a letter or digit stands before a place, and belongs to no escaped end of a line."""
    before = text[max(0, first - 2) : first]
    return before[-1:].isalnum() and before not in {"\\n", "\\r", "\\t"}


def _json_web_tokens(text: str) -> Iterator[Span]:
    if "eyJ" not in text:
        return
    for run in _DOTTED.finditer(text):
        at = text.find("eyJ", run.start(), run.end())
        if at >= 0 and (found := _TOKEN.match(text, at, run.end())):
            yield Span(at, found.end(), "JSON web token")


def _private_keys(text: str) -> Iterator[Span]:
    """Find private keys as text: whole, without their end, and without their beginning."""
    if "PRIVATE KEY" not in text:
        return
    done = 0
    for edge in _KEY_EDGE.finditer(text):
        if edge.start() < done:
            continue
        first, last = edge.span()
        if edge[1] == "BEGIN":
            body = _KEY_BODY.match(text, last)
            done = last if body is None else body.end()
            is_key = done - last >= _LEAST_OF_KEY
            end = _KEY_EDGE.match(text, done)
            done = done if end is None or end[1] == "BEGIN" else end.end()
        else:
            first = _first_line(text, max(done, first - _MOST_OF_KEY), first)
            done = last
            is_key = edge.start() - first >= _LEAST_OF_KEY
        if is_key:
            yield Span(first, done, "private key")


def _first_line(text: str, least: int, end: int) -> int:
    """Return where the first of the lines of a key begins, whose last one ends at a place."""
    first = end
    for line in reversed(list(_KEY_LINE.finditer(text, least, end))):
        if not _BETWEEN_LINES.fullmatch(text, line.end(), first):
            break
        first = line.start()
    return first
