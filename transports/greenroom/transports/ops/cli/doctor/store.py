"""Checks of the store: records, encryption, audit log, and files with masked secrets."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Final

import trio

from greenroom.actors.core.audit.record import JOURNAL
from greenroom.actors.knowledge.corpora.storage.records import MASKED_INDEX, MaskedFile
from greenroom.runtime import GreenroomError, StoreDamagedError, StoreKeyError
from greenroom.runtime.journal.checkpoints import SUFFIX, CheckpointFile
from greenroom.runtime.lmdb.files import DATA_FILE
from greenroom.runtime.lmdb.lock_file import DIGEST_BYTES
from greenroom.runtime.lmdb.lock_state import is_byte_for_byte
from greenroom.runtime.maintenance.survey import damaged_records_of
from greenroom.runtime.store.record_damage import NAMED, list_names
from greenroom.transports.base import exit_codes
from greenroom.transports.ops.cli.doctor.facts import Facts
from greenroom.transports.ops.cli.doctor.finding import Finding, error, ok, refused, warning
from greenroom.transports.ops.cli.support.open_store import encryption

_REMEDY: Final = (
    "save what is sound: greenroom repair FILE; then take that, or a backup: greenroom restore FILE"
)


def check_records(facts: Facts) -> Iterator[Finding]:
    """Report damaged records; only `greenroom verify` reads stores that are too large for this."""
    if facts.figures is not None:
        yield from _by_owner(facts)
    elif facts.owner is None and facts.head is not None:
        yield from _by_reading(facts)


def _by_owner(facts: Facts) -> Iterator[Finding]:
    store = (facts.figures or {}).get("store") or {}
    if many := store.get("damaged_records"):
        yield _damaged(many, store.get("damaged") or ())
    elif store.get("integrity") == "checked":
        yield ok("the server knows of no damaged record, and all of its store was checked")
    else:
        yield ok("the server knows of no damaged record; not all of its store has been checked yet")


def _by_reading(facts: Facts) -> Iterator[Finding]:
    folder = facts.place.path
    is_same = None if facts.lock is None else is_byte_for_byte(folder)
    if is_same:
        yield ok("every byte of the store is what its last owner left, who knew of no damage")
        return
    if is_same is False:
        yield warning(
            "the store's file changed by itself since its last owner left",
            "check the disk and the memory; no program wrote to the file",
        )
    if facts.place.file_bytes > DIGEST_BYTES:
        yield ok("the records of so large a store are not read here; `greenroom verify` reads them")
        return
    try:
        found = damaged_records_of(folder, encryption(facts.settings), trio.from_thread.check_cancelled)
    except StoreKeyError as failure:
        yield refused(failure, "name the key with --encryption-key, so that records can be read")
        return
    if found:
        yield _damaged(len(found), list_names(found, NAMED))
    else:
        yield ok("every record of the store was read and is what was stored")


def _damaged(many: int, names: Sequence[str]) -> Finding:
    are = "one record is" if many == 1 else f"{many:,} records are"
    sentence = f"{are} not what was stored, and all others are served: {'; '.join(names)}"
    return error(sentence, _REMEDY, exit_codes.DAMAGED)


_KEY_REMEDY: Final = "bring the key back to where it was, or name where it is with --encryption-key"


def check_encryption(facts: Facts) -> Iterator[Finding]:
    """Report whether the key opens the store."""
    try:
        wanted = encryption(facts.settings)
        if wanted is not None:
            wanted.key()
        if facts.head is None:
            yield ok("the key that is named is there" if wanted else "no key is named")
            return
        if facts.head.is_encrypted:
            with facts.survey() as found:
                found.codec(wanted)
            yield ok("the store is encrypted, and the key that is named opens it")
            return
    except StoreKeyError as failure:
        yield refused(failure, _KEY_REMEDY)
        return
    if facts.settings.encrypt:
        sentence = "the store is not encrypted and --encrypt is given; `greenroom encrypt` rewrites it"
        yield refused(StoreKeyError(sentence), _KEY_REMEDY)
    elif wanted is not None:
        remedy = "rewrite it: greenroom encrypt"
        yield warning("a key is named, and the store is not encrypted", remedy)
    else:
        yield ok("the store is not encrypted; its files are for this user alone")


_TRIES: Final = 5
"""The number of tries to read a store while a server writes it."""
_MOST: Final = 50
_MOST_LINES: Final = 10


def check_masked_files(facts: Facts) -> Iterator[Finding]:
    """List the files with masked secrets, but never a value."""
    if facts.head is None:
        return
    files = sorted(_files(facts), key=lambda file: (file.root, file.path))
    for file in files[:_MOST]:
        lines = ", ".join(map(str, file.lines[:_MOST_LINES]))
        more = ", …" if len(file.lines) > _MOST_LINES else ""
        line = "line" if len(file.lines) == 1 else "lines"
        yield ok(f"{file.root}/{file.path} has secrets, masked for clients: {line} {lines}{more}")
    if len(files) > _MOST:
        yield ok(f"{len(files) - _MOST:,} more files have secrets, masked for clients")


def _files(facts: Facts) -> list[MaskedFile]:
    for _ in range(_TRIES):
        try:
            with facts.survey() as found:
                codec = found.codec(encryption(facts.settings))
                return [file for _key, file in found.rows(MASKED_INDEX, MaskedFile, codec)]
        except StoreDamagedError:
            continue  # other checks report a damaged store
        except GreenroomError:
            break  # for example about the key
    return []


_MICROSECONDS: Final = 1_000_000


def check_audit(facts: Facts) -> Iterator[Finding]:
    """Compare the store's audit log with the checkpoints that are kept next to the store."""
    if facts.head is None:
        return
    seen = seen_of(facts)
    for gap in seen.breaks(JOURNAL):
        if not gap.restored:
            yield warning(
                f"records {gap.first:,} to {gap.last:,} had been seen and were gone at a start on "
                f"{day(gap.time / _MICROSECONDS)}: someone had put an older store there, or cut the log",
                "nothing brings them back, so this finding stays; see what there is: greenroom audit verify",
            )
    checkpoints = seen.checkpoints(JOURNAL)
    last = max((each.count for each in checkpoints), default=0)
    count = stored_count(facts)
    if count is not None and count < last and not seen.is_restored:
        yield warning(
            f"the store ends with record {count:,}, and record {last:,} has been seen: an older store was "
            "put there other than with `greenroom restore`",
            "bring back a backup of the newer store, or accept this one, whose file is copied first "
            f"(cp {shlex.quote(str(facts.place.path / DATA_FILE))} FILE): greenroom restore FILE",
        )
    elif checkpoints:
        yield ok(f"{last:,} records were seen up to {day(checkpoints[-1].time / _MICROSECONDS)}")
    else:
        yield ok("its end has not been recorded beside the store's secret yet")


def seen_of(facts: Facts) -> CheckpointFile:
    """Return the file with the checkpoints of the store's journals."""
    assert facts.head is not None
    name = f"{facts.head.identity.store_id}{SUFFIX}"
    places = (facts.settings.secrets / name, facts.place.path / name)
    return CheckpointFile(next((each for each in places if each.exists()), places[0]))


def stored_count(facts: Facts) -> int | None:
    """Return the number of the last record in a stopped store; None if unreadable."""
    if facts.owner is not None or facts.head is None:
        return None
    try:
        with facts.survey() as found:
            return found.journal_head(JOURNAL, found.codec(encryption(facts.settings))).count
    except GreenroomError:
        return None  # other checks report the problem of the store or its key


def day(time: float) -> str:
    """Format seconds since 1970 as date and time in UTC."""
    return f"{datetime.fromtimestamp(time, UTC):%Y-%m-%d %H:%M:%S} UTC"
