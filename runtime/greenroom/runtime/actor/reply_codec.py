"""A reply as bytes that another process, or a later one, makes the reply of again.

It is JSON, as messages are. Of a ``Message[A | B]`` with two struct types, JSON alone does not tell which
one it was, so the name of the type goes with it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import UnionType
from typing import Any, NamedTuple, Union, get_args, get_origin

import msgspec

from greenroom.runtime.actor.message import reply_type
from greenroom.runtime.base.errors import ActorFailedError
from greenroom.runtime.lmdb.keys import encode_json


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
