"""Requests of one principal about memories; arguments are checked as in the tools."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any, TypeVar

import msgspec

from greenroom.actors import (
    Database,
    ListMemories,
    MemoryView,
    Principal,
    memory_address,
    parse_request,
)
from greenroom.actors.core.auth.errors import not_serializable
from greenroom.runtime import Message, Procedure

R = TypeVar("R")
PAGE = 200


def encode(value: Any) -> bytes:
    """Encode a value as JSON."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError as error:
        sentence = f"this is no value for JSON: a text holds a lone surrogate at character {error.start}"
        raise not_serializable(sentence) from None
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise not_serializable(f"this is no value for JSON: {error}") from None


class MemoryRequests:
    """Requests about the memories of one namespace."""

    def __init__(self, database: Database, principal: Principal, namespace: str) -> None:
        self.namespace = namespace
        self._database = database
        self._principal = principal

    async def ask(self, request_type: type[Message[R]], **arguments: Any) -> R:
        """Check the arguments as a tool does, and send the request to the actor.

        Raises:
            Refusal: from the actor, or for an argument that breaks a rule or has no JSON form.
        """
        request = parse_request(request_type, encode(arguments))
        return await self._database.ask(memory_address(self.namespace), request, principal=self._principal)

    async def query(self, query_type: type[Procedure[R]], **arguments: Any) -> R:
        """Check the arguments as a tool does, and run the query in the namespace."""
        query = parse_request(query_type, encode({"namespace": self.namespace, **arguments}))
        return await self._database.query(query, principal=self._principal)

    async def listed(self, **filters: Any) -> AsyncGenerator[MemoryView, None]:
        """Yield all memories of the namespace that match filters, newest update first."""
        cursor: str | None = None
        while True:
            page = await self.ask(
                ListMemories,
                namespace=self.namespace,
                filters={"superseded": True, **filters},
                limit=PAGE,
                cursor=cursor,
            )
            for view in page.memories:
                if view.namespace == self.namespace:
                    yield view
            cursor = page.next_cursor
            if cursor is None:
                return
