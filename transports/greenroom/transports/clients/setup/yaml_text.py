"""Edits of YAML mappings, at the positions that the parser reports.

All other lines stay the same, byte for byte; a rewrite of the document would not guarantee this.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

import yaml

_COMMENT: Final = re.compile(r"(?m)(^|(?<=\s))#[^\n]*")


def parse(text: str) -> Any:
    """Parse a text; raise ValueError if it is invalid. An empty text is {}."""
    try:
        value = yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError) as error:
        raise ValueError(" ".join(str(error).split())) from None
    return {} if value is None else value


def put(text: str, path: tuple[str, str], value: Any) -> str:
    """Set the value at a path of two names; the first one may be missing."""
    outer, inner = path
    if inner in (parse(text).get(outer) or {}):
        text = take(text, path)
    root: Any = yaml.compose(text, Loader=yaml.SafeLoader)
    found = _find(root, outer)
    if found is None and root is not None and root.flow_style:
        return _put_between_braces(text, root, outer, {inner: value})
    if found and isinstance(found[1], yaml.MappingNode) and found[1].value and found[1].flow_style:
        return _put_between_braces(text, found[1], inner, value)
    if found is None:
        apart = "" if not text or text.endswith("\n") else "\n"
        return f"{text}{apart}{outer}:\n" + _block(inner, value, 2)
    key, held = found
    if root.flow_style:
        return _put_between_braces(text, held, inner, value)
    if isinstance(held, yaml.MappingNode) and held.value:
        first = held.value[0][0].start_mark
        at = first.index - first.column
        return text[:at] + _block(inner, value, first.column) + text[at:]
    start, end = held.start_mark.index, held.end_mark.index
    below = _block(inner, value, key.start_mark.column + 2)
    line = text.find("\n", end)
    tail, rest = (text[end:], "") if line < 0 else (text[end:line], text[line + 1 :])
    return f"{text[:start].rstrip(' ')}{tail.rstrip()}\n{below}{rest}"


def take(text: str, path: tuple[str, ...]) -> str:
    """Remove the member at an existing path."""
    node: Any = yaml.compose(text, Loader=yaml.SafeLoader)
    outer = None
    for name in path[:-1]:
        outer, node = _find(node, name)  # type: ignore[misc]
    key, held = _find(node, path[-1])  # type: ignore[misc]
    if node.flow_style:
        return _take_from_braces(text, node, key, held)
    start = key.start_mark.index - key.start_mark.column
    end = text.find("\n", max(_end(held), key.end_mark.index))
    before, after = text[:start], "" if end < 0 else text[end + 1 :]
    if len(node.value) == 1 and outer is not None:
        colon = text.index(":", outer.end_mark.index) + 1
        return f"{text[:colon]} {{}}{text[colon:start]}{after}"
    return before + after


def masked(text: str, path: tuple[str, str] | None) -> str:
    """Replace every comment and value by …, except one value."""
    root: Any = yaml.compose(text, Loader=yaml.SafeLoader)
    ours = None
    if path is not None:
        ours = _find(_find(root, path[0])[1], path[1])[1]  # type: ignore[index]
    pieces, at = [], 0
    for node in sorted(_values(root, ours, set()), key=lambda each: each.start_mark.index):
        start, end = node.start_mark.index, _end(node) if node is ours else node.end_mark.index
        kept = text[start:end]
        pieces.append(_COMMENT.sub("# …", text[at:start]))
        pieces.append(kept if node is ours else "…" + kept[len(kept.rstrip()) :])
        at = end
    return "".join(pieces) + _COMMENT.sub("# …", text[at:])


def _values(node: Any, ours: Any, seen: set[int]) -> Iterator[Any]:
    """Yield all scalars except member names; yield our value as a whole."""
    if node is None or id(node) in seen:
        return
    seen.add(id(node))
    if node is ours or isinstance(node, yaml.ScalarNode):
        if node is ours or node.end_mark.index > node.start_mark.index:
            yield node
        return
    for each in node.value:
        yield from _values(each[1] if isinstance(each, tuple) else each, ours, seen)


def _put_between_braces(text: str, node: Any, name: str, value: Any) -> str:
    """Insert a member into a mapping in braces, in which JSON is valid YAML."""
    if not isinstance(node, yaml.MappingNode) or text[node.start_mark.index] != "{":
        raise ValueError(f"what {name} belongs to is no mapping")
    member = f"{json.dumps(name)}: {json.dumps(value, ensure_ascii=False)}"
    at = node.value[0][0].start_mark.index if node.value else node.start_mark.index + 1
    return f"{text[:at]}{member}{', ' if node.value else ''}{text[at:]}"


def _take_from_braces(text: str, node: Any, key: Any, held: Any) -> str:
    place = next(n for n, each in enumerate(node.value) if each[0] is key)
    if place + 1 < len(node.value):
        return text[: key.start_mark.index] + text[node.value[place + 1][0].start_mark.index :]
    start = node.value[place - 1][1].end_mark.index if place else key.start_mark.index
    return text[:start] + text[held.end_mark.index :]


def _find(node: Any, name: str) -> tuple[Any, Any] | None:
    held = node.value if isinstance(node, yaml.MappingNode) else ()
    return next(((key, value) for key, value in held if key.value == name), None)


def _end(node: Any) -> int:
    """Return a node's end without comments; the end that a block reports includes them."""
    if isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        return _end(last[1] if isinstance(last, tuple) else last)
    end: int = node.end_mark.index
    return end


def _block(name: str, value: Any, column: int) -> str:
    lines = yaml.safe_dump({name: value}, sort_keys=False, allow_unicode=True, width=10_000).splitlines()
    return "".join(f"{' ' * column}{line}\n" for line in lines)
