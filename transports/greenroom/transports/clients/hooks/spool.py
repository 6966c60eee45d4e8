"""The spool for its readers: hook events that wait, and those set aside."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import AbstractContextManager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from greenroom.actors.core.auth.principal import Principal
from greenroom.actors.sessions.requests.hook_events import HookEvent
from greenroom.transports.clients.hooks.spool_folder import closed_after, open_private, open_spool_folder
from greenroom.transports.clients.hooks.spool_writer import MAX_BYTES as MAX_BYTES
from greenroom.transports.clients.hooks.spool_writer import MAX_ENTRY as MAX_ENTRY
from greenroom.transports.clients.hooks.spool_writer import MAX_FILES as MAX_FILES
from greenroom.transports.clients.hooks.spool_writer import MAX_KEPT as MAX_KEPT
from greenroom.transports.clients.hooks.spool_writer import ReadOffset as ReadOffset
from greenroom.transports.clients.hooks.spool_writer import SpoolError as SpoolError
from greenroom.transports.clients.hooks.spool_writer import hold_spool as hold_spool
from greenroom.transports.clients.hooks.spool_writer import (
    list_entries,
    list_names,
    read_file,
    size_of,
    unlink_file,
)

MAX_REFUSED: Final = 100
"""The most unreadable files."""
REFUSED: Final = "refused"


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """The content of a file in the spool: an event and its principal."""

    principal: Principal
    event: HookEvent


class Waiting(NamedTuple):
    """The state of a spool."""

    files: int = 0  # the number of waiting events
    bytes: int = 0
    oldest_at: datetime | None = None
    refused: int = 0  # the number of unreadable files that were set aside


def complete_pending(folder: Path) -> None:
    """Complete events of killed processes, if there is a spool."""
    with suppress(FileNotFoundError), hold_spool(folder, create=False):
        pass


def waiting(folder: Path) -> Waiting:
    """Return the state of a data folder's spool; zeros if there is none."""
    with suppress(FileNotFoundError), _opened(folder) as descriptor:
        names = list_names(descriptor)
        sizes = [size_of(name, descriptor) for name in names]
        return Waiting(len(names), sum(sizes), _time_of(names[0]) if names else None, _refused(descriptor))
    return Waiting()


def names_in(folder: Path) -> list[str]:
    """Return the names of waiting files, oldest first."""
    with suppress(FileNotFoundError), _opened(folder) as descriptor:
        return list_names(descriptor)
    return []


def read_entry(folder: Path, name: str) -> Entry:
    """Read a file of the spool.

    Raises:
        FileNotFoundError: The file no longer exists.
        SpoolError: It is invalid, permanently.
        OSError: It cannot be read now.
    """
    with _opened(folder) as descriptor:
        try:
            return msgspec.json.decode(read_file(name, descriptor, MAX_ENTRY), type=Entry)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise SpoolError(f"the file {name} of the spool holds no event: {error}") from None


def remove(folder: Path, name: str) -> None:
    """Remove a file after the commit of its event; the file may be missing.

    This is not synced, so the file may reappear after a power cut; the owner skips events that it has.
    """
    with suppress(FileNotFoundError), _opened(folder) as descriptor:
        os.unlink(name, dir_fd=descriptor)


def names_of(folder: Path, user: str, agents: Sequence[str]) -> list[str]:
    """Return the names of a user's waiting files, or those of agents without a user."""
    return [name for name in names_in(folder) if _is_of(folder, name, user, agents)]


def remove_refused(folder: Path) -> None:
    """Remove all files that were set aside, because their user is unknown."""
    with suppress(FileNotFoundError), _opened(folder) as above, _aside(above) as aside:
        for each in list_entries(aside):
            unlink_file(each, aside)


def refuse(folder: Path, name: str) -> None:
    """Set a file aside that cannot be stored, and remove the oldest beyond `MAX_REFUSED`."""
    with suppress(FileNotFoundError), _opened(folder) as above, _aside(above, create=True) as aside:
        os.rename(name, name, src_dir_fd=above, dst_dir_fd=aside)
        for each in sorted(list_entries(aside), reverse=True)[MAX_REFUSED:]:
            unlink_file(each, aside)


def _is_of(folder: Path, name: str, user: str, agents: Sequence[str]) -> bool:
    try:
        principal = read_entry(folder, name).principal
    except (SpoolError, FileNotFoundError):
        return False
    return principal.user == user or (principal.user is None and principal.agent_id in agents)


def _opened(folder: Path) -> AbstractContextManager[int]:
    return closed_after(open_spool_folder(folder, create=False))


def _aside(descriptor: int, *, create: bool = False) -> AbstractContextManager[int]:
    return closed_after(open_private(REFUSED, descriptor, create=create))


def _time_of(name: str) -> datetime | None:
    with suppress(ValueError, OverflowError, OSError):
        return datetime.fromtimestamp(int(name[:20]) / 1e9, UTC)
    return None


def _refused(descriptor: int) -> int:
    with suppress(FileNotFoundError), _aside(descriptor) as aside:
        return len(list_entries(aside))
    return 0
