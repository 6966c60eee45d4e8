"""Repair of a session with lost records: keep every sound message and independent record.

The partition of a message decides who sees it, and a removed message has no record. So a lost record cannot
make a sound message visible to others. Only a lost header could: it has the session's owner and status.
Counters, event ids and vectors follow from the remaining messages.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

import msgspec

from greenroom.actors.search.embedding import rows
from greenroom.actors.sessions.handlers.events import EVENT_IDS, event_key, part_keys
from greenroom.actors.sessions.storage import directory, migrations, records, work_context
from greenroom.actors.sessions.storage.message_vectors import VECTORS
from greenroom.actors.sessions.storage.records import COMPACTIONS, SenderCounter, StoredMessage
from greenroom.runtime import KeptRecords, Remains, RepairRule

_encode: Final = msgspec.msgpack.encode
_decode: Final = msgspec.msgpack.decode
_ID: Final = slice(-8, None)
_LONE: Final = {
    records.METADATA: "metadata",
    records.STATE: "state",
    work_context.CONTEXT: "work context",
    migrations.TOOL_STATE: "tool",
    migrations.MIGRATIONS: "steps",
    migrations.RECENT: "who took it up",
    COMPACTIONS: "compactions",
}
"""Independent records, and their names for people."""


def keep(remains: Remains) -> KeptRecords:
    """Return the records to keep; none without the header."""
    found: dict[bytes, dict[bytes, bytes]] = defaultdict(dict)
    for key, record in remains.records.items():
        found[key[:1]][key] = record
    if records.HEADER not in found:
        undone = [{"message_id": each} for each in _lost_ids(remains, found, ())]
        return KeptRecords({}, (), [{"session_id": remains.address.key}, *undone])
    made = dict(found[records.HEADER])
    for letter in _LONE:
        made |= found[letter]
    made |= found[records.HAS_DEPENDENTS]
    if remains.may_lack(records.HAS_DEPENDENTS):  # so that the session is not swept by mistake
        made[records.HAS_DEPENDENTS] = _encode(b"")
    messages = dict(_whole(found[records.MESSAGES], found[records.PARTS]))
    for key, message in messages.items():
        made |= _with_its_rows(key, message, found)
    counters = _counters(messages, found[records.COUNTERS])
    made.update((key, _encode(counter)) for key, counter in counters.items())
    made |= _vectors(found[VECTORS], messages)
    lost = _lost_ids(remains, found, messages)
    left_out = [*_lost_messages(remains, found, lost, counters), *_lost_others(remains)]
    return KeptRecords(made, left_out, [{"message_id": each} for each in lost])


RULE: Final = RepairRule(keep, records.names_in, frozenset({directory.INDEX, migrations.INDEX, rows.INDEX}))


def _whole(
    messages: Mapping[bytes, bytes], parts: Mapping[bytes, bytes]
) -> Iterator[tuple[bytes, StoredMessage]]:
    for key, record in messages.items():
        message = _decode(record, type=StoredMessage)
        if all(part in parts for part in _parts(key, message)):
            yield key, message


def _with_its_rows(
    key: bytes, message: StoredMessage, found: Mapping[bytes, Mapping[bytes, bytes]]
) -> dict[bytes, bytes]:
    rows = {key: found[records.MESSAGES][key]}
    rows |= {part: found[records.PARTS][part] for part in _parts(key, message)}
    if message.event is not None:
        rows[event_key(records.partition_in(key), message.event.event_id)] = _encode(_id(key))
    return rows


def _parts(key: bytes, message: StoredMessage) -> list[bytes]:
    whole = 0 if message.event is None else message.event.whole_bytes
    return part_keys(records.partition_in(key), _id(key), whole) if whole else []


def _counters(
    messages: Mapping[bytes, StoredMessage], known: Mapping[bytes, bytes]
) -> dict[bytes, SenderCounter]:
    """Recount the messages by sender; keep the highest ids, so no id is used again."""
    counters: dict[bytes, SenderCounter] = {}
    for key, record in known.items():
        counters[key] = msgspec.structs.replace(_decode(record, type=SenderCounter), count=0, others=0)
    for key, message in messages.items():
        partition = records.partition_in(key)
        where = records.counter_key(partition, message.sender)
        none = SenderCounter(partition.audience, partition.visibility, message.sender, 0, 0, 0)
        old = counters.get(where, none)
        counters[where] = msgspec.structs.replace(
            old,
            count=old.count + 1,
            others=old.others + (not message.is_talk),
            last_id=max(old.last_id, _id(key)),
            last_at=max(old.last_at, message.timestamp),
        )
    return counters


def _vectors(found: Mapping[bytes, bytes], messages: Mapping[bytes, StoredMessage]) -> dict[bytes, bytes]:
    """Return the vectors of messages, if their model is known."""
    ids = {key[_ID] for key in messages}
    made = {key: record for key, record in found.items() if key == VECTORS or key[_ID] in ids}
    return made if VECTORS in found else {}


def _lost_ids(
    remains: Remains, found: Mapping[bytes, Mapping[bytes, bytes]], messages: Iterable[bytes]
) -> set[int]:
    lost = {_id(key) for key in (*remains.damaged(), *found[records.MESSAGES]) if key[:1] == records.MESSAGES}
    lost |= {_decode(record, type=int) for record in found[EVENT_IDS].values()}
    return lost - {_id(key) for key in messages}


def _lost_messages(
    remains: Remains,
    found: Mapping[bytes, Mapping[bytes, bytes]],
    lost: Collection[int],
    counters: Mapping[bytes, SenderCounter],
) -> Iterator[str]:
    """Yield the ids of lost messages, and the number of other lost messages."""
    for message_id in sorted(lost):
        yield f"message {message_id}"
    counted = found[records.COUNTERS]
    known = sum(_decode(record, type=SenderCounter).count for record in counted.values())
    others = known - sum(counters[key].count for key in counted) - len(lost)
    if others > 0:
        yield f"{others} other messages"
    elif remains.may_lack(records.COUNTERS) and remains.unread(records.MESSAGES):
        yield "messages (perhaps)"


def _lost_others(remains: Remains) -> Iterator[str]:
    """Yield other losses; a loss on an unreadable page is marked "perhaps"."""
    damaged = {key[:1] for key in remains.damaged()}
    for letter, name in _LONE.items():
        if letter in damaged:
            yield name
        elif remains.unread(letter):
            yield f"{name} (perhaps)"


def _id(key: bytes) -> int:
    return int.from_bytes(key[_ID])
