"""What an attached process has asked and not heard of yet."""

from __future__ import annotations

from math import inf
from typing import Any

import outcome
import trio

from greenroom.runtime.actor.message import EncodedReply, decode_reply
from greenroom.runtime.actor.query import Query
from greenroom.runtime.api.procedure import Procedure
from greenroom.runtime.base.address import Address
from greenroom.runtime.base.errors import ActorFailedError, GreenroomError, Outcome
from greenroom.runtime.kernel.mailbox import Envelope, Result
from greenroom.runtime.lmdb.keys import encode_json
from greenroom.runtime.sharing import frames
from greenroom.runtime.sharing.type_registry import TypeRegistry

AGAIN = object()
"""What a query is answered with that this process now runs itself."""


class PendingMessage:
    """A message that waits for its reply.

    Attributes:
        size: About how many bytes it takes.
        since: When it was asked, on trio's clock.
    """

    __slots__ = ("_types", "address", "envelope", "number", "since", "size")

    def __init__(self, types: TypeRegistry, number: int, address: Address, envelope: Envelope) -> None:
        self._types = types
        self.number = number
        self.address = address
        self.envelope = envelope
        self.since = trio.current_time()
        self.size = 0

    def word(self, *, again: bool = False) -> frames.Request:
        """Return the word that asks it.

        Raises:
            TypeError, ValueError: something of it cannot be written.
        """
        envelope = self.envelope
        message = envelope.message
        body = encode_json(message)
        self.size = len(body)
        return frames.Request(
            self.number,
            self.address.kind,
            self.address.key,
            type(message).__name__,
            body,
            self._types.write_principal(envelope.principal),
            envelope.idempotency,
            None if envelope.deadline == inf else envelope.deadline - trio.current_time(),
            None if envelope.precheck_answer is None else encode_json(envelope.precheck_answer),
            again,
            envelope.one_way,
        )

    def answer(self, word: frames.Response) -> None:
        """Hand the reply to whoever waits for it."""
        self.end(_decoded(type(self.envelope.message), word))

    def end(self, result: Result) -> None:
        """Hand over what it ended with."""
        self.envelope.settle(result)

    @property
    def has_asker(self) -> bool:
        """Whether somebody waits for the reply; else it is to be done whenever that can be."""
        return self.envelope.asker is not None

    @property
    def outcome_unanswered(self) -> Outcome:
        """What is known of it when the owner that it was sent to is silent."""
        return "unknown"


class PendingQuery:
    """A query that waits for its answer. Attributes as those of `PendingMessage`."""

    __slots__ = ("_principal", "_query", "number", "since", "size", "task")

    def __init__(self, number: int, query: Query[Any] | Procedure[Any], principal: bytes) -> None:
        self._query = query
        self._principal = principal
        self.number = number
        self.task: trio.lowlevel.Task | None = None
        self.since = trio.current_time()
        self.size = 0

    def word(self, *, again: bool = False) -> frames.QueryRequest:  # noqa: ARG002  it does no harm twice
        """Return the word that asks it."""
        return frames.QueryRequest(
            self.number, type(self._query).__name__, encode_json(self._query), self._principal
        )

    def answer(self, word: frames.Response) -> None:
        """Hand the answer to the task that waits for it."""
        self.end(_decoded(type(self._query), word))

    def end(self, result: Result) -> None:
        """Hand over what it ended with."""
        task, self.task = self.task, None
        if task is not None:
            trio.lowlevel.reschedule(task, result)

    @property
    def has_asker(self) -> bool:
        """Whether the task still waits."""
        return self.task is not None

    @property
    def outcome_unanswered(self) -> Outcome:
        """What is known of it when the owner that it was sent to is silent."""
        return "not_done" if isinstance(self._query, Query) else "unknown"


Pending = PendingMessage | PendingQuery


def _decoded(asked: type[Any], word: frames.Response) -> Result:
    try:
        return outcome.Value(decode_reply(asked, EncodedReply(word.body, word.variant)))
    except GreenroomError as error:
        return outcome.Error(error)
    except Exception as error:  # noqa: BLE001  the reply's own type may raise anything
        return outcome.Error(ActorFailedError(f"the answer cannot be read: {error}"))
