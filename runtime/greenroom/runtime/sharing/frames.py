"""What two processes on one folder say to each other.

A frame is a length of four bytes and a msgpack list of words, all that one side had to say at that moment:

    attached  Hello                                   the owner  Welcome, or Reject
              Request, QueryRequest, Cancel, Confirm             Response, Failure
              Watch                                              Changed
              Heartbeat                                          Heartbeat, Goodbye

A word is an array whose first element says which it is. A newer program may add elements at its end, which
an older one passes over, and new words once both have said in their greetings that they know them.
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
"""The oldest one that it speaks."""

LENGTH_BYTES: Final = 4
FRAME_LIMIT: Final = 256 << 20
"""Bytes of a frame; what a page of the largest messages may take."""
FRAME_SIZE: Final = 1 << 18
"""A frame with so many bytes takes no further word."""
GREETING_LIMIT: Final = 1 << 20
"""Bytes of the first frame of each side."""


Number = Annotated[int, msgspec.Meta(ge=0)]
"""Counts the messages of one relay."""


class _Frame(msgspec.Struct, array_like=True, frozen=True):
    pass


class Hello(_Frame, frozen=True, tag=1):
    """An attached process introduces itself.

    Attributes:
        protocol: The newest version of the protocol that it speaks.
        oldest: The oldest.
        program: The version of the program.
        store_format: The newest store format that it can open.
        relay: Its id, the same for all its life.
        pid: Its process id.
        unanswered: The numbers of the messages that it is about to send again. It has seen the answers to
            all others.
    """

    protocol: int
    oldest: int
    program: str
    store_format: int
    relay: bytes
    pid: int
    unanswered: list[Number]


class Welcome(_Frame, frozen=True, tag=2):
    """The owner answers the greeting; ``protocol`` is the version that both speak from now on.

    The store's id and the mark of its secret say which secret the attached process needs, too; the mark of
    its key says the same of an encrypted store. That is empty for one in the clear, and None where the owner
    does not say.
    """

    protocol: int
    program: str
    store_format: int
    pid: int
    statistics: bytes = b""
    store_id: str = ""
    secret_mark: str = ""
    key_mark: str | None = None


class Reject(_Frame, frozen=True, tag=3):
    """The owner takes no messages of this process, and says why."""

    sentence: str


class Request(_Frame, frozen=True, tag=4):
    """A message for an actor.

    Attributes:
        number: Counts the messages of this relay.
        kind: The actor's.
        key: The actor's.
        name: The message's type.
        body: The message as JSON.
        principal: JSON of who asks.
        idempotency: Scope, key and fingerprint of the client's own key, if any.
        left: Seconds until the deadline, if any.
        answer: JSON of the answer to the message's question, if it has one.
        again: Whether it was sent to an owner before.
        told: Whether nobody waits for the answer.
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
    """A query: the name of its type, its JSON, and who asks."""

    number: Number
    name: str
    body: bytes
    principal: bytes


class Cancel(_Frame, frozen=True, tag=6):
    """Nobody wants the answer to this message any more."""

    number: Number


class Confirm(_Frame, frozen=True, tag=7):
    """The answers to these messages have arrived, so that the owner need not keep them."""

    numbers: list[Number]


class Watch(_Frame, frozen=True, tag=8):
    """Tell of changes of these topics from now on, or no longer."""

    topics: list[str]
    wanted: bool = True


class Heartbeat(_Frame, frozen=True, tag=9):
    """A sign of life; the owner's brings its statistics."""

    statistics: bytes = b""


class Response(_Frame, frozen=True, tag=10):
    """A reply: its JSON, which of several types it is, and whether the owner keeps it until confirmed."""

    number: Number
    body: bytes
    variant: str = ""
    kept: bool = False


class Failure(_Frame, frozen=True, tag=11):
    """An error instead of a reply: its type, its sentence, and JSON of what else it says."""

    number: Number
    error: str
    sentence: str
    details: bytes = b"{}"


class Changed(_Frame, frozen=True, tag=12):
    """A topic changed; the labels are a msgpack list."""

    topic: str
    labels: bytes


class Goodbye(_Frame, frozen=True, tag=13):
    """The owner takes nothing new; what it has it answers, then the connection ends."""


FromFollower = Hello | Request | QueryRequest | Cancel | Confirm | Watch | Heartbeat
FromLeader = Welcome | Reject | Response | Failure | Changed | Heartbeat | Goodbye
RelayMessage = FromFollower | FromLeader

decode_from_follower = msgspec.msgpack.Decoder(list[FromFollower]).decode
decode_from_leader = msgspec.msgpack.Decoder(list[FromLeader]).decode
_encode = msgspec.msgpack.Encoder().encode


def encode_frame(words: list[RelayMessage]) -> bytes:
    """Return the words as one frame."""
    payload = _encode(words)
    return len(payload).to_bytes(LENGTH_BYTES) + payload


_WIRE_NAMES: dict[type[BaseException], str] = {errors.ActorQuarantinedError: "ActorSetAsideError"}
"""The names that travel, of errors that are called otherwise in this program."""
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
    """Return the word for an error that a relayed message ended with."""
    details: dict[str, Any] = {}
    name = _WIRE_NAMES.get(type(error), type(error).__name__)
    if isinstance(error, errors.Refusal):
        name = "Refusal"
        details = {"code": error.code, "details": error.details}
    elif isinstance(error, errors.OverloadedError):
        details = {"retry_after_ms": error.retry_after_ms, "outcome": error.outcome}
    elif isinstance(error, errors.StorageFullError):
        details = dict(error.numbers)
    try:
        return Failure(number, name, str(error), encode_json(details))
    except (TypeError, ValueError) as problem:  # a Refusal's details may be anything
        return Failure(number, "ActorFailedError", f"the answer cannot be relayed: {problem}")


def error_of(failure: Failure) -> errors.GreenroomError:
    """Return the error that a word stands for."""
    try:
        details = msgspec.json.decode(failure.details, type=dict[str, Any])
        if failure.error == "Refusal":
            return errors.Refusal(str(details["code"]), failure.sentence, **details["details"])
        if failure.error == "OverloadedError":
            outcome: errors.Outcome = "unknown" if details.get("outcome") == "unknown" else "not_done"
            return errors.OverloadedError.of(failure.sentence, int(details["retry_after_ms"]), outcome)
        if failure.error == "StorageFullError":
            return errors.StorageFullError(failure.sentence, details)
    except (msgspec.DecodeError, KeyError, TypeError, ValueError):
        pass
    return _BY_NAME.get(failure.error, errors.ActorFailedError)(failure.sentence)
