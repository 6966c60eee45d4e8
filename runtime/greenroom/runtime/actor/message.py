"""The messages that actors handle, and their replies as values and as bytes.

Stored and relayed replies are JSON, like messages. JSON does not distinguish the struct types of a
``Message[A | B]``, or of a ``Message[B]`` with `Variants`. So the name of the type is added.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Mapping
from types import UnionType
from typing import (
    Any,
    ClassVar,
    Final,
    ForwardRef,
    Generic,
    NamedTuple,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
)

import msgspec

from greenroom.runtime.base.address import Address
from greenroom.runtime.base.errors import ActorFailedError
from greenroom.runtime.lmdb.keys import encode_json

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)

Slices = Generator[None, None, R]
"""The call of a long handler: a generator that yields wherever the runtime may pause it.

The runtime pauses it when its slice of the event loop is used up, and where it yields `WAITING`.
"""

WAITING: Final = cast("None", True)
"""A generator yields this when it can continue only after other code has run.

For type checkers it is None, like a bare ``yield``.
"""


def finish(slices: Slices[R]) -> R:
    """Run a generator to its end without a pause; return its result."""
    while True:
        try:
            next(slices)
        except StopIteration as done:
            result: R = done.value
            return result


class Message(msgspec.Struct, Generic[R_co], frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A request to one actor with a reply of type ``R``.

    Subclass ``Message[int]``, for example, and declare the fields. Encoding as JSON must not change a
    message, because tells, timers and idempotent replies are stored as JSON.

    Class attributes:
        only_reads: Whether its handler changes nothing that another message depends on, so that it may run
            before its actor's turn; any effects are committed as usual.
    """

    only_reads: ClassVar[bool] = False

    def precheck(self) -> tuple[Address, Message[Any]] | None:
        """Return an actor and a request to send to it before this message, or None.

        The runtime sends it first and puts the reply into `Context.precheck_answer`. This is a check, not a
        lock. A message with a precheck cannot be sent with `tell`, because `tell` waits for no reply.
        """
        return None


class Variants(msgspec.Struct, frozen=True, kw_only=True):
    """Base of replies with several types: declare ``class B(Variants)`` for a ``Message[B]``.

    The reply is one of the structs derived from ``B``, in any module.
    """


def check_tellable(message: Message[Any]) -> None:
    """Raise TypeError for a message with a precheck, which `tell` and timers cannot send."""
    if message.precheck() is not None:
        raise TypeError(
            f"{type(message).__name__} has a precheck that another actor answers first, so neither `tell` "
            "nor a timer can send it; use `ask`"
        )


def reply_type(request: type[Any]) -> Any:
    """Return the ``R`` of a subclass of ``Message[R]``, or of another generic with one parameter.

    ``R`` may be a string that names a class further down. Raises TypeError if there is no ``R``.
    """
    for base in request.__mro__:
        for generic in getattr(base, "__orig_bases__", ()):
            match get_args(generic):
                case (ForwardRef(__forward_arg__=name),):
                    return getattr(sys.modules[base.__module__], name)
                case (answer,) if not isinstance(answer, TypeVar):
                    return answer
    raise TypeError(
        f"{request.__name__} does not declare the type of its reply: derive it from Message[...] or the like"
    )


def reply_variants(reply: Any) -> tuple[Any, ...]:
    """Return the possible types of a reply; an empty tuple if only one is possible."""
    if isinstance(reply, type) and Variants in reply.__bases__:
        return tuple(reply.__subclasses__())
    return get_args(reply) if get_origin(reply) in (Union, UnionType) else ()


class Replay(Message[None], frozen=True, kw_only=True):
    """The values of `Context.record_revocation` that a restored store lacks, oldest first."""

    values: list[msgspec.Raw]


class EncodedReply(NamedTuple):
    """A reply as JSON, and the name of its type if several are possible."""

    body: bytes
    variant: str = ""


class _Codec(NamedTuple):
    decoders: Mapping[str, Callable[[bytes], Any]]
    has_variants: bool


class _Codecs(dict[Any, _Codec]):
    """The codecs by type of request."""

    def __missing__(self, request: type[Any]) -> _Codec:
        codec = self[request] = _codec(request)
        return codec


_CODECS = _Codecs()


def encode_reply(request: type[Any], reply: Any) -> EncodedReply:
    """Encode the reply to a message or query of type ``request``."""
    variant = type(reply).__name__ if _CODECS[request].has_variants else ""
    return EncodedReply(encode_json(reply), variant)


def decode_reply(request: type[Any], encoded: EncodedReply) -> Any:
    """Decode a reply."""
    try:
        return _CODECS[request].decoders[encoded.variant](encoded.body)
    except (msgspec.DecodeError, KeyError, TypeError) as error:
        raise ActorFailedError(f"the reply does not fit the request: {error}") from error


def _codec(request: type[Any]) -> _Codec:
    reply = reply_type(request)
    members = reply_variants(reply)
    structs = [
        member for member in members if isinstance(member, type) and issubclass(member, msgspec.Struct)
    ]
    if len(structs) < 2:  # noqa: PLR2004  JSON does not distinguish two
        return _Codec({"": msgspec.json.Decoder(reply).decode}, has_variants=False)
    decoders = {
        (member.__name__ if isinstance(member, type) else str(member)): msgspec.json.Decoder(member).decode
        for member in members
    }
    return _Codec(decoders, has_variants=True)
