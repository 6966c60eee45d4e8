"""Requests about memories in the name of one principal, checked as those of the tools."""

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


def encoded(value: Any) -> bytes:
    """Return the JSON of a value.

    Raises:
        Refusal: ``SERIALIZATION_ERROR``: it has a lone surrogate, or an object that JSON has nothing like.
    """
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError as error:
        sentence = f"this is no value for JSON: a text holds a lone surrogate at character {error.start}"
        raise not_serializable(sentence) from None
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise not_serializable(f"this is no value for JSON: {error}") from None


class MemoryRequests:
    """Asks about the memories of one namespace.

    Args:
        database: Where they are.
        principal: In whose name.
        namespace: Which of its namespaces.
    """

    def __init__(self, database: Database, principal: Principal, namespace: str) -> None:
        self.namespace = namespace
        self._database = database
        self._principal = principal

    async def ask(self, request_type: type[Message[R]], **arguments: Any) -> R:
        """Check the arguments as those of a tool, and ask the actor of the namespace.

        Raises:
            Refusal: a "no", also of an argument that breaks a rule or that JSON cannot hold.
        """
        request = parse_request(request_type, encoded(arguments))
        return await self._database.ask(memory_address(self.namespace), request, principal=self._principal)

    async def query(self, query_type: type[Procedure[R]], **arguments: Any) -> R:
        """Check the arguments as those of a tool, and answer the query in the namespace.

        Raises:
            Refusal: as `ask`.
        """
        query = parse_request(query_type, encoded({"namespace": self.namespace, **arguments}))
        return await self._database.query(query, principal=self._principal)

    async def listed(self, **filters: Any) -> AsyncGenerator[MemoryView, None]:
        """Yield all memories of the namespace that fit the filters, newest update first."""
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
