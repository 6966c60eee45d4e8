"""Check which folder may be a workspace, name its corpus, and resolve paths in it."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from glob import escape
from hashlib import blake2b
from shlex import quote
from typing import Final, NamedTuple

from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.core.base.unicode_forms import compose
from greenroom.actors.knowledge.ingest.files.exclusions import SECRET, file_reason
from greenroom.actors.knowledge.ingest.files.places import forbidden_reason, is_below

_FOREIGN: Final = re.compile(r"[^A-Za-z0-9_.@+-]+")
_MAX_SLUG: Final = 48
_DIGEST_BYTES: Final = 6


class Place(NamedTuple):
    """A file or folder of a workspace, without links.

    If ``is_allowed``, the file may be read although it looks like a secret.
    """

    root: str
    path: str
    is_allowed: bool = False

    @property
    def name(self) -> str:
        """The path below the root; empty for the root itself."""
        return self.path[len(self.root) + 1 :]


def workspace_name(root: str) -> str:
    """Return the corpus name for a folder: its name and a digest of its path."""
    slug = _FOREIGN.sub("-", os.path.basename(root)).strip("-.")[:_MAX_SLUG] or "workspace"  # noqa: PTH119
    digest = blake2b(root.encode(errors="surrogateescape"), digest_size=_DIGEST_BYTES).hexdigest()
    return f"{slug}-{digest}"


def check_root(named: str, closed: Sequence[str]) -> str:
    """Resolve links in a folder's path; refuse a folder that may not be a workspace."""
    if "\0" in named or not os.path.isabs(named):  # noqa: PTH117
        raise auth_errors.invalid("workspace", f"workspace: {named!r} must be a path from / on")
    root = os.path.realpath(named)
    reason = forbidden_reason(root, closed)
    if reason is None and not os.path.isdir(root):  # noqa: PTH112
        reason = "it is no folder, or not there"
    if reason is not None:
        raise auth_errors.invalid("workspace", f"workspace: {named!r} is no workspace: {reason}")
    return root


def find_on_disk(path: str) -> str:
    """Return the path on disk that differs from ``path`` only in its Unicode form."""
    if path.isascii() or os.path.lexists(path):
        return path
    at = ""
    for name in path.split("/")[1:]:
        found = f"{at}/{name}"
        if not name.isascii() and not os.path.lexists(found):
            try:
                same = [each for each in os.listdir(at or "/") if compose(each) == compose(name)]  # noqa: PTH208
            except OSError:
                return path
            if len(same) != 1:
                return path
            found = f"{at}/{same[0]}"
        at = found
    return at


def explain_reading(below: str) -> str:
    """Explain how to allow reading a likely secret; ``below`` is its relative path."""
    pattern = escape(below)
    shown = quote(pattern) if pattern.isprintable() else repr(pattern)
    return f"`greenroom serve --read-secrets {shown}` has read_file read it"


def resolve_file(
    field: str, named: str, roots: Sequence[str], closed: Sequence[str], secrets: Sequence[str] = ()
) -> Place:
    """Resolve an absolute path in one of the workspaces, or a path below the first.

    Args:
        field: The parameter that names the path.
        named: The path.
        roots: The workspaces' folders, from `check_root`; at least one.
        closed: Folders that are never read.
        secrets: Patterns of files that may be read although they look like secrets; not in folders of keys.

    Raises:
        Refusal: ``PERMISSION_DENIED``: the path is in no workspace, or is never read.
        ``VALIDATION_ERROR``: the text is not a path.
    """
    if "\0" in named or len(named) > 4_096:  # noqa: PLR2004
        raise auth_errors.invalid(field, f"{field}: a path is a text of at most 4,096 characters without NUL")
    path = os.path.realpath(os.path.join(roots[0], named))  # noqa: PTH118
    if any(is_below(path, each) for each in roots):
        path = os.path.realpath(find_on_disk(path))
    root = max((each for each in roots if is_below(path, each)), key=len, default=None)
    if root is None:
        raise auth_errors.permission_denied(
            field,
            f"{field}: {named!r} is not in {', '.join(roots)}; what is outside of workspaces is not read",
        )
    name, below = os.path.basename(path), path[len(root) + 1 :]  # noqa: PTH119
    is_allowed = any(fnmatchcase(name, each) or fnmatchcase(below, each) for each in secrets)
    reason = forbidden_reason(path, closed)
    is_secret = file_reason(path, root) == SECRET
    if reason is None and is_secret and not is_allowed and not os.path.isdir(path):  # noqa: PTH112
        reason = f"{SECRET}, by its name or place; {explain_reading(below)}"
    if reason is not None:
        raise auth_errors.permission_denied(field, f"{field}: {named!r} is not read: {reason}")
    return Place(root, path, is_allowed)
