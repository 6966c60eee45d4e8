"""Members of JSON objects put into a text and taken out, with comments and trailing commas kept.

The standard library reads the values; what it does not know is blanked first, so that offsets stay. Of the
libraries that edit such texts one needs Node and fetches packages, another a newer Python than ours.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final, NamedTuple

_OR_COMMENT: Final = re.compile(r'"(?:\\.|[^"\\])*"|//[^\n]*|/\*.*?\*/', re.DOTALL)
_OR_COMMA: Final = re.compile(r'"(?:\\.|[^"\\])*"|,(?=\s*[}\]])')
_TO_MASK: Final = re.compile(
    r"""(?P<key>"(?:\\.|[^"\\])*"\s*:)|"(?:\\.|[^"\\])*"|-?\d[\w.+-]*|(?P<line>//[^\n]*)|/\*.*?\*/""",
    re.DOTALL,
)
_SPACE: Final = re.compile(r"\s*")
_DECODER: Final = json.JSONDecoder()


class _Member(NamedTuple):
    name: str
    start: int
    value: int
    end: int


def parse(text: str) -> Any:
    """Return the value of a text; raise ValueError where it is none. An empty text is an empty object."""
    blank = _strict(text)
    return json.loads(blank, object_pairs_hook=_without_doubles) if blank.strip() else {}


def put(text: str, path: tuple[str, str], value: Any) -> str:
    """Return the text with the value at a path of two names, whose first one may be missing."""
    if not _strict(text).strip():
        text = f"{text}{{}}\n"
    outer, inner = path
    step = _step(text)
    root = _start(_strict(text), 0)
    held = _members(text, root)
    found = next((each for each in held if each.name == outer), None)
    if found is None:
        return _insert(text, root, outer, {inner: value}, step, 1)
    if text[found.value : found.end] == "null":
        text = f"{text[: found.value]}{{}}{text[found.end :]}"
    within = next((each for each in _members(text, found.value) if each.name == inner), None)
    if within is None:
        return _insert(text, found.value, inner, value, step, 2)
    shown = _shown(value, step, 2) if "\n" in text[within.value : within.end] else _shown(value, None, 2)
    return text[: within.value] + shown + text[within.end :]


def masked(text: str, path: tuple[str, str] | None) -> str:
    """Return the text with … for every comment and value but one, which may be shown."""
    if path is None:
        return _TO_MASK.sub(_mask, text)
    start = _start(_strict(text), 0)
    for name in path:
        member = next(each for each in _members(text, start) if each.name == name)
        start = member.value
    return (
        _TO_MASK.sub(_mask, text[: member.value])
        + text[member.value : member.end]
        + _TO_MASK.sub(_mask, text[member.end :])
    )


def take(text: str, path: tuple[str, ...]) -> str:
    """Return the text without the member at a path, which is there."""
    start = _start(_strict(text), 0)
    for name in path[:-1]:
        start = next(each.value for each in _members(text, start) if each.name == name)
    members = _members(text, start)
    place = next(n for n, each in enumerate(members) if each.name == path[-1])
    member = members[place]
    commented = _without_comments(text)
    after = _start(commented, member.end)
    if commented[after] == ",":
        begin = _line_start(text, member.start)
        end = after + 1
        if begin < member.start or text[begin - 1 : begin] == "\n":
            line_end = re.compile(r"[ \t]*\r?\n").match(text, end)
            return text[:begin] + text[line_end.end() if line_end else end :]
        return text[: member.start] + text[_SPACE.match(text, end).end() :]  # type: ignore[union-attr]
    if place:  # the last one, so that the comma before it goes, and what stands between them stays
        comma = _start(commented, members[place - 1].end)
        between = text[comma + 1 : member.start]
        return text[:comma] + (between if between.strip() else "") + text[member.end :]
    return text[: start + 1] + text[start + 1 : member.start].rstrip() + text[member.end :].lstrip()


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("a name stands twice in one object")
    return made


def _spaces(found: re.Match[str]) -> str:
    return found[0] if found[0].startswith('"') else re.sub(r"[^\n]", " ", found[0])


def _without_comments(text: str) -> str:
    return _OR_COMMENT.sub(_spaces, text)


def _strict(text: str) -> str:
    return _OR_COMMA.sub(_spaces, _without_comments(text))


def _mask(found: re.Match[str]) -> str:
    if found["key"]:
        return found[0]
    if found[0].startswith("/"):
        return "// …" if found["line"] else "/* … */"
    return '"…"' if found[0].startswith('"') else "…"


def _start(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    assert found is not None
    return found.end()


def _line_start(text: str, at: int) -> int:
    while text[at - 1] in " \t":
        at -= 1
    return at


def _members(text: str, start: int) -> list[_Member]:
    blank = _strict(text)
    if blank[start] != "{":
        raise ValueError("there is no object where the servers stand")
    members = []
    at = _start(blank, start + 1)
    while blank[at] == '"':
        name, after = _DECODER.raw_decode(blank, at)
        value = _start(blank, _start(blank, after) + 1)
        _, end = _DECODER.raw_decode(blank, value)
        members.append(_Member(name, at, value, end))
        at = _start(blank, end)
        if blank[at] == ",":
            at = _start(blank, at + 1)
    return members


def _step(text: str) -> str:
    found = re.search(r"^([ \t]+)\S", _strict(text), re.MULTILINE)
    return found[1] if found else "  "


def _shown(value: Any, step: str | None, depth: int) -> str:
    shown = json.dumps(value, indent=step, ensure_ascii=False)
    return shown if step is None else shown.replace("\n", "\n" + step * depth)


def _insert(text: str, start: int, name: str, value: Any, step: str, depth: int) -> str:
    """Put a member first into the object that starts there; comments of the others stay where they are."""
    rest = text[start + 1 :]
    members = _members(text, start)
    if members and "\n" not in text[start : members[0].start]:  # an object on one line stays one
        before = members[0].start
        return f"{text[:before]}{json.dumps(name)}: {_shown(value, None, depth)}, {text[before:]}"
    member = f"\n{step * depth}{json.dumps(name)}: {_shown(value, step, depth)}"
    if members:
        return f"{text[: start + 1]}{member},{rest}"
    # There are comments alone, or the object is closed on another line.
    if rest.lstrip(" \t").startswith(("\n", "\r\n", "/")):
        return text[: start + 1] + member + rest
    return text[: start + 1] + member + f"\n{step * (depth - 1)}" + rest.lstrip(" \t")
