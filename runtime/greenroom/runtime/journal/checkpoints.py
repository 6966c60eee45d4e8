"""Rollback detection: the newest checkpoints of each journal, beside the secret.

Each store has one JSON file. It contains no secret; anyone who can change it can also read the secret.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import msgspec

from greenroom.runtime.base.errors import StoreDamagedError
from greenroom.runtime.journal import chain
from greenroom.runtime.lmdb.environment import INDEXES
from greenroom.runtime.lmdb.files import create_file
from greenroom.runtime.lmdb.snapshot import Snapshot

logger = logging.getLogger(__name__)

SUFFIX: Final = ".seen"
DAY: Final = 86_400 * 1_000_000
MOST_CHECKPOINTS: Final = 400
"""The most checkpoints of each journal: one a day, and the newest."""


class RollbackGap(msgspec.Struct, frozen=True, kw_only=True):
    """Known rows that were missing when the store was opened.

    ``restored`` means that `greenroom restore` had replaced the store by a backup; ``time`` is in
    microseconds since 1970 UTC.
    """

    journal: str
    first: int
    last: int
    time: int
    restored: bool = False


class _Content(msgspec.Struct):
    checkpoints: list[chain.Checkpoint] = []
    breaks: list[RollbackGap] = []
    restored: bool = False


class CheckpointFile:
    """The known checkpoints of one store's journals, in a file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._content = _Content()
        try:
            self._content = msgspec.json.decode(path.read_bytes(), type=_Content)
        except FileNotFoundError:
            pass
        except (OSError, msgspec.DecodeError) as error:
            logger.warning("the known checkpoints of the store's journals cannot be read: %s", error)

    def checkpoints(self, journal: str) -> list[chain.Checkpoint]:
        """Return the known checkpoints of a journal, oldest first."""
        return [each for each in self._content.checkpoints if each.journal == journal]

    def breaks(self, journal: str) -> list[RollbackGap]:
        """Return the gaps of a journal that were found when the store was opened."""
        return [each for each in self._content.breaks if each.journal == journal]

    @property
    def is_restored(self) -> bool:
        """Whether an older store was restored on purpose, and not opened since."""
        return self._content.restored

    def mark_restored(self) -> None:
        """Record that an older store was restored on purpose."""
        self._content.restored = True
        self._save()

    def compare(self, keys: chain.JournalKeys, snapshot: Snapshot, now: int) -> RollbackGap | None:
        """Compare a journal with its checkpoints; record and return a gap if rows are gone."""
        good: list[chain.Checkpoint] = []
        bad: list[chain.Checkpoint] = []
        for each in self.checkpoints(keys.name):
            if keys.is_genuine(each):  # the others were made with another secret
                (good if _is_there(each, keys, snapshot) else bad).append(each)
        restored, self._content.restored = self._content.restored, False
        if not bad:
            if restored:  # otherwise the mark would also apply to the next store here
                self._save()
            return None
        last = max(each.count for each in bad)
        head = chain.head_of(keys, snapshot)
        kept = max((each.count for each in good), default=0)
        if head is not None and head.count < last:
            kept = head.count
        found = RollbackGap(
            journal=keys.name,
            first=kept + 1,
            last=last,
            time=now,
            restored=restored,
        )
        self._content.checkpoints = [each for each in self._content.checkpoints if each not in bad]
        self._content.breaks.append(found)
        self._save()
        return found

    def record(self, checkpoint: chain.Checkpoint) -> None:
        """Record a checkpoint if it is new; it replaces one of the same day."""
        others = [each for each in self._content.checkpoints if each.journal != checkpoint.journal]
        own = self.checkpoints(checkpoint.journal)
        if own and own[-1] == checkpoint:
            return
        if own and own[-1].time // DAY == checkpoint.time // DAY:
            own.pop()
        self._content.checkpoints = [*others, *own[1 - MOST_CHECKPOINTS :], checkpoint]
        self._save()

    def _save(self) -> None:
        part = self._path.with_name(f".{self._path.name}.{secrets.token_hex(4)}")
        try:
            create_file(part, msgspec.json.encode(self._content))
            part.replace(self._path)
        except OSError as error:
            logger.warning("the checkpoints of the store's journals cannot be written: %s", error)


def mark_restored(places: Iterable[Path], store_id: str) -> None:
    """Record in every checkpoint file of a store that it was restored on purpose."""
    for folder in places:
        path = folder / f"{store_id}{SUFFIX}"
        if path.exists():
            CheckpointFile(path).mark_restored()


def _is_there(checkpoint: chain.Checkpoint, keys: chain.JournalKeys, snapshot: Snapshot) -> bool:
    try:
        start = chain.start_of(keys, snapshot)
        if checkpoint.count < start.count:
            return True  # retention removed it, and signed the new start
        if checkpoint.count == start.count:
            return start.link.hex() == checkpoint.link
        row = snapshot.get(
            INDEXES, chain.journal_prefix(keys.name) + checkpoint.count.to_bytes(chain.NUMBER_BYTES)
        )
    except StoreDamagedError:
        return True  # a check reports damage; a server starts in spite of it
    return row is not None and row[: chain.LINK_BYTES].hex() == checkpoint.link
