"""The protocol between the processes on one folder.

A frame is a length of four bytes and a msgpack list of words:

    attached  Hello                                   the owner  Welcome, or Reject
              Request, QueryRequest, Cancel, Confirm             Response, Failure
              Watch                                              Watching, Changed
              Heartbeat                                          Heartbeat, Goodbye

A word is an array; its first element is its type. A newer program may append elements, which an older program
ignores. It may send new words if the greetings of both sides allow them.
"""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec

from greenroom.runtime.base import errors
from greenroom.runtime.lmdb.environment import FORMAT_VERSION as FORMAT_VERSION
from greenroom.runtime.lmdb.keys import encode_json

PROTOCOL: Final = 1
"""The newest version of the protocol that this program speaks."""
OLDEST: Final = 1
"""The oldest version of the protocol that this program speaks."""

LENGTH_BYTES: Final = 4
FRAME_LIMIT: Final = 256 << 20
"""The most bytes of a frame: enough for a page of the largest messages."""
FRAME_SIZE: Final = 1 << 18
"""A frame that reaches this many bytes is complete."""
GREETING_LIMIT: Final = 1 << 20
"""The most bytes of the first frame of each side."""


Number = Annotated[int, msgspec.Meta(ge=0)]
"""The number of a message, counted by each relay."""


class _Frame(msgspec.Struct, array_like=True, frozen=True):
    pass


class Hello(_Frame, frozen=True, tag=1):
    """The greeting of an attached process.

    Attributes:
        protocol: The newest version of the protocol that the process speaks.
        oldest: The oldest version that it speaks.
        store_format: The newest store format that it can open.
        relay: The id of the process, constant while it runs.
        unanswered: The numbers of the messages that it will send again. It has the replies to all others.
    """

    protocol: int
    oldest: int
    program: str
    store_format: int
    relay: bytes
    pid: int
    unanswered: list[Number]


class Welcome(_Frame, frozen=True, tag=2):
    """The greeting of the owner; ``protocol`` is the version for this connection.

    The store's id and the mark of its secret identify the secret; the attached process needs the same one.
    The mark of the encryption key identifies that key: it is empty for a store in the clear, and None from an
    owner of an older version. ``confirms_watches`` says whether it sends `Watching`.
    """

    protocol: int
    program: str
    store_format: int
    pid: int
    statistics: bytes = b""
    store_id: str = ""
    secret_mark: str = ""
    key_mark: str | None = None
    confirms_watches: bool = False


class Reject(_Frame, frozen=True, tag=3):
    """The owner refuses this process, with the reason."""

    sentence: str


class Request(_Frame, frozen=True, tag=4):
    """A message for an actor.

    Attributes:
        principal: The caller's identity as JSON.
        idempotency: Scope, key and fingerprint of the client's own key, if any.
        left: The seconds until the deadline, if there is one.
        answer: The reply to the message's precheck, if there is one, as JSON.
        again: Whether the message was sent to an owner before.
        told: Whether it was sent with `tell`, without a wait for the reply.
    """

    number: Number
    kind: str
    key: str
    name: str
    body: bytes
    principal: bytes
    idempotency: tuple[str, str, bytes] | None = None
    left: float | None = None
    answer: bytes | None = None
    again: bool = False
    told: bool = False


class QueryRequest(_Frame, frozen=True, tag=5):
    """A query: the name of its type, its JSON, and the caller's identity."""

    number: Number
    name: str
    body: bytes
    principal: bytes


class Cancel(_Frame, frozen=True, tag=6):
    """The caller no longer waits for this message."""

    number: Number


class Confirm(_Frame, frozen=True, tag=7):
    """The replies to these messages have arrived; the owner need not store them."""

    numbers: list[Number]


class Watch(_Frame, frozen=True, tag=8):
    """Subscribe to these topics, or unsubscribe from them; a number asks for `Watching`."""

    topics: list[str]
    wanted: bool = True
    number: Number = 0


class Heartbeat(_Frame, frozen=True, tag=9):
    """A sign of life; the owner's has its statistics."""

    statistics: bytes = b""


