"""Exclude files by name: secrets, hidden files, generated files.

A report names each secret; it counts the other files by reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from greenroom.actors.knowledge.ingest.files.secret_files import (
    is_closed_folder,
    is_closed_place,
    is_secret_file,
    is_secret_folder,
)

SECRET: Final = "it may hold secrets"  # noqa: S105  (a reason)
HIDDEN: Final = "it is hidden"
MADE: Final = "a program made it"
IGNORED: Final = "a .gitignore or .greenroomignore says so"
COPIED: Final = "it is another work tree of git"
EMPTY: Final = "it is empty"
NO_TEXT: Final = "it is no text"
UNREAD_PART: Final = "it is a part of a document, such as pictures or charts, that is not read"

_MADE_NAMES: Final = frozenset(
    {
        "bun.lock",
        "cargo.lock",
        "composer.lock",
        "gemfile.lock",
        "go.sum",
        "package-lock.json",
        "pdm.lock",
        "pipfile.lock",
        "pnpm-lock.yaml",
        "poetry.lock",
        "uv.lock",
        "yarn.lock",
    }
)
_MADE_FOLDERS: Final = frozenset(
    {"__pycache__", "bower_components", "jspm_packages", "node_modules", "pods", "site-packages"}
)
_MADE_SUFFIXES: Final = (".min.js", ".min.mjs", ".min.css", ".map", "_pb2.py", "_pb2_grpc.py", ".pb.go")
MARKS_OF_REPOSITORY: Final = frozenset({"HEAD", "config", "objects", "refs"})
"""Entries of a git directory (also of a bare repository), which holds remote addresses."""
MARKS_OF_MADE: Final = MARKS_OF_REPOSITORY | {"CACHEDIR.TAG", "pyvenv.cfg"}
"""Entries that mark a whole folder as generated: any one, but for a repository all of its entries."""
MARKS_OF_VENDORED: Final = frozenset({"modules.txt", "autoload.php"})
"""Files that show that a program fetched a folder ``vendor``."""
_PRIVATE_KEY: Final = re.compile(rb"-----BEGIN [A-Z ]*PRIVATE KEY|AGE-SECRET-KEY-1")
_MADE_CODE: Final = re.compile(
    rb"@generated\b|\bauto-?(?:matically )?generated (?:by|from|file|code)\b"
    rb"|\bgenerated\b.{0,200}\bdo not (?:edit|modify)\b",
    re.IGNORECASE,
)
_MARKED: Final = 1_024
"""Generated code has its mark within this many bytes from the beginning."""
_MINIFIED: Final = (".js", ".mjs", ".cjs", ".css")
_LONG_LINE: Final = 4_096
"""A longer line, in bytes, shows that a file with one of these endings is minified."""


def file_reason(path: str, root: str = "") -> str | None:
    """Return why a path is left out; folder names count only below ``root``."""
    if is_secret_file(path, root):
        return SECRET
    name = path.rpartition("/")[2]
    if name.startswith("."):
        return HIDDEN
    folded = name.lower()
    if folded in _MADE_NAMES or folded.endswith(_MADE_SUFFIXES):
        return MADE
    return None


def folder_reason(name: str) -> str | None:
    """Return why a whole folder of this name is left out; otherwise None."""
    if is_closed_folder(name):
        return SECRET
    if name.startswith("."):
        return SECRET if is_secret_folder(name) else HIDDEN
    return MADE if name.lower() in _MADE_FOLDERS else None


def closed_reason(path: str) -> str | None:
    """Return why a path is never read; None if it may be read."""
    if is_closed_place(path) or any(map(is_closed_folder, path.split("/"))):
        return SECRET
    return None


def content_reason(head: bytes) -> str | None:
    """Return why a file with this beginning is left out."""
    return SECRET if _PRIVATE_KEY.search(head) else None


def code_reason(name: str, head: bytes) -> str | None:
    """Return why code with this beginning is left out: it is generated or minified."""
    if _MADE_CODE.search(head[:_MARKED]):
        return MADE
    is_long = max(map(len, head.split(b"\n"))) > _LONG_LINE
    return MADE if is_long and name.lower().endswith(_MINIFIED) else None


def is_made(folder: str, names: Iterable[str]) -> bool:
    """Return whether a program generated or fetched a whole folder with these files."""
    found = frozenset(names)
    marks = MARKS_OF_MADE & found
    is_vendored = folder.endswith("/vendor") and not found.isdisjoint(MARKS_OF_VENDORED)
    return is_vendored or bool(marks - MARKS_OF_REPOSITORY) or marks >= MARKS_OF_REPOSITORY
