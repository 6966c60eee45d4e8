"""The base class of actors, and the decorator that marks their handlers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, TypeVar

from greenroom.runtime.actor.context import Context
from greenroom.runtime.actor.message import Message, Slices
from greenroom.runtime.base.errors import ConfigurationError
from greenroom.runtime.lmdb.key_blinding import Span

R = TypeVar("R")
S = TypeVar("S")
N = TypeVar("N")
Handler = Callable[[S, N, Context], R | Slices[R]]
Handlers = Mapping[type[Message[Any]], Callable[..., Any]]
_HANDLES = "_greenroom_handles"


def handles(message_type: type[Message[R]]) -> Callable[[Handler[S, N, R]], Handler[S, N, R]]:
    """Mark a method as the handler of one message type.

    A handler is an ordinary function ``(self, message, context) -> reply``, or a generator (`Slices`) if it
    takes long. It does no I/O and reads no clock.
    """

    def mark(function: Handler[S, N, R]) -> Handler[S, N, R]:
        setattr(function, _HANDLES, message_type)
        return function

    return mark


class Actor:
    """Base of every actor class: one instance per address, one message at a time.

    Class attributes:
        kind: The name of the kind, unique in a runtime.
        size: The estimated memory of one instance, in bytes; not used if `resident_bytes` is overridden.
        handlers: The functions that handle messages, by type. A class may list them if they are in several
            modules; methods marked with `handles` and inherited handlers are added.
    """

    kind: ClassVar[str]
    size: ClassVar[int] = 1_000
    handlers: ClassVar[Mapping[type[Message[Any]], Callable[..., Any]]] = {}
    _marked: ClassVar[Mapping[type[Message[Any]], str]] = {}

    def __init_subclass__(cls) -> None:
        """Complete the table of handlers."""
        super().__init_subclass__()
        listed = vars(cls).get("handlers", {})
        marked = {
            getattr(member, _HANDLES): name for name, member in vars(cls).items() if hasattr(member, _HANDLES)
        }
        cls._marked = {kind: name for kind, name in cls._marked.items() if kind not in listed} | marked
        handlers: dict[type[Message[Any]], Callable[..., Any]] = {}
        for base in reversed(cls.__mro__):
            handlers |= vars(base).get("handlers", {})
        cls.handlers = handlers | {kind: getattr(cls, name) for kind, name in cls._marked.items()}

    @staticmethod
    def names(key: bytes) -> Iterable[Span]:  # noqa: ARG004 - for overrides
        """Return the spans of a record's key that are names; an encrypted store hides these.

        See `Names`. The result for a stored key must never change. The actor's own key is always hidden.
        """
        return ()

    def activate(self, context: Context) -> None:
        """Load the state from the store, before the first message and after a failure."""

    @staticmethod
    def name_damage(reply: Any, context: Context) -> Any:  # noqa: ARG004 - for overrides
        """Return a reply that names the skipped damaged records; by default raise the first error."""
        raise context.damage[0]

    def resident_bytes(self) -> int:
        """Return an estimate of this instance's memory, in bytes."""
        return self.size


def kinds_by_name(classes: tuple[type[Actor], ...]) -> dict[str, type[Actor]]:
    """Return the classes by kind."""
    table: dict[str, type[Actor]] = {}
    for cls in classes:
        if table.setdefault(cls.kind, cls) is not cls:
            raise ConfigurationError(f"{cls!r} and {table[cls.kind]!r} both claim the kind {cls.kind!r}")
        names: dict[str, type[Message[Any]]] = {}  # tells and timers are stored under these names
        for message in cls.handlers:
            if names.setdefault(message.__name__, message) is not message:
                raise ConfigurationError(
                    f"{cls!r} handles {message!r} and {names[message.__name__]!r}; rename one of them"
                )
    return table
