"""Check a journal for removed, changed, inserted or cut-off rows; find expired rows."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from typing import Final, Literal, NamedTuple

import msgspec

from greenroom.runtime.journal import chain
from greenroom.runtime.lmdb import keys as lmdb_keys
from greenroom.runtime.lmdb.environment import META
from greenroom.runtime.lmdb.snapshot import Snapshot

_MOST_FINDINGS: Final = 1_000

_SENTENCES: Final = {
    "missing": "{rows} missing",
    "changed": "{rows} not what was written: changed, swapped or put in, or written under another secret",
    "cut off": "{rows} cut off: a checkpoint names them",
    "replaced": "{rows} not those that a checkpoint names, although they are there",
    "head": "what the store says of the end was not written by its server",
    "start": "what the store says of the start was not written by its server",
    "strange": "there is a row among the records that no server writes",
    "foreign checkpoint": "a checkpoint was not made by this server, or was changed",
}


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """A fault of a journal."""

    what: Literal[
        "missing", "changed", "cut off", "replaced", "head", "start", "strange", "foreign checkpoint"
    ]
    first: int = 0
    last: int = 0

    def __str__(self) -> str:
        one = self.first == self.last
        rows = f"record {self.first} is" if one else f"records {self.first} to {self.last} are"
        return _SENTENCES[self.what].format(rows=rows)


class JournalReport(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a check; without findings, the journal is as its server wrote it."""

    rows: int
    first: int
    last: int
    findings: list[Finding]
    redacted: int = 0


class _Findings:
    def __init__(self) -> None:
        self.all: list[Finding] = []

    def add(self, what: str, first: int = 0, last: int = 0) -> None:
        newest = self.all[-1] if self.all else None
        if newest is not None and newest.what == what and first and newest.last == first - 1:
            self.all[-1] = msgspec.structs.replace(newest, last=last or first)
        elif len(self.all) < _MOST_FINDINGS:
            self.all.append(Finding(what=what, first=first, last=last or first))  # type: ignore[arg-type]


def check(
    keys: chain.JournalKeys, snapshot: Snapshot, checkpoints: Iterable[chain.Checkpoint]
) -> Generator[None, None, JournalReport]:
    """Check every row of a journal; yield after each row."""
    findings = _Findings()
    start = _signed_state(keys, snapshot, keys.start, "start", findings) or chain.ChainPosition()
    seen = yield from _seen_before(keys, checkpoints, findings)
    if seen.get(start.count, start.link) != start.link:
        findings.add("replaced", start.count)
    before = start.link
    last, rows, redacted = start.count, 0, 0
    for number, record in chain.scan(snapshot, keys.name):
        yield
        link = record[: chain.LINK_BYTES]
        rows += 1
        redacted += chain.is_redacted(record)
        if number == chain.STRANGE:
            findings.add("strange")
            continue
        if number <= last:  # before the signed start
            findings.add("changed", number)
            continue
        if number > last + 1:
            findings.add("missing", last + 1, number - 1)
        elif not keys.is_linked(before, number, record):
            findings.add("changed", number)
        if seen.get(number, link) != link:
            findings.add("replaced", number)
        before, last = link, number
    last = _check_end(keys, snapshot, last, before, findings)
    ahead = max(seen, default=0)
    if ahead > last:
        findings.add("cut off", last + 1, ahead)
    return JournalReport(
        rows=rows, first=start.count + 1, last=last, findings=findings.all, redacted=redacted
    )


def _seen_before(
    keys: chain.JournalKeys,
    checkpoints: Iterable[chain.Checkpoint],
    findings: _Findings,
) -> Generator[None, None, dict[int, bytes]]:
    """Return the links that checkpoints contain, in a mapping by row number."""
    seen: dict[int, bytes] = {}
    for each in checkpoints:
        if not keys.is_genuine(each):
            findings.add("foreign checkpoint")
        elif seen.setdefault(each.count, link := bytes.fromhex(each.link)) != link:
            findings.add("replaced", each.count)
        yield
    return seen


def _check_end(
    keys: chain.JournalKeys, snapshot: Snapshot, last: int, link: bytes, findings: _Findings
) -> int:
    """Compare the last row with the signed head; return the expected last number."""
    head = _signed_state(keys, snapshot, keys.head, "head", findings)
    if head is not None and head.count > last:
        findings.add("missing", last + 1, head.count)
        return head.count
    if head is not None and (head.count, head.link) != (last, link):
        findings.add("head")
    return last


def _signed_state(
    keys: chain.JournalKeys, snapshot: Snapshot, key: bytes, what: str, findings: _Findings
) -> chain.ChainPosition | None:
    payload = snapshot.get(META, key)
    state = keys.read(key, payload)
    if state is None and (payload is not None or (key == keys.head and any(chain.scan(snapshot, keys.name)))):
        findings.add(what)
    return state


class ExpiredRows(NamedTuple):
    """The rows of a journal that may be removed.

    Attributes:
        start: The key and record of the journal's new start.
        doubtful: The first and last number of each run of rows that differ from what was written.
    """

    rows: list[bytes]
    start: tuple[bytes, bytes]
    doubtful: list[tuple[int, int]]


def find_expired(
    keys: chain.JournalKeys, snapshot: Snapshot, *, oldest: int | None, max_bytes: int | None, most: int
) -> ExpiredRows | None:
    """Find at most ``most`` rows to remove, at the start of a journal.

    These are rows from before ``oldest`` (microseconds since 1970), and further rows until the others fit
    into ``max_bytes``.
    """
    start = chain.start_of(keys, snapshot)
    head = keys.read(keys.head, snapshot.get(META, keys.head))
    if head is None:  # unsigned rows stay, as evidence
        return None
    rows: list[bytes] = []
    findings = _Findings()
    count, link, size, time = start.count, start.link, start.size, start.time
    for number, record in chain.scan(snapshot, keys.name):
        if number == chain.STRANGE:  # it stays, as evidence
            continue
        found = chain.decode_row(number, record, msgspec.Raw)
        too_many = max_bytes is not None and head.size - size > max_bytes
        if len(rows) == most or not (too_many or (oldest is not None and found.time < oldest)):
            break
        if number != count + 1 or not keys.is_linked(link, number, record):
            findings.add("changed", number)
        rows.append(keys.prefix + number.to_bytes(chain.NUMBER_BYTES))
        count, link, time = number, record[: chain.LINK_BYTES], found.time
        size += chain.size_of(record)
    if not rows:
        return None
    fresh = keys.sign_state(keys.start, chain.ChainPosition(count, link, size, time))
    doubtful = [(each.first, each.last) for each in findings.all]
    return ExpiredRows(rows, (keys.start, lmdb_keys.encode(fresh)), doubtful)
