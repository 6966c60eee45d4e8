"""Checks of the store: its records, its encryption, and files with masked secrets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import trio

from greenroom.actors.knowledge.corpora.storage.records import MASKED_INDEX, MaskedFile
from greenroom.runtime import GreenroomError, StoreDamagedError, StoreKeyError
from greenroom.runtime.lmdb.lock_file import DIGEST_BYTES
from greenroom.runtime.lmdb.lock_state import is_byte_for_byte
from greenroom.runtime.maintenance.survey import damaged_records_of
from greenroom.runtime.store.record_damage import NAMED, list_names
from greenroom.transports.base import exit_codes
from greenroom.transports.ops.cli.doctor.facts import Facts
from greenroom.transports.ops.cli.doctor.finding import Finding, error, ok, refused, warning
from greenroom.transports.ops.cli.doctor.finding import refused as refused_with
from greenroom.transports.ops.cli.support.open_store import encryption

_REMEDY: Final = "save what is sound: greenroom repair FILE; or bring back a backup: greenroom restore FILE"


def check_records(facts: Facts) -> Iterator[Finding]:
    """Report damaged records; `greenroom verify` covers stores that are too large for this."""
    if facts.figures is not None:
        yield from _by_owner(facts)
    elif facts.owner is None and facts.head is not None:
        yield from _by_reading(facts)


def _by_owner(facts: Facts) -> Iterator[Finding]:
    store = (facts.figures or {}).get("store") or {}
    if many := store.get("damaged_records"):
        yield _damaged(many, store.get("damaged") or ())
    elif store.get("integrity") == "checked":
        yield ok("records", "the server knows of no damaged record, and all of its store was checked")
    else:
        yield ok(
            "records", "the server knows of no damaged record; not all of its store has been checked yet"
        )


def _by_reading(facts: Facts) -> Iterator[Finding]:
    folder = facts.place.path
    is_same = None if facts.lock is None else is_byte_for_byte(folder)
    if is_same:
        yield ok("records", "every byte of the store is what its last owner left, who knew of no damage")
        return
    if is_same is False:
        yield warning(
            "records",
            "the store's file changed by itself since its last owner left",
            "check the disk and the memory; no program wrote to the file",
        )
    if facts.place.file_bytes > DIGEST_BYTES:
        yield ok("records", "the records of so large a store are not read here: greenroom verify reads them")
        return
    try:
        found = damaged_records_of(folder, encryption(facts.settings), trio.from_thread.check_cancelled)
    except StoreKeyError as failure:
        yield refused_with(
            "records", failure, "name the key with --encryption-key, so that records can be read"
        )
        return
    if found:
        yield _damaged(len(found), list_names(found, NAMED))
    else:
        yield ok("records", "every record of the store was read and is what was stored")


def _damaged(many: int, names: Sequence[str]) -> Finding:
    are = "one record is" if many == 1 else f"{many:,} records are"
    sentence = f"{are} not what was stored, and all others are served: {'; '.join(names)}"
    return error("records", sentence, _REMEDY, exit_codes.DAMAGED)


_KEY_REMEDY: Final = "bring the key back to where it was, or name where it is with --encryption-key"


def check_encryption(facts: Facts) -> Iterator[Finding]:
    """Report whether the key opens the store."""
    try:
        wanted = encryption(facts.settings)
        if wanted is not None:
            wanted.key()
        if facts.head is None:
            yield ok("encryption", "the key that is named is there" if wanted else "no key is named")
            return
        if facts.head.is_encrypted:
            with facts.survey() as found:
                found.codec(wanted)
            yield ok("encryption", "the store is encrypted, and the key that is named opens it")
            return
    except StoreKeyError as failure:
        yield refused("encryption", failure, _KEY_REMEDY)
        return
    if facts.settings.encrypt:
        sentence = "the store is not encrypted and --encrypt is given; `greenroom encrypt` rewrites it"
        yield refused("encryption", StoreKeyError(sentence), _KEY_REMEDY)
    elif wanted is not None:
        remedy = "rewrite it: greenroom encrypt"
        yield warning("encryption", "a key is named, and the store is not encrypted", remedy)
    else:
        yield ok("encryption", "the store is not encrypted; its files are for this user alone")


_TRIES: Final = 5
"""Reads of a store while a server writes it."""
_MOST: Final = 50
_MOST_LINES: Final = 10


def check_masked_files(facts: Facts) -> Iterator[Finding]:
    """List the files, never a value."""
    if facts.head is None:
        return
    files = sorted(_files(facts), key=lambda file: (file.root, file.path))
    for file in files[:_MOST]:
        lines = ", ".join(map(str, file.lines[:_MOST_LINES]))
        more = ", …" if len(file.lines) > _MOST_LINES else ""
        line = "line" if len(file.lines) == 1 else "lines"
        yield ok("masked", f"{file.root}/{file.path} has secrets, masked for clients: {line} {lines}{more}")
    if len(files) > _MOST:
        yield ok("masked", f"{len(files) - _MOST:,} more files have secrets, masked for clients")


def _files(facts: Facts) -> list[MaskedFile]:
    for _ in range(_TRIES):
        try:
            with facts.survey() as found:
                codec = found.codec(encryption(facts.settings))
                return [file for _key, file in found.rows(MASKED_INDEX, MaskedFile, codec)]
        except StoreDamagedError:
            continue  # other checks report a damaged store
        except GreenroomError:
            break  # for example of the key
    return []
