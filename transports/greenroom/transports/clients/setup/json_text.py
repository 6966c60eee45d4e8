"""Edits of JSON that keep its comments and trailing commas.

The standard library parses the values; comments and trailing commas are blanked first, so offsets stay. There
are libraries for such edits, but one needs Node and fetches packages, and another needs a newer Python.
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
_COMMENT_AT_END: Final = re.compile(r"(?:[ \t]*/\*(?:(?!\*/)[^\n])*\*/)*[ \t]*(?://[^\r\n]*)?(?=\r?\n)")
_SPACE: Final = re.compile(r"\s*")
_DECODER: Final = json.JSONDecoder()


class _Member(NamedTuple):
    name: str | int
    start: int
    value: int
    end: int


def parse(text: str) -> Any:
    """Parse a text; raise ValueError if it is invalid. An empty text is {}."""
    blank = _strict(text)
    return json.loads(blank, object_pairs_hook=_without_doubles) if blank.strip() else {}


def put(text: str, path: tuple[str, str], value: Any) -> str:
    """Set the value at a path of two names; the first one may be missing."""
    if not _strict(text).strip():
        text = f"{text}{{}}\n"
    outer, inner = path
    step = _step(text)
    root = _start(_strict(text), 0)
    found = _find(text, root, outer)
    if found is None:
        return _insert(text, root, f"{json.dumps(outer)}: ", {inner: value}, step, 1)
    if text[found.value : found.end] == "null":
        text = f"{text[: found.value]}{{}}{text[found.end :]}"
    within = _find(text, found.value, inner)
    if within is None:
        return _insert(text, found.value, f"{json.dumps(inner)}: ", value, step, 2)
    dumped = _dump(value, step if "\n" in text[within.value : within.end] else None, step * 2)
    return text[: within.value] + dumped + text[within.end :]


def add(text: str, path: tuple[str, str], value: Any) -> str:
    """Append a value to the list at a path; the list may be missing."""
    root = _start(_strict(text), 0)
    outer = _find(text, root, path[0]) if _strict(text).strip() else None
    inner = _find(text, outer.value, path[1]) if outer else None
    if inner is None:
        return put(text, path, [value])
    step, items = _step(text), _members(text, inner.value, "[")
    if not items:
        return _insert(text, inner.value, "", value, step, 3)
    last = items[-1]
    begin = _line_start(text, last.start)
    commented = _without_comments(text)
    after = _start(commented, last.end)
    end = after + 1 if commented[after] == "," else last.end
    if text[begin - 1] == "\n":  # one item per line; a comment after the last item belongs to it
        item = f"\n{text[begin : last.start]}{_dump(value, step, text[begin : last.start])}"
        found = _COMMENT_AT_END.match(text, end)
        stop = found.end() if found else end
    else:
        item, stop = f" {_dump(value, None, '')}", end
    if end > last.end:
        return text[:stop] + item + "," + text[stop:]
    return text[:end] + "," + text[end:stop] + item + text[stop:]


def masked(text: str, *paths: tuple[str | int, ...] | None) -> str:
    """Replace every comment and value by …, except the values at some paths."""
    pieces: list[str] = []
    done = 0
    for start, end in sorted(_span(text, path) for path in paths if path is not None):
        pieces += [_TO_MASK.sub(_mask, text[done:start]), text[start:end]]
        done = end
    return "".join([*pieces, _TO_MASK.sub(_mask, text[done:])])


def take(text: str, path: tuple[str | int, ...]) -> str:
    """Remove the member, or the list item, at an existing path."""
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
    if place:  # the last member: remove the comma before it, and keep the text between them
        comma = _start(commented, members[place - 1].end)
        return text[:comma] + _commented_gap(text[comma + 1 : member.start], text[member.end :])
    before, rest = text[start + 1 : member.start], text[member.end :]
    return text[: start + 1] + _commented_gap(before, rest if before.strip() else rest.lstrip())


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


def _commented_gap(gap: str, rest: str) -> str:
    """Return the text around a removed member; comments before it stay."""
    if not gap.strip():
        return rest
    ends = rest.lstrip(" \t").startswith(("\n", "\r\n"))
    return (gap.rstrip() if ends else gap) + rest


def _span(text: str, path: tuple[str | int, ...]) -> tuple[int, int]:
    """Return the start and end of the value at an existing path."""
    start, end = _start(_strict(text), 0), len(text)
    for name in path:
        member = next(each for each in _members(text, start) if each.name == name)
        start, end = member.value, member.end
    return start, end


def _find(text: str, start: int, name: str) -> _Member | None:
    return next((each for each in _members(text, start, "{") if each.name == name), None)


def _members(text: str, start: int, opening: str = "{[") -> list[_Member]:
    blank = _strict(text)
    if blank[start] not in opening:
        raise ValueError("something else stands where an object or a list is needed")
    members: list[_Member] = []
    at = _start(blank, start + 1)
    while blank[at] not in "}]":
        name: str | int = len(members)
        value = at
        if blank[start] == "{":
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


def _dump(value: Any, step: str | None, margin: str) -> str:
    return json.dumps(value, indent=step, ensure_ascii=False).replace("\n", "\n" + margin)


def _insert(text: str, start: int, label: str, value: Any, step: str, depth: int) -> str:
    """Insert a value at the beginning of an object or list; comments keep their place."""
    rest = text[start + 1 :]
    members = _members(text, start)
    if members and "\n" not in text[start : members[0].start]:  # keep an object on one line
        before = members[0].start
        return f"{text[:before]}{label}{_dump(value, None, '')}, {text[before:]}"
    member = f"\n{step * depth}{label}{_dump(value, step, step * depth)}"
    if members:
        return f"{text[: start + 1]}{member},{rest}"
    # There are only comments, or the object is closed on another line.
    if rest.lstrip(" \t").startswith(("\n", "\r\n", "/")):
        return text[: start + 1] + member + rest
    return text[: start + 1] + member + f"\n{step * (depth - 1)}" + rest.lstrip(" \t")
