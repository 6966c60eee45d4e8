"""Tables of TOML put into a text and taken out; the library keeps everything else as it is."""

from __future__ import annotations

import tomllib
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError


def parse(text: str) -> Any:
    """Return the value of a text; raise ValueError where it is none."""
    return tomllib.loads(text)


def put(text: str, path: tuple[str, str], value: Any) -> str:
    """Return the text with the value at a path of two names, whose first one may be missing."""
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
    """Return the text without the member at a path, which is there."""
    try:
        document = tomlkit.parse(text)
        held: Any = document
        for name in path[:-1]:
            held = held[name]
        del held[path[-1]]
        return tomlkit.dumps(document)
    except TOMLKitError as error:
        raise ValueError(str(error)) from None
