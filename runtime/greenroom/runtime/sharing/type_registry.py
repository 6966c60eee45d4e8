"""The types that processes relay, and their encodings."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any

import msgspec

from greenroom.runtime.actor.actor import Actor
from greenroom.runtime.actor.message import Message
from greenroom.runtime.api.client import Procedure
from greenroom.runtime.base.errors import UnknownKindError
from greenroom.runtime.lmdb.keys import encode_json

PRINCIPALS = 1_024
"""The number of cached principals."""


class TypeRegistry:
    """The types that one process knows; the types of principals and labels are hashable."""

    def __init__(
        self,
        kinds: Mapping[str, type[Actor]],
        queries: Iterable[type[Procedure[Any]]],
        principal_type: Any,
        label_type: Any,
    ) -> None:
        self.kinds = kinds
        self._messages: dict[tuple[str, str], tuple[type[Message[Any]], Callable[[bytes], Message[Any]]]] = {
            (kind, message.__name__): (message, msgspec.json.Decoder(message).decode)
            for kind, actor in kinds.items()
            for message in actor.handlers
        }
        self._queries = {query.__name__: msgspec.json.Decoder(query).decode for query in queries}
        read_principal = msgspec.json.Decoder(principal_type | None).decode
        self.read_principal: Callable[[bytes], Any] = functools.lru_cache(PRINCIPALS)(read_principal)
        self.write_principal: Callable[[Any], bytes] = functools.lru_cache(PRINCIPALS)(encode_json)
        self.write_labels: Callable[[list[Hashable]], bytes] = msgspec.msgpack.Encoder().encode
        self.read_labels: Callable[[bytes], list[Hashable]] = msgspec.msgpack.Decoder(
            list[label_type | None]
        ).decode

    def read_message(self, kind: str, name: str, body: bytes) -> Message[Any]:
        """Decode a message.

        Raises:
            UnknownKindError: this process has no such message, or another form of it.
        """
        known = self._messages.get((kind, name))
        if known is None:
            raise UnknownKindError(
                f"no {kind!r} actor of the process that owns the folder handles {name}; "
                "it may be another version of the program"
            )
        try:
            return known[1](body)
        except msgspec.DecodeError as error:
            raise UnknownKindError(
                f"the process that owns the folder knows another form of {name}: {error}"
            ) from error

    def knows_query(self, query: Procedure[Any]) -> bool:
        """Return whether a query can be relayed."""
        return type(query).__name__ in self._queries

    def read_query(self, name: str, body: bytes) -> Procedure[Any]:
        """Decode a query."""
        known = self._queries.get(name)
        if known is None:
            raise UnknownKindError(f"the process that owns the folder knows no query {name}")
        try:
            query: Procedure[Any] = known(body)
        except msgspec.DecodeError as error:
            raise UnknownKindError(
                f"the process that owns the folder knows another form of {name}: {error}"
            ) from error
        return query
