"""The messages that actors handle, what a handler may answer with, and replies as bytes.

A reply that another process, or a later one, makes again is JSON, as messages are. Of a
``Message[A | B]`` with two struct types JSON alone does not tell which one it was, so the name of the type
goes with it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Mapping
from types import UnionType
from typing import Any, ForwardRef, Generic, NamedTuple, TypeVar, Union, get_args, get_origin

import msgspec

from greenroom.runtime.base.address import Address
from greenroom.runtime.base.errors import ActorFailedError
from greenroom.runtime.lmdb.keys import encode_json

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)

Slices = Generator[None, None, R]
"""The generator that a handler of long work is: it yields whenever `Context.should_yield` says so."""


class Message(msgspec.Struct, Generic[R_co], frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A request to one actor whose reply is an ``R``: subclass ``Message[int]`` and declare the fields.

    It must survive JSON, because tells, timers and idempotent answers are stored as that.
    """

    def precheck(self) -> tuple[Address, Message[Any]] | None:
        """Return a request to make before this message is delivered, and to whom, or None.

        The supervisor asks first and puts the answer into `Context.precheck_answer`: a
        check at that moment, not a lock. Who waits for no reply waits for no answer
        either, so a message with a question is asked or posted, and not told.
        """
        return None


def check_told(message: Message[Any]) -> None:
    """Check that a message can be told, now or at its time.

    Raises:
        TypeError: it has a question.
    """
    if message.precheck() is not None:
        raise TypeError(
            f"{type(message).__name__} has a question that another actor answers first, so it can be neither "
            "told nor put on a timer; ask it"
        )


def reply_type(asked: type[Any]) -> Any:
    """Return the ``R`` of a subclass of ``Message[R]``, or of another generic type of one parameter.

    It may be named by a string, where its module defines it further down.

    Raises:
        TypeError: the class does not say what it is answered with.
    """
    for base in asked.__mro__:
        for generic in getattr(base, "__orig_bases__", ()):
            match get_args(generic):
                case (ForwardRef(__forward_arg__=name),):
                    return getattr(sys.modules[base.__module__], name)
                case (answer,) if not isinstance(answer, TypeVar):
                    return answer
    raise TypeError(
        f"{asked.__name__} does not say what it is answered with: derive it from Message[...] or the like"
    )


class Replay(Message[None], frozen=True, kw_only=True):
    """The values of `Context.record_revocation` that a restored store lacks, oldest first."""

    values: list[msgspec.Raw]


class EncodedReply(NamedTuple):
    """A reply: its JSON, and where the type of the reply is one of several the name of the right one."""

    body: bytes
    variant: str = ""


class _Codec(NamedTuple):
    decoders: Mapping[str, Callable[[bytes], Any]]
    has_variants: bool


class _Codecs(dict[Any, _Codec]):
    """By the type of what is asked; there are as many as the program has types."""

    def __missing__(self, asked: type[Any]) -> _Codec:
        codec = self[asked] = _codec(asked)
        return codec


_CODECS = _Codecs()


def encode_reply(asked: type[Any], reply: Any) -> EncodedReply:
    """Return the reply to a message or query of the type ``asked``.

    Raises:
        Exception: what the handler returned cannot be written as JSON.
    """
    variant = type(reply).__name__ if _CODECS[asked].has_variants else ""
    return EncodedReply(encode_json(reply), variant)


def decode_reply(asked: type[Any], encoded: EncodedReply) -> Any:
    """Return the reply that was encoded.

    Raises:
        ActorFailedError: it does not fit what is asked; another version of the program wrote it.
    """
    try:
        return _CODECS[asked].decoders[encoded.variant](encoded.body)
    except (msgspec.DecodeError, KeyError, TypeError) as error:
        raise ActorFailedError(f"the answer does not fit what was asked: {error}") from error


def _codec(asked: type[Any]) -> _Codec:
    reply = reply_type(asked)
    members = get_args(reply) if get_origin(reply) in (Union, UnionType) else ()
    structs = [
        member for member in members if isinstance(member, type) and issubclass(member, msgspec.Struct)
    ]
    if len(structs) < 2:  # noqa: PLR2004  two are what JSON does not tell apart
        return _Codec({"": msgspec.json.Decoder(reply).decode}, has_variants=False)
    decoders = {
        (member.__name__ if isinstance(member, type) else str(member)): msgspec.json.Decoder(member).decode
        for member in members
    }
    return _Codec(decoders, has_variants=True)
