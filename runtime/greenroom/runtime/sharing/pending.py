"""The unanswered requests of an attached process."""

from __future__ import annotations

from math import inf
from typing import Any

import outcome
import trio

from greenroom.runtime.actor.message import EncodedReply, decode_reply
from greenroom.runtime.api.client import Procedure
from greenroom.runtime.base.address import Address
from greenroom.runtime.base.errors import ActorFailedError, GreenroomError, Outcome
from greenroom.runtime.kernel.mailbox import Envelope, Result
from greenroom.runtime.lmdb.keys import encode_json
from greenroom.runtime.sharing import frames
from greenroom.runtime.sharing.type_registry import TypeRegistry

AGAIN = object()
"""The reply that means that this process must now run the query itself."""


class PendingMessage:
    """A message that waits for its reply."""

    __slots__ = ("_types", "address", "envelope", "number", "since", "size", "was_sent")

    def __init__(self, types: TypeRegistry, number: int, address: Address, envelope: Envelope) -> None:
        self._types = types
        self.number = number
        self.address = address
        self.envelope = envelope
        self.since = trio.current_time()
        self.size = 0
        self.was_sent = False

    def word(self, *, again: bool = False) -> frames.Request:
        """Return the word that relays the message."""
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
        """Complete the message with a reply."""
        self.end(_decode(type(self.envelope.message), word))

    def end(self, result: Result) -> None:
        """Complete the message with a result."""
        self.envelope.complete(result)

    @property
    def has_caller(self) -> bool:
        """Whether a caller waits for the reply; otherwise the time of handling does not matter."""
        return self.envelope.caller is not None

    @property
    def outcome_unanswered(self) -> Outcome:
        """The known outcome if the owner is silent."""
        return "unknown" if self.was_sent else "not_done"


class PendingQuery:
    """A query that waits for its reply. It has the same attributes as `PendingMessage`."""

    __slots__ = ("_principal", "_query", "number", "since", "size", "task", "was_sent")

    def __init__(self, number: int, query: Procedure[Any], principal: bytes) -> None:
        self._query = query
        self._principal = principal
        self.number = number
        self.task: trio.lowlevel.Task | None = None
        self.since = trio.current_time()
        self.size = 0
        self.was_sent = False

    def word(self, *, again: bool = False) -> frames.QueryRequest:  # noqa: ARG002  a repeat does no harm
        """Return the word that relays the query."""
        return frames.QueryRequest(
            self.number, type(self._query).__name__, encode_json(self._query), self._principal
        )

    def answer(self, word: frames.Response) -> None:
        """Complete the query with a reply."""
        self.end(_decode(type(self._query), word))

    def end(self, result: Result) -> None:
        """Complete the query with a result."""
        task, self.task = self.task, None
        if task is not None:
            trio.lowlevel.reschedule(task, result)

    @property
    def has_caller(self) -> bool:
        """Whether the task still waits."""
        return self.task is not None

    @property
    def outcome_unanswered(self) -> Outcome:
        """The known outcome if the owner is silent."""
        return "not_done" if self._query.runs == "snapshot" or not self.was_sent else "unknown"


Pending = PendingMessage | PendingQuery


def _decode(request: type[Any], word: frames.Response) -> Result:
    try:
        return outcome.Value(decode_reply(request, EncodedReply(word.body, word.variant)))
    except GreenroomError as error:
        return outcome.Error(error)
    except Exception as error:  # noqa: BLE001  the reply's own type may raise anything
        return outcome.Error(ActorFailedError(f"the reply cannot be read: {error}"))
