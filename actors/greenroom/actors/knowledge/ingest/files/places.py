"""Which places may be read: below the roots of who asks, and never all of a machine or of a person."""

from __future__ import annotations

import os
import pwd
from collections.abc import Sequence
from contextlib import suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Final, NamedTuple

from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.ingest.identities import identities_of
from greenroom.actors.knowledge.ingest.files.exclusions import (
    MARKS_OF_REPOSITORY,
    SECRET,
    folder_reason,
    place_reason,
)

_SYSTEM: Final = ("/dev", "/proc", "/sys")


class Reach(NamedTuple):
    """The files that somebody may have read.

    Attributes:
        roots: The folders that they must be in; None for whoever may name any, as the user of a command.
        closed: Folders that nobody reads: the store's and that of its secrets.
        takes_client_folders: Whether the folders that the client works in are roots, too: it runs as the user
            that we run as.
        workspaces: Folders of code that may be searched and read.
        secrets: Patterns of names, or of paths below a workspace, of files in these that may be read though
            they may hold secrets.
    """

    roots: Sequence[str] | None = ()
    closed: tuple[str, ...] = ()
    takes_client_folders: bool = False
    workspaces: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()


CLIENT_FOLDERS: ContextVar[tuple[str, ...]] = ContextVar("CLIENT_FOLDERS", default=())
"""The folders that the client of the task that asks says it works in; a transport sets it."""


def checked_place(named: str, reach: Reach) -> str:
    """Return a named path as it is without links.

    Raises:
        Refusal: ``VALIDATION_ERROR``: it may not be read, or is not there.
    """
    if "\0" in named or not named:
        raise auth_errors.invalid("paths", "paths: a path is a text without NUL")
    if reach.roots is not None and not os.path.isabs(named):  # noqa: PTH117
        raise auth_errors.invalid("paths", f"paths: {named!r} must begin with /: only you know where you are")
    path = os.path.realpath(named)
    if reach.roots is not None and not any(is_below(path, root) for root in _roots(reach)):
        raise auth_errors.permission_denied(
            "paths",
            f"paths: {named!r} is in no folder that may be read here; the server's operator allows folders "
            "with --documents, and texts can be sent themselves",
        )
    if (reason := never_read(path, reach.closed)) is not None:
        raise auth_errors.invalid("paths", f"paths: {named!r} is not read: {reason}")
    if not os.path.exists(path):  # noqa: PTH110
        raise auth_errors.invalid(
            "paths", f"paths: {named!r} is not there; what a corpus has of it stays until it is removed"
        )
    return path


def may_look(path: str, reach: Reach) -> bool:
    """Return whether somebody may hear if the file at a path is still what was read of it.

    A client that runs as the user that we run as could look itself.
    """
    if not os.path.isabs(path) or os.path.normpath(path) != path or "\0" in path:  # noqa: PTH117
        return False
    anywhere = reach.roots is None or reach.takes_client_folders
    if not anywhere and not any(is_below(path, os.path.realpath(root)) for root in reach.roots or ()):
        return False
    return never_read(path, reach.closed) is None


def _roots(reach: Reach) -> set[str]:
    """Return the folders that files must be in; never a whole machine, or all that somebody has."""
    return {os.path.realpath(root) for root in reach.roots or ()} - _homes()


def is_below(path: str, folder: str) -> bool:
    """Return whether a path is a folder's, or in it."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def never_read(path: str, closed: Sequence[str]) -> str | None:
    """Return why a place is never read, which is a path without links; None where it may be."""
    homes = _homes()
    above_homes = identities_of(str(each) for home in homes for each in (Path(home), *Path(home).parents))
    if any(is_below(home, path) for home in homes) or not above_homes.isdisjoint(identities_of([path])):
        return "it is a whole machine, or all that somebody has; name the folders with documents"
    if any(is_below(path, system) for system in _SYSTEM):
        return "what is there are no files"
    parts = Path(path).parts
    folders = (Path(path), *Path(path).parents)
    is_own = any(is_below(path, os.path.realpath(own)) for own in closed)
    if is_own or not identities_of(closed).isdisjoint(identities_of(map(str, folders))):
        return "it belongs to Greenroom"
    if any(part.lower() == ".git" for part in parts) or any(map(_is_repository, folders)):
        return "it is git's own, with addresses that may hold secrets"
    if any(folder_reason(part) == SECRET for part in parts):
        return SECRET
    return place_reason(path)


def _is_repository(folder: Path) -> bool:
    """Return whether a folder is one that git keeps a repository in, whatever it is called."""
    return all(os.path.lexists(folder / mark) for mark in MARKS_OF_REPOSITORY)


def _homes() -> set[str]:
    homes = {"/", os.path.expanduser("~")}  # noqa: PTH111
    with suppress(KeyError):  # a container's user without an entry
        homes.add(pwd.getpwuid(os.getuid()).pw_dir)
    return {os.path.realpath(home) for home in homes}
