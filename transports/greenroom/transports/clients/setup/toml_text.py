"""Edits of TOML tables; the library keeps the rest of the text."""

from __future__ import annotations

import re
import tomllib
from collections.abc import MutableMapping
from typing import Any, Final

import tomlkit
from tomlkit.exceptions import TOMLKitError

_OR_COMMENT: Final = re.compile(r""""(?:\\.|[^"\\])*"|'[^'\n]*'|#[^\n]*""")


def parse(text: str) -> Any:
    """Return the value of a text; raise ValueError if it is invalid."""
    return tomllib.loads(text)


def put(text: str, path: tuple[str, str], value: Any) -> str:
    """Set the value at a path of two names; the first one may be missing."""
    outer, inner = path
    try:
        document = tomlkit.parse(text)
        if outer not in document:
            document[outer] = tomlkit.table(is_super_table=True)
        document[outer][inner] = value
        return tomlkit.dumps(document)
    except TOMLKitError as error:
        raise ValueError(str(error)) from None


def take(text: str, path: tuple[str, ...]) -> str:
    """Remove the member at an existing path."""
    try:
        document = tomlkit.parse(text)
        held: Any = document
        for name in path[:-1]:
            held = held[name]
        del held[path[-1]]
        return tomlkit.dumps(document)
    except TOMLKitError as error:
        raise ValueError(str(error)) from None


def masked(text: str, path: tuple[str, str] | None) -> str:
    """Replace every comment and value by …, except one value."""
    document = tomlkit.parse(text)
    _mask(document, path or ())
    return _OR_COMMENT.sub(
        lambda found: "# …" if found[0].startswith("#") else found[0], tomlkit.dumps(document)
    )


def _mask(held: MutableMapping[str, Any], ours: tuple[str, ...]) -> None:
    for name, value in list(held.items()):
        rest = ours[1:] if ours[:1] == (name,) else ()
        if ours[:1] == (name,) and not rest:
            continue
        if isinstance(value, MutableMapping):
            _mask(value, rest)
        elif isinstance(value, list) and value and all(isinstance(each, MutableMapping) for each in value):
            for each in value:
                _mask(each, ())
        else:
            held[name] = "…"
