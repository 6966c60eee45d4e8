"""What all checks go by, gathered once: the folder, who owns it, what the owner says, what the store says.

Nothing here makes a file, changes one or takes a lock. What waits is cancelled by whoever calls.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal, TypeVar

import msgspec
import trio

from greenroom.actors.app.administration.health import parts_of
from greenroom.actors.app.administration.server import PartHealth
from greenroom.actors.search.embedding.embedding_service import EmbeddingStatistics
from greenroom.runtime import GreenroomError, RuntimeStatistics, StoreDamagedError
from greenroom.runtime.lmdb.files import BESIDES, DATA_FILE, OWNER_FILE, mount_of
from greenroom.runtime.lmdb.lock_state import LockState, lock_state
from greenroom.runtime.maintenance.survey import Head, Survey, surveyed
from greenroom.transports.base.config.load import Resolved
from greenroom.transports.base.config.settings import Settings
from greenroom.transports.ops.control.client import ControlSocketError, NoOwnerError, Stats, call

PlaceKind = Literal["missing", "no folder", "closed", "empty", "foreign", "no store", "store"]
_RETRY_SECONDS: Final = 0.1
_TRIES: Final = 5  # of reading a file that a server is writing
T = TypeVar("T")
Mounts = Sequence[tuple[str, str]]


@dataclass(frozen=True, kw_only=True)
class Place:
    """The folder of the store, as it was found.

    Attributes:
        path: Its real path.
        kind: ``missing``; ``no folder`` but something else; ``closed`` to this user; ``empty``; ``foreign``:
            with other things; ``no store``: with a lock file alone; or a ``store``.
        mount: Where its file system is mounted.
        file_system: The kind of that, as the kernel names it.
        file_bytes: The length of the store's file.
        modified: When that was last changed, in seconds since 1970 UTC.
        trouble: Why it is closed.
    """

    path: Path
    kind: PlaceKind
    mount: str = ""
    file_system: str = ""
    file_bytes: int = 0
    modified: float = 0.0
    trouble: str = ""


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What all checks go by.

    Attributes:
        resolved: The settings in force.
        environment: The environment's variables.
        now: The time in seconds since 1970 UTC.
        place: The folder.
        patience: Seconds to wait for each sign of the owner.
        lock: What its lock file says; None where there is none.
        lock_trouble: Why that cannot be read.
        figures: What the owner says of itself, as `greenroom stats --json` has it; None without an answer.
        owner_trouble: Why there is no answer, if there is an owner; empty if it does not listen.
        head: What the store says of itself; None where that was not read.
        head_trouble: Why it cannot be read.
        parts: How the parts of the owner are, by their names.
    """

    resolved: Resolved
    environment: Mapping[str, str]
    now: float
    place: Place
    patience: float
    lock: LockState | None = None
    lock_trouble: str = ""
    figures: Mapping[str, Any] | None = None
    owner_trouble: str = ""
    head: Head | None = None
    head_trouble: GreenroomError | None = None
    parts: Mapping[str, PartHealth] | None = None

    @property
    def settings(self) -> Settings:
        """The settings in force."""
        return self.resolved.settings

    @property
    def owner(self) -> int | None:
        """The id of the process that owns the folder; 0 if it is not known, None if there is none."""
        return None if self.lock is None else self.lock.owner

    @contextmanager
    def survey(self) -> Iterator[Survey]:
        """Look at the store while the block runs; raises as `surveyed`."""
        with surveyed(self.place.path) as found:
            yield found


async def gather(facts: Facts, mounts: Callable[[], Mounts]) -> Facts:
    """Return facts with all that the folder, its owner and the store tell.

    Args:
        facts: Those that are known before.
        mounts: Returns mount points and the kinds of their file systems, in the order of mounting.
    """
    place = await _in_thread(lambda: look_at(facts.settings.data, mounts()))
    facts = replace(facts, place=place)
    if place.kind in {"no store", "store"}:
        facts = await _with_owner(facts)
    if place.kind == "store":
        facts = await _in_thread(partial(_with_head, facts))
    return facts


def look_at(folder: Path, mounts: Mounts) -> Place:
    """Look at a folder; whatever is there or not is no error."""
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
    except OSError:  # a link to nowhere
        return replace(place, kind="foreign")
    if not stat.S_ISREG(status.st_mode):  # to open a pipe would wait for ever
        return replace(place, kind="foreign")
    return replace(place, kind="store", file_bytes=status.st_size, modified=status.st_mtime)


async def _in_thread(function: Callable[[], T]) -> T:
    return await trio.to_thread.run_sync(function, abandon_on_cancel=True)


async def _with_owner(facts: Facts) -> Facts:
    """Ask the owner; one that holds the lock and does not listen yet is waited for a moment."""
    patience_ends = trio.current_time() + facts.patience
    while True:
        facts = await _in_thread(partial(_asked, facts))
        is_starting = facts.owner is not None and facts.figures is None and not facts.owner_trouble
        if not is_starting or trio.current_time() >= patience_ends:
            return facts
        await trio.sleep(_RETRY_SECONDS)


def _asked(facts: Facts) -> Facts:
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
    """Return how the parts of a server are; None if it is of a version with other figures."""
    try:
        statistics = msgspec.convert(figures, RuntimeStatistics)
        embedding = msgspec.convert(figures["embedding"], EmbeddingStatistics)
    except (msgspec.ValidationError, LookupError, TypeError):
        return None
    parts = parts_of(statistics, embedding, is_sound=True, names=True)
    return {each.part: each for each in parts}


def _with_head(facts: Facts) -> Facts:
    """Read what the store says of itself; a server that writes meanwhile makes it seem damaged."""
    trouble: GreenroomError | None = None
    for _ in range(_TRIES):
        try:
            with surveyed(facts.place.path) as found:
                return replace(facts, head=found.head)
        except GreenroomError as failure:
            trouble = failure
        if facts.owner is None:
            break
    if facts.owner is not None and isinstance(trouble, StoreDamagedError):
        return facts  # its owner reads it whole by and by, and says what it finds
    return replace(facts, head_trouble=trouble)