class Response(_Frame, frozen=True, tag=10):
    """A reply: its JSON, its type if several are possible, and whether it is stored."""

    number: Number
    body: bytes
    variant: str = ""
    kept: bool = False


class Failure(_Frame, frozen=True, tag=11):
    """An error instead of a reply: its type, its sentence, and its details as JSON."""

    number: Number
    error: str
    sentence: str
    details: bytes = b"{}"


class Changed(_Frame, frozen=True, tag=12):
    """A topic changed; the labels are a msgpack list."""

    topic: str
    labels: bytes


class Goodbye(_Frame, frozen=True, tag=13):
    """The owner accepts nothing new, answers what it has, and ends the connection."""


class Watching(_Frame, frozen=True, tag=14):
    """The subscriptions up to this number are in place: every later change is sent."""

    number: Number


FromAttached = Hello | Request | QueryRequest | Cancel | Confirm | Watch | Heartbeat
FromOwner = Welcome | Reject | Response | Failure | Changed | Heartbeat | Goodbye | Watching
RelayMessage = FromAttached | FromOwner

decode_from_attached = msgspec.msgpack.Decoder(list[FromAttached]).decode
decode_from_owner = msgspec.msgpack.Decoder(list[FromOwner]).decode
_encode = msgspec.msgpack.Encoder().encode


def encode_frame(words: list[RelayMessage]) -> bytes:
    """Return the words as one frame."""
    payload = _encode(words)
    return len(payload).to_bytes(LENGTH_BYTES) + payload


_WIRE_NAMES: dict[type[BaseException], str] = {
    errors.ActorQuarantinedError: "ActorSetAsideError",
    errors.RecordDamagedError: "StoreDamagedError",
}
"""The names on the wire of errors that have another name in this program."""
_BY_NAME: dict[str, type[errors.GreenroomError]] = {
    _WIRE_NAMES.get(each, each.__name__): each
    for each in (
        errors.ActorFailedError,
        errors.ActorQuarantinedError,
        errors.ConfigurationError,
        errors.DeadlineExceededError,
        errors.IdempotencyConflictError,
        errors.InvalidAddressError,
        errors.OverloadedError,
        errors.StorageFullError,
        errors.StoreDamagedError,
        errors.StoreError,
        errors.UnknownKindError,
    )
}


def failure_of(number: int, error: BaseException) -> Failure:
    """Return the word for the error of a relayed message."""
    details: dict[str, Any] = {}
    name = _WIRE_NAMES.get(type(error), type(error).__name__)
    if isinstance(error, errors.Refusal):
        name = "Refusal"
        details = {"code": error.code, "details": error.details}
    elif isinstance(error, errors.OverloadedError):
        details = {"retry_after_ms": error.retry_after_ms, "outcome": error.outcome}
    elif isinstance(error, errors.StorageFullError):
        details = dict(error.numbers)
    elif isinstance(error, errors.RecordDamagedError):
        details = {"key": error.key.hex(), "entry": error.entry}
    try:
        return Failure(number, name, str(error), encode_json(details))
    except (TypeError, ValueError) as problem:  # a Refusal's details may be anything
        return Failure(number, "ActorFailedError", f"the reply cannot be relayed: {problem}")


def error_of(failure: Failure) -> errors.GreenroomError:
    """Return the error of a word."""
    try:
        details = msgspec.json.decode(failure.details, type=dict[str, Any])
        if failure.error == "Refusal":
            return errors.Refusal(str(details["code"]), failure.sentence, **details["details"])
        if failure.error == "OverloadedError":
            outcome: errors.Outcome = "unknown" if details.get("outcome") == "unknown" else "not_done"
            return errors.OverloadedError.of(failure.sentence, int(details["retry_after_ms"]), outcome)
        if failure.error == "StoreDamagedError" and "entry" in details:
            key = bytes.fromhex(details["key"])
            return errors.RecordDamagedError(key, failure.sentence, details["entry"])
        if failure.error == "StorageFullError":
            return errors.StorageFullError(failure.sentence, details)
    except (msgspec.DecodeError, KeyError, TypeError, ValueError):
        pass
    return _BY_NAME.get(failure.error, errors.ActorFailedError)(failure.sentence)
