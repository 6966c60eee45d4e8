"""Which folder may be a workspace, what it is called, and which file is meant in one."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from hashlib import blake2b
from typing import Final, NamedTuple

from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.core.base.unicode_forms import composed
from greenroom.actors.knowledge.ingest.files.exclusions import SECRET, file_reason
from greenroom.actors.knowledge.ingest.files.places import is_below, never_read

_FOREIGN: Final = re.compile(r"[^A-Za-z0-9_.@+-]+")
_MAX_SLUG: Final = 48
_DIGEST_BYTES: Final = 6


class Place(NamedTuple):
    """A file or a folder of a workspace, as it is without links.

    Attributes:
        root: The workspace's folder.
        path: The file or the folder.
        is_allowed: Whether it may be read though it may hold secrets.
    """

    root: str
    path: str
    is_allowed: bool = False

    @property
    def name(self) -> str:
        """Its path below the root; empty for that itself."""
        return self.path[len(self.root) + 1 :]


def workspace_name(root: str) -> str:
    """Return what the corpus of a folder is called: the folder's name, and digits of its path."""
    slug = _FOREIGN.sub("-", os.path.basename(root)).strip("-.")[:_MAX_SLUG] or "workspace"  # noqa: PTH119
    digest = blake2b(root.encode(errors="surrogateescape"), digest_size=_DIGEST_BYTES).hexdigest()
    return f"{slug}-{digest}"


def checked_root(named: str, closed: Sequence[str]) -> str:
    """Return a folder that is to be a workspace as it is without links.

    Raises:
        Refusal: ``VALIDATION_ERROR``: it may not be one, or is none.
    """
    if "\0" in named or not os.path.isabs(named):  # noqa: PTH117
        raise auth_errors.invalid("workspace", f"workspace: {named!r} must be a path from / on")
    root = os.path.realpath(named)
    reason = never_read(root, closed)
    if reason is None and not os.path.isdir(root):  # noqa: PTH112
        reason = "it is no folder, or not there"
    if reason is not None:
        raise auth_errors.invalid("workspace", f"workspace: {named!r} is no workspace: {reason}")
    return root


def as_on_disk(path: str) -> str:
    """Return a path that is not there as the one on disk that differs in the form of Unicode alone.

    Args:
        path: From / on, without links as far as it is there.
    """
    if path.isascii() or os.path.lexists(path):
        return path
    at = ""
    for name in path.split("/")[1:]:
        found = f"{at}/{name}"
        if not name.isascii() and not os.path.lexists(found):
            try:
                same = [each for each in os.listdir(at or "/") if composed(each) == composed(name)]  # noqa: PTH208
            except OSError:
                return path
            if len(same) != 1:
                return path
            found = f"{at}/{same[0]}"
        at = found
    return at


def checked_file(
    field: str, named: str, roots: Sequence[str], closed: Sequence[str], secrets: Sequence[str] = ()
) -> Place:
    """Return what a path means in some workspaces: from / on, or below the first of them.

    Args:
        field: The parameter that names it.
        named: The path.
        roots: The workspaces' folders, as `checked_root` returns them; at least one.
        closed: Folders that nobody reads.
        secrets: Patterns of files that may be read though they may hold secrets; not in folders of keys.

    Raises:
        Refusal: ``PERMISSION_DENIED``: it is in none of them, or is not read by anybody.
            ``VALIDATION_ERROR``: it is no path.
    """
    if "\0" in named or len(named) > 4_096:  # noqa: PLR2004
        raise auth_errors.invalid(field, f"{field}: a path is a text of at most 4,096 characters without NUL")
    path = os.path.realpath(os.path.join(roots[0], named))  # noqa: PTH118
    if any(is_below(path, each) for each in roots):
        path = os.path.realpath(as_on_disk(path))
    root = max((each for each in roots if is_below(path, each)), key=len, default=None)
    if root is None:
        raise auth_errors.permission_denied(
            field,
            f"{field}: {named!r} is not in {', '.join(roots)}; what is outside of workspaces is not read",
        )
    name, below = os.path.basename(path), path[len(root) + 1 :]  # noqa: PTH119
    is_allowed = any(fnmatchcase(name, each) or fnmatchcase(below, each) for each in secrets)
    reason = never_read(path, closed)
    if reason is None and file_reason(name) == SECRET and not is_allowed:
        reason = SECRET
    if reason is not None:
        raise auth_errors.permission_denied(field, f"{field}: {named!r} is not read: {reason}")
    return Place(root, path, is_allowed)
