"""Facts for all checks, gathered only once: the folder, its owner and the store.

This module creates and changes no file and takes no lock. The caller cancels a step that takes too long.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal, TypeVar

import msgspec
import trio

from greenroom.actors.app.administration.health import parts_of
from greenroom.actors.app.administration.replies import PartHealth
from greenroom.actors.search.embedding.embedding_service import EmbeddingStatistics
from greenroom.runtime import GreenroomError, RuntimeStatistics, StoreDamagedError
from greenroom.runtime.lmdb.files import BESIDES, DATA_FILE, OWNER_FILE, mount_of
from greenroom.runtime.lmdb.lock_state import LockState, lock_state
from greenroom.runtime.maintenance.survey import Head, Survey, open_survey
from greenroom.transports.base.config.load import Resolved
from greenroom.transports.base.config.settings import Settings
from greenroom.transports.ops.control.client import ControlSocketError, NoOwnerError, Stats, call

PlaceKind = Literal["missing", "no folder", "closed", "empty", "foreign", "no store", "store"]
_RETRY_SECONDS: Final = 0.1
_TRIES: Final = 5  # tries to read a file while a server writes it
T = TypeVar("T")
Mounts = Sequence[tuple[str, str]]


@dataclass(frozen=True, kw_only=True)
class Place:
    """The state of the store's folder."""

    path: Path
    # ``missing``; ``no folder``: another file; ``closed`` to this user; ``empty``; ``foreign``: with other
    # files; ``no store``: with only a lock file; or ``store``.
    kind: PlaceKind
    mount: str = ""  # the mount point of its file system
    file_system: str = ""  # the kernel's name of the file system's type
    file_bytes: int = 0
    modified: float = 0.0  # the time of the file's last change, in seconds since 1970 UTC
    trouble: str = ""


@dataclass(frozen=True, kw_only=True)
class Facts:
    """The facts for all checks."""

    resolved: Resolved
    environment: Mapping[str, str]
    now: float  # the time in seconds since 1970 UTC
    place: Place
    patience: float  # seconds to wait for each sign of the owner
    lock: LockState | None = None  # the state of the lock file; None without one
    lock_trouble: str = ""  # the reason if the lock file cannot be read
    # The owner's figures as in `greenroom stats --json`; None without a reply.
    figures: Mapping[str, Any] | None = None
    owner_trouble: str = ""  # the reason if an owner did not reply; empty if no owner listens
    head: Head | None = None  # the head of the store; None if it was not read
    head_trouble: GreenroomError | None = None  # the reason if the head cannot be read
    parts: Mapping[str, PartHealth] | None = None

    @property
    def settings(self) -> Settings:
        """The settings in force."""
        return self.resolved.settings

    @property
    def owner(self) -> int | None:
        """The process id of the folder's owner; 0 if unknown, None without an owner."""
        return None if self.lock is None else self.lock.owner

    def survey(self) -> AbstractContextManager[Survey]:
        """Open a survey of the store for a block."""
        return open_survey(self.place.path)


async def gather(facts: Facts, mounts: Callable[[], Mounts]) -> Facts:
    """Add the facts about the folder, its owner and the store."""
    place = await _in_thread(lambda: look_at(facts.settings.data, mounts()))
    facts = replace(facts, place=place)
    if place.kind in {"no store", "store"}:
        facts = await _with_owner(facts)
    if place.kind == "store":
        facts = await _in_thread(partial(_with_head, facts))
    return facts


def look_at(folder: Path, mounts: Mounts) -> Place:
    """Return the state of a folder; no state of it raises an error."""
    path = Path(os.path.realpath(folder))
    mount, file_system = mount_of(path, mounts)
    place = Place(path=path, kind="missing", mount=mount, file_system=file_system)
    try:
        entries = {each.name for each in path.iterdir()}
    except FileNotFoundError:
        return place
    except NotADirectoryError:
        return replace(place, kind="no folder")
    except OSError as failure:
        return replace(place, kind="closed", trouble=failure.strerror or str(failure))
    if DATA_FILE in entries:
        return _with_file(place)
    if OWNER_FILE in entries:
        return replace(place, kind="no store")
    return replace(place, kind="foreign" if entries - BESIDES else "empty")


def _with_file(place: Place) -> Place:
    try:
        status = (place.path / DATA_FILE).stat()
    except OSError:  # a broken link
        return replace(place, kind="foreign")
    if not stat.S_ISREG(status.st_mode):  # opening a pipe would block for ever
        return replace(place, kind="foreign")
    return replace(place, kind="store", file_bytes=status.st_size, modified=status.st_mtime)


async def _in_thread(function: Callable[[], T]) -> T:
    return await trio.to_thread.run_sync(function, abandon_on_cancel=True)


async def _with_owner(facts: Facts) -> Facts:
    """Query the owner; if it does not listen yet, wait a moment."""
    patience_ends = trio.current_time() + facts.patience
    while True:
        facts = await _in_thread(partial(_query_owner, facts))
        is_starting = facts.owner is not None and facts.figures is None and not facts.owner_trouble
        if not is_starting or trio.current_time() >= patience_ends:
            return facts
        await trio.sleep(_RETRY_SECONDS)


def _query_owner(facts: Facts) -> Facts:
    folder = facts.place.path
    try:
        facts = replace(facts, lock=lock_state(folder))
    except OSError as failure:
        return replace(facts, lock_trouble=f"{failure.filename or folder}: {failure.strerror or failure}")
    if facts.owner is None:
        return facts
    try:
        figures = json.loads(call(folder, Stats(often=True), patience=facts.patience))
    except NoOwnerError:
        return facts
    except ControlSocketError as failure:
        return replace(facts, owner_trouble=str(failure))
    return replace(facts, figures=figures, parts=_parts(figures))


def _parts(figures: Mapping[str, Any]) -> Mapping[str, PartHealth] | None:
    """Return the health of a server's parts; None if the server has other figures."""
    try:
        statistics = msgspec.convert(figures, RuntimeStatistics)
        embedding = msgspec.convert(figures["embedding"], EmbeddingStatistics)
    except (msgspec.ValidationError, LookupError, TypeError):
        return None
    parts = parts_of(statistics, embedding, is_sound=True, names=True)
    return {each.part: each for each in parts}


def _with_head(facts: Facts) -> Facts:
    """Read the store's head; while a server writes it, it may look damaged."""
    trouble: GreenroomError | None = None
    for _ in range(_TRIES):
        try:
            with open_survey(facts.place.path) as found:
                return replace(facts, head=found.head)
        except GreenroomError as failure:
            trouble = failure
        if facts.owner is None:
            break
    if facts.owner is not None and isinstance(trouble, StoreDamagedError):
        return facts  # the owner reads the whole store over time, and reports damage
    return replace(facts, head_trouble=trouble)
