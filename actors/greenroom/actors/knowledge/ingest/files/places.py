"""Check which files may be read: only below the caller's roots, never a whole machine."""

from __future__ import annotations

import os
import pwd
from collections.abc import Iterable, Sequence
from contextlib import suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.core.client import Client
from greenroom.actors.core.git.projects import Project, find_project, project_elsewhere
from greenroom.actors.knowledge.ingest.files.exclusions import (
    MARKS_OF_REPOSITORY,
    SECRET,
    closed_reason,
    file_reason,
)

Identity = tuple[int, int]


def identity_in(status: os.stat_result) -> Identity:
    """Return the identity of a folder from its status."""
    return status.st_dev, status.st_ino


def identities_of(folders: Iterable[str]) -> set[Identity]:
    """Return the identities of those folders that exist."""
    found: set[Identity] = set()
    for each in folders:
        try:
            found.add(identity_in(os.stat(each)))  # noqa: PTH116  (paths are texts here)
        except OSError:
            continue
    return found


_SYSTEM: Final = ("/dev", "/proc", "/sys")


class Reach(NamedTuple):
    """The files that a caller may ingest or search.

    Attributes:
        roots: The allowed folders; None for any, as for the user of a command.
        closed: Folders that are never read: the folders of the store and its secrets.
        takes_client_folders: Whether the folders that the client works in are roots, too: the client runs as
        the same user as this process.
        workspaces: Folders of code that may be searched and read.
        secrets: Patterns of files that may be read although they look like secrets. A pattern matches a name,
        or a path below a workspace.
        worktrees_apart: Whether a linked git worktree is a project of its own.
    """

    roots: Sequence[str] | None = ()
    closed: tuple[str, ...] = ()
    takes_client_folders: bool = False
    workspaces: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    worktrees_apart: bool = False


CLIENT_FOLDERS: ContextVar[tuple[str, ...]] = ContextVar("CLIENT_FOLDERS", default=())
"""The folders that the calling client works in; a transport sets it for the task."""


def check_place(named: str, reach: Reach) -> str:
    """Resolve links in a named path; refuse a path that may not be read."""
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
    if (reason := forbidden_reason(path, reach.closed)) is not None:
        raise auth_errors.invalid("paths", f"paths: {named!r} is not read: {reason}")
    if not os.path.exists(path):  # noqa: PTH110
        raise auth_errors.invalid(
            "paths", f"paths: {named!r} is not there; what a corpus has of it stays until it is removed"
        )
    return path


def may_look(path: str, reach: Reach) -> bool:
    """Return whether a caller may learn of a file's changes: it could read them itself."""
    if not os.path.isabs(path) or os.path.normpath(path) != path or "\0" in path:  # noqa: PTH117
        return False
    anywhere = reach.roots is None or reach.takes_client_folders
    if not anywhere and not any(is_below(path, os.path.realpath(root)) for root in reach.roots or ()):
        return False
    top = find_innermost(path, reach.roots or ()) or os.path.dirname(os.path.dirname(path))  # noqa: PTH120
    return forbidden_reason(path, reach.closed) is None and file_reason(path, top) != SECRET


def find_project_of(folder: str, reach: Reach) -> Project:
    """Return a folder's project; look at the folder only if the caller may."""
    is_open = reach.roots is None or reach.takes_client_folders
    if not is_open and "\0" not in folder:
        path = os.path.realpath(folder)
        is_open = any(is_below(path, os.path.realpath(each)) for each in reach.workspaces)
    return find_project(folder, apart=reach.worktrees_apart) if is_open else project_elsewhere(folder)


def find_innermost(path: str, roots: Iterable[str]) -> str:
    """Return the innermost root that contains a path; an empty text if there is none."""
    there = (os.path.realpath(root) for root in roots)
    return max((root for root in there if is_below(path, root)), key=len, default="")


def _roots(reach: Reach) -> set[str]:
    """Return the allowed folders, but never a whole machine or a home folder."""
    return {os.path.realpath(root) for root in reach.roots or ()} - _homes()


def is_below(path: str, folder: str) -> bool:
    """Return whether ``path`` is ``folder`` itself or is in it."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def forbidden_reason(path: str, closed: Sequence[str]) -> str | None:
    """Return why a path without links is never read; None if it may be read."""
    homes = _homes()
    above_homes = identities_of(str(each) for home in homes for each in (Path(home), *Path(home).parents))
    if any(is_below(home, path) for home in homes) or not above_homes.isdisjoint(identities_of([path])):
        return "it is a whole machine, or all files of a person; name the folders with documents"
    if any(is_below(path, system) for system in _SYSTEM):
        return "what is there are no files"
    parts = Path(path).parts
    folders = (Path(path), *Path(path).parents)
    is_own = any(is_below(path, os.path.realpath(own)) for own in closed)
    if is_own or not identities_of(closed).isdisjoint(identities_of(map(str, folders))):
        return "it belongs to Greenroom"
    if any(part.lower() == ".git" for part in parts) or any(map(_is_repository, folders)):
        return "it is git's own, with addresses that may hold secrets"
    return closed_reason(path)


def _is_repository(folder: Path) -> bool:
    return all(os.path.lexists(folder / mark) for mark in MARKS_OF_REPOSITORY)


def _homes() -> set[str]:
    homes = {"/", os.path.expanduser("~")}  # noqa: PTH111
    with suppress(KeyError):  # a container's user may have no entry
        homes.add(pwd.getpwuid(os.getuid()).pw_dir)
    return {os.path.realpath(home) for home in homes}


class ClientFiles:
    """The files of one client.

    ``read`` has a file's digest for each path and range of lines that the client has read.
    """

    def __init__(self, reach: Reach | None = None) -> None:
        self.reach = reach or Reach()
        self.read: dict[tuple[str, int, int | None], str] = {}


class FilesClient(Client, Protocol):
    """A client with access to files."""

    files: ClientFiles
