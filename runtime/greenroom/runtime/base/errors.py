"""Everything the runtime raises on purpose.

One base, few leaves. A leaf says who is at fault and what remains true: whether
the work was begun, and whether a repeat can help.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, Self

Outcome = Literal["not_done", "unknown"]
"""What is known of a request that was not answered."""


class GreenroomError(Exception):
    """Base of every error that Greenroom raises on purpose."""


class Refusal(GreenroomError):  # noqa: N818  an answer, not a fault
    """A handler's own "no": a domain error that is an answer, not a fault.

    Raise it in a handler *before* changing state or staging effects; the asker
    gets it, the actor lives on. (A handler that raises anything else is rolled
    back and its asker gets `ActorFailedError`.)

    Args:
        code: A constant such as ``SESSION_NOT_FOUND``, stable across releases.
        sentence: What was wrong, with which value, and what to do.
        details: JSON-ready particulars for programs.

    Attributes:
        is_denial: Whether it was said for want of rights, also where the answer does not show that, and no
            journal has that yet.
    """

    is_denial = False

    def __init__(self, code: str, sentence: str, **details: Any) -> None:
        super().__init__(sentence)
        self.code = code
        self.sentence = sentence
        self.details = details


class ActorFailedError(GreenroomError):
    """The handler raised; its effects were rolled back and the actor is rebuilt.

    Unlike `Refusal` this is a fault of the actor's code. A repeat finds a fresh actor.
    """


class ActorQuarantinedError(GreenroomError):
    """The actor failed too often and is set aside until `Runtime.readmit` lets it in again.

    Unlike `ActorFailedError` nothing was run: a repeat gets this same answer.
    """


class OverloadedError(GreenroomError):
    """The actor's mailbox is full, or the process that owns the folder does not answer.

    Args:
        address: The actor whose mailbox is full.
        retry_after_ms: When a repeat is worth while, in milliseconds.

    Attributes:
        outcome: ``unknown`` if a silent owner may still do it, so that only a repeat with its idempotency key
            does it once; ``not_done`` otherwise.
    """

    outcome: Outcome = "not_done"

    def __init__(self, address: object, retry_after_ms: int) -> None:
        super().__init__(f"the mailbox of {address} is full; repeat in {retry_after_ms} ms")
        self.retry_after_ms = retry_after_ms

    @classmethod
    def of(cls, sentence: str, retry_after_ms: int, outcome: Outcome = "not_done") -> Self:
        """Return one with a sentence of its own."""
        error = cls("", retry_after_ms)
        error.args = (sentence,)
        error.outcome = outcome
        return error


class DeadlineExceededError(GreenroomError):
    """The deadline passed before the work was begun; nothing was done.

    Work that was begun commits whole or not at all, and then the caller's own
    cancel scope ends the wait (`trio.TooSlowError`, `trio.Cancelled`).
    """


class RuntimeClosedError(GreenroomError):
    """*You* (or a signal) closed the runtime before the reply.

    A message that the runtime did not accept was not begun. For one that it had accepted,
    look after the next start: it took effect whole or not at all.
    """


class UnknownKindError(GreenroomError):
    """No actor class of that kind, or no handler for that message, was given to `open_runtime`."""


class InvalidAddressError(GreenroomError):
    """The address cannot be an actor's: its kind or key is empty, too long, or holds a NUL."""


class ConfigurationError(GreenroomError):
    """What was given to `open_runtime` does not go together, or lacks an index or journal that is used.

    Unlike `UnknownKindError` it is not about a message: a name is used twice or is none, a group names a
    kind that is not there, or a handler or query names an index or journal that is not there.
    """


class IdempotencyConflictError(GreenroomError):
    """The idempotency key was used before with other arguments. Use a new key for a new request."""


class StoreError(GreenroomError):
    """Base of what goes wrong between the runtime and its folder."""


class StorageFullError(StoreError):
    """The map or the disk has no room for this write; reads, deletes and expiry still work.

    Args:
        sentence: What is full, and what helps.
        numbers: The limit that was reached and what there is, in bytes, where the sentence names no path:
            then clients are given both.
    """

    def __init__(self, sentence: str, numbers: Mapping[str, int] | None = None) -> None:
        super().__init__(sentence)
        self.numbers = dict(numbers or {})


class StoreOwnedError(StoreError):
    """Another process owns the folder.

    Args:
        folder: The folder of the store.
        pid: The owner's process id, 0 when it could not be read.
        sentence: What the owner says to that, if it said anything.
    """

    def __init__(self, folder: Path, pid: int, sentence: str = "") -> None:
        owner = f"process {pid}" if pid else "another process"
        super().__init__(
            sentence
            or f"{folder} is in use by {owner}; stop that process, or choose another folder with --data"
        )
        self.folder = folder
        self.pid = pid


class StoreIdleError(StoreError):
    """No process owns the folder, and this one was only to attach to one that does.

    Unlike with `StoreOwnedError` a process that may own it can be started at once.
    """


class StoreDamagedError(StoreError):
    """The structure or a record's checksum is wrong. Run `greenroom verify`, then `greenroom restore`."""


class StoreKeyError(StoreError):
    """The store is encrypted with a key that was not given, or should be encrypted and is not.

    Unlike with `StoreDamagedError` the data are as they were; the sentence says which key is wanted.
    """


class StoreTooNewError(StoreError):
    """The store was written by a newer Greenroom. Upgrade this program; the data is untouched."""


class StoreFailedError(StoreError):
    """A commit failed for another reason than space, so nothing more is answered.

    The process must end; the next start goes by what is on disk. Unlike
    `StorageFullError` no request may be repeated in this process.
    """
