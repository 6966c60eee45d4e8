"""Detect secrets in texts and code, by published shapes and the text before a value.

Every search takes linear time: rare parts are searched first, a pattern reads a bounded number of characters
before it fails, and no part is matched twice. Each run of a hook imports this module, so this module imports
little, and compiles a pattern only when a text contains the pattern's first letters.

In a conversation any word may be a password, even the name of a function. In code, calls, indexed values,
members and names of types are no secrets.

Maintained detectors were tried. A detector in Python takes many times as long, and its import too long;
detectors in Go and Rust have 25 to 54 MB. `python -m bench secrets` measures a detector.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Final

from greenroom.actors.content.secrets.commands import command_secrets
from greenroom.actors.content.secrets.encoded import encoded_secrets
from greenroom.actors.content.secrets.names import named_secrets
from greenroom.actors.content.secrets.numbers import card_numbers, seed_phrases
from greenroom.actors.content.secrets.private_keys import private_keys
from greenroom.actors.content.secrets.shapes import PATTERNS, SHAPES, Shape
from greenroom.actors.content.secrets.talk import lone_secrets, spoken_secrets
from greenroom.actors.content.secrets.values import Span, compile_pattern, is_name, is_token

LEFT_OUT_BEGINS: Final = "[secret left out: "
LEFT_OUT: Final = re.compile(rf"{re.escape(LEFT_OUT_BEGINS)}[A-Za-z0-9. ]{{1,40}}\]")
"""The mark that replaces a secret in a text."""
_RUN: Final = re.compile(r"[A-Za-z0-9_.~%+/:=-]{20,}")
"""Runs of characters that may contain a secret with a shape. Most texts have few runs."""
_DOTTED: Final = r"[A-Za-z0-9._-]{24,}"
_WEB: Final = r"eyJ[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]+){2,4}"


def without_secrets(text: str) -> tuple[str, int]:
    """Replace each secret by ``[secret left out: KIND]``; return the text and their number."""
    parts: list[str] = []
    done = 0
    spans = secret_spans(text)
    for span in spans:
        parts += (text[done : span.first], f"{LEFT_OUT_BEGINS}{span.kind}]")
        done = span.last
    return "".join((*parts, text[done:])), len(spans)


def secret_spans(text: str, *, is_code: bool = False) -> list[Span]:
    """Return the spans of the secrets in a text, in order, without overlaps."""
    masked = LEFT_OUT.sub(lambda mark: "\0" * len(mark[0]), text)
    return _merge(sorted(_secrets(masked, is_code=is_code), key=lambda span: (span.first, -span.last)))


def _secrets(text: str, *, is_code: bool) -> Iterator[Span]:
    yield from private_keys(text)
    yield from _shaped(text)
    yield from _json_web_tokens(text)
    yield from named_secrets(text)
    yield from command_secrets(text)
    yield from spoken_secrets(text)
    if not is_code:
        yield from lone_secrets(text)
    yield from encoded_secrets(text)
    yield from card_numbers(text)
    yield from seed_phrases(text)


def _merge(spans: list[Span]) -> list[Span]:
    """Merge overlapping spans; the merged span has the kind of the most certain one."""
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
    """Find secrets with a published shape."""
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
        if pattern.part in runs and (pattern.is_spread or compile_pattern(pattern.pattern).search(runs)):
            for found in compile_pattern(pattern.pattern).finditer(text):
                yield Span(*found.span(found.re.groups), pattern.kind)


@cache
def _of_shape(shape: Shape, prefix: str) -> re.Pattern[str]:
    return re.compile(f"{re.escape(prefix)}[{shape.alphabet}]{{{shape.least},}}")


def _continues(text: str, first: int) -> bool:
    """Return whether a letter or digit precedes a place, other than an escaped line end."""
    before = text[max(0, first - 2) : first]
    return before[-1:].isalnum() and before not in {"\\n", "\\r", "\\t"}


def _json_web_tokens(text: str) -> Iterator[Span]:
    if "eyJ" not in text:
        return
    for run in compile_pattern(_DOTTED).finditer(text):
        at = text.find("eyJ", run.start(), run.end())
        if at >= 0 and (found := compile_pattern(_WEB).match(text, at, run.end())):
            yield Span(at, found.end(), "JSON web token")


_MEMBER: Final = r"\*?(?:[A-Za-z_$][\w$]*(?:\??\.|::|->))+[A-Za-z_$][\w$]*(?<![0-9]{2})"
_VARIABLE: Final = (
    r"(?i:[a-z_]*(?:pass(?:word|wd|phrase|code)?|pwd|secret|token|key|credentials?|auth)_?[0-9]{0,2})"
)
_TYPE: Final = (
    r"(?:u?int|bytes|float|str|string|uuid|char|varchar|text|sha|array|vec|list)_?[0-9]{1,3}(?:_t)?"
    r"|(?:[A-Z][a-z]*)+[0-9]{1,4}(?:[A-Z][a-z]+)*?(?:Hash|Hasher|Key|Token|Password|Secret|Type|String|Value|Params"
    r"|Config|Options|Settings|Credentials?|Provider|Encoder|Generator|Data|Field|Input|Ref)"
)
_IDENTIFIER: Final = r"[A-Za-z_]\w*"
_STATEMENT: Final = (
    r"(?m)^[ \t]{0,40}+(?:(?:async )?(?:def|class|func|function|fn|struct|impl)[ \t]\w{1,80}[ \t]{0,4}[({<:]"
    r"|(?:const|let|var)[ \t][\w{, }:]{1,80}=|(?:import|package)[ \t][\w.\"{]\S{0,80}[ \t]{0,4}$"
    r"|from[ \t]\S{1,80}[ \t]import\b|#include\b|(?:if|for|while|else)\b[^\n]{0,200}[:{][ \t]{0,4}$)"
)
_SETTING: Final = r"[ \t]*(?:export[ \t]+|set[ \t]+)?[\w.-]+="
_COMMENTS: Final = ("#", "//", "--", "*")
_LONGEST_LINE: Final = 200
"""At most this many characters before a value are read in its line."""


def spans_in_code(text: str) -> list[Span]:
    """Return the spans of the secrets in a file, in order, without overlaps."""
    spans = secret_spans(text, is_code=True)
    is_program = any(span.doubt for span in spans) and compile_pattern(_STATEMENT).search(text) is not None
    return [span for span in spans if not (span.doubt and _is_named(text, span, is_program=is_program))]


def _is_named(text: str, span: Span, *, is_program: bool) -> bool:
    """Return whether a span is a call, member, type or variable, and not a literal."""
    if text.startswith(("(", "["), span.last):
        return True
    line = text[max(0, span.first - _LONGEST_LINE) : span.first].rpartition("\n")[2]
    is_last = not text[span.last : span.last + 1].strip()
    if not line.rstrip().endswith(("=", ":")) or (is_last and compile_pattern(_SETTING).fullmatch(line)):
        return False
    value = text[slice(*span[:2])]
    if not text.startswith("@", span.last) and any(
        compile_pattern(pattern).fullmatch(value) for pattern in (_MEMBER, _VARIABLE, _TYPE)
    ):
        return True
    is_assigned = line.rstrip(" \t").endswith(" =") and line[-1:].isspace()
    return (
        is_program
        and is_assigned
        and not line.lstrip().startswith(_COMMENTS)
        and compile_pattern(_IDENTIFIER).fullmatch(value) is not None
    )
