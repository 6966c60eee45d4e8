"""What is inside a passport, and what of it is checked before it becomes a session."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from greenroom.actors.auth import passport_errors
from greenroom.actors.auth.errors import MAX_VALUE_BYTES
from greenroom.actors.base.strict_json import check_json
from greenroom.actors.schemas import passport_payload as requests
from greenroom.actors.schemas import session_travel as travel
from greenroom.runtime import Refusal

MOST_MESSAGES = 100_000
MOST_MEMORIES = 10_000


class PassportPayload(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A session with all of it that the exporter may see and wanted to take along.

    Attributes:
        messages: JSON of `PayloadMessage`, oldest first.
        memories: JSON of `MemoryLine`; the exporter's own namespaces become the importer's.
    """

    session: requests.PayloadSession
    context: travel.SessionContext
    migrations: Annotated[list[travel.Migration], Meta(max_length=travel.MOST_MIGRATIONS)]
    messages: list[msgspec.Raw]
    memories: list[msgspec.Raw] = []


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(PassportPayload).decode
_message = msgspec.json.Decoder(requests.PayloadMessage).decode


def write(payload: PassportPayload) -> bytes:
    """Return payload as JSON."""
    return _encode(payload)


def read(raw: bytes) -> PassportPayload:
    """Return payload that can become a session; its memories are checked by who imports them.

    Raises:
        Refusal: ``PASSPORT_INVALID`` names what cannot be kept.
    """
    try:
        payload = _decode(raw)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise passport_errors.invalid(f"its content is no session: {error}") from None
    _check_size("messages", payload.messages, MOST_MESSAGES)
    _check_size("memories", payload.memories, MOST_MEMORIES)
    _check_object("the metadata of the session", payload.session.metadata)
    _check_object("the state of the session", payload.session.state)
    for number, line in enumerate(payload.messages):
        try:
            message = _message(line)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
            raise passport_errors.invalid(f"its message {number} is none: {error}") from None
        _check_json(f"its message {number}", line)
        _check_shape(f"the metadata of its message {number}", message.metadata)
    return payload


def id_of(line: msgspec.Raw) -> int:
    """Return the id of a message."""
    return _message(line).message_id


def pieces(messages: Iterable[msgspec.Raw]) -> list[list[msgspec.Raw]]:
    """Return messages in pieces of about `PIECE_BYTES`."""
    found: list[list[msgspec.Raw]] = []
    size = requests.PIECE_BYTES
    for line in messages:
        if size >= requests.PIECE_BYTES:
            found.append([])
            size = 0
        found[-1].append(line)
        size += len(memoryview(line))
    return found


def _check_size(name: str, lines: list[Any], most: int) -> None:
    if len(lines) > most:
        raise passport_errors.invalid(f"it has {len(lines):,} {name} and the limit is {most:,}")


def _check_object(name: str, raw: msgspec.Raw) -> None:
    _check_shape(name, raw)
    _check_json(name, raw)


def _check_shape(name: str, raw: msgspec.Raw) -> None:
    value = bytes(raw)
    if not value.startswith(b"{"):
        raise passport_errors.invalid(f"{name} is no object")
    if len(value) > MAX_VALUE_BYTES:
        raise passport_errors.invalid(f"{name} has {len(value):,} bytes and the limit is {MAX_VALUE_BYTES:,}")


def _check_json(name: str, raw: msgspec.Raw) -> None:
    try:
        check_json(bytes(raw))
    except Refusal as refusal:
        raise passport_errors.invalid(f"{name}: {refusal.sentence}") from None
