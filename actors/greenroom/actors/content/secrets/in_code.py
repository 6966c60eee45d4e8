"""Secrets in files of a workspace: literals, not calls that return a secret.

In a conversation any word may be a password, even the name of a function. In code calls, indexed values,
members and names of types are no secrets.
"""

from __future__ import annotations

from typing import Final

from greenroom.actors.content.secrets.detect import secret_spans
from greenroom.actors.content.secrets.values import Span, compile_pattern

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
"""Characters before a value that are read in its line."""


def spans_in_code(text: str) -> list[Span]:
    """Return the spans of the secrets in a file, in order, without overlaps."""
    spans = secret_spans(text, is_code=True)
    is_program = any(span.doubt for span in spans) and compile_pattern(_STATEMENT).search(text) is not None
    return [span for span in spans if not (span.doubt and _is_named(text, span, is_program=is_program))]


def _is_named(text: str, span: Span, *, is_program: bool) -> bool:
    """Return whether a span is a call, member, type or variable, not a literal."""
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
