"""The errors that the runtime raises on purpose.

Each class states who is at fault, whether the request was begun, and whether a repeat can help.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from typing import Any, Self

Outcome = Literal["not_done", "unknown"]
"""The outcome of a request that was not answered."""


class GreenroomError(Exception):
    """Base of every error that Greenroom raises on purpose."""


class Refusal(GreenroomError):  # noqa: N818  a reply, not a fault
    """A handler's refusal: a domain error that is a reply, not a fault.

    Raise it in a handler *before* changing state or staging effects; the actor goes on.

    Args:
        code: A constant such as ``SESSION_NOT_FOUND``, stable across releases.
        sentence: What was wrong, with which value, and what to do.
        details: JSON-ready particulars for programs.

    Attributes:
        is_denial: Whether it denies a right, perhaps without saying so, and no journal has recorded that yet.
    """

    is_denial = False

    def __init__(self, code: str, sentence: str, **details: Any) -> None:
        super().__init__(sentence)
        self.code = code
        self.sentence = sentence
        self.details = details


class ActorFailedError(GreenroomError):
    """The handler raised an exception; its effects were rolled back and the actor is rebuilt.

    Unlike `Refusal` this is a fault of the actor's code. A repeat finds a fresh actor.
    """


class ActorQuarantinedError(GreenroomError):
    """The actor failed too often and is in quarantine until `Runtime.readmit`.

    Unlike with `ActorFailedError` no handler ran, and a repeat gets the same error.
    """


class OverloadedError(GreenroomError):
    """The actor's mailbox is full, or the process that owns the folder does not answer.

    Args:
        retry_after_ms: When to repeat, in milliseconds from now.

    Attributes:
        outcome: ``unknown`` if a silent owner may still handle the request: repeat it only with the same
            idempotency key. Otherwise ``not_done``.
    """

    outcome: Outcome = "not_done"

    def __init__(self, address: object, retry_after_ms: int) -> None:
        super().__init__(f"the mailbox of {address} is full; repeat in {retry_after_ms} ms")
        self.retry_after_ms = retry_after_ms

    @classmethod
    def of(cls, sentence: str, retry_after_ms: int, outcome: Outcome = "not_done") -> Self:
        """Return an error with this sentence."""
        error = cls("", retry_after_ms)
        error.args = (sentence,)
        error.outcome = outcome
        return error


class DeadlineExceededError(GreenroomError):
    """The deadline passed before the request was begun; nothing was done.

    A request that was begun commits whole or not at all; the caller's cancel scope ends the wait.
    """


class RuntimeClosedError(GreenroomError):
    """The program or a signal closed the runtime before the reply.

    An accepted message took effect whole or not at all: check after the next start.
    """


class UnknownKindError(GreenroomError):
    """No actor class given to `open_runtime` has that kind, or handles that message."""


class InvalidAddressError(GreenroomError):
    """The kind or key of the address is empty, too long, or holds a NUL."""


class ConfigurationError(GreenroomError):
    """The arguments of `open_runtime` contradict each other, or lack an index or journal."""


class IdempotencyConflictError(GreenroomError):
    """The idempotency key was used before with other arguments; use a new one."""


class StoreError(GreenroomError):
    """Base of the errors of a runtime's folder and store."""


class StorageFullError(StoreError):
    """The map or the disk is full; reads, deletes and expiry still work.

    Args:
        numbers: For clients, the limit that was reached and the current size, in bytes; not given if the
            sentence names a path.
    """

    def __init__(self, sentence: str, numbers: Mapping[str, int] | None = None) -> None:
        super().__init__(sentence)
        self.numbers = dict(numbers or {})


class StoreOwnedError(StoreError):
    """Another process owns the folder; its id is 0 if it could not be read."""

    def __init__(self, folder: Path, pid: int, sentence: str = "") -> None:
        owner = f"process {pid}" if pid else "another process"
        super().__init__(
            sentence
            or f"{folder} is in use by {owner}; stop that process, or choose another folder with --data"
        )
        self.folder = folder
        self.pid = pid


class StoreIdleError(StoreError):
    """No process owns the folder, and this one may only attach to an owner.

    Unlike with `StoreOwnedError`, a process that may own the folder can start at once.
    """


class StoreDamagedError(StoreError):
    """The structure or a record's checksum is wrong. Run `greenroom verify`, then `greenroom restore`."""


class RecordDamagedError(StoreDamagedError):
    """One record differs from what was stored; the pages around it may be sound.

    Args:
        key: The key under which the record was stored, if known, else where it lies. In an encrypted store,
            names in it are hidden.
        entry: The entry's name for the caller, such as a key or an id; empty if not known.
        lies_at: The key under which the record lies, if it may differ from ``key``.
        is_key_known: Whether the key under which the record was stored is proven.
    """

    def __init__(
        self,
        key: bytes,
        sentence: str,
        entry: Mapping[str, str] | None = None,
        *,
        lies_at: bytes | None = None,
        is_key_known: bool = False,
    ) -> None:
        super().__init__(sentence)
        self.key = key
        self.entry = dict(entry or {})
        self.lies_at = key if lies_at is None else lies_at
        self.is_key_known = is_key_known


class StoreKeyError(StoreError):
    """The key is missing or wrong, or the store should be encrypted but is not.

    Unlike with `StoreDamagedError` the data are intact; the sentence names the key that is needed.
    """


class StoreTooNewError(StoreError):
    """A newer Greenroom wrote the store. Upgrade this program; the data are intact."""


class StoreFailedError(StoreError):
    """A commit failed, not for lack of space, so the runtime answers nothing more.

    The process must end, and repeat no request; the next start uses what is on disk.
    """


class OwnershipLostError(StoreFailedError):
    """This process lost the folder's lock or files, so it writes and answers nothing more.

    Unanswered requests are not committed. The folder may be opened again at once.
    """
