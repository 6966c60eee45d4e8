"""What an actor is made of: messages, handlers, and the class that holds them."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar, get_args

import msgspec

from greenroom.runtime.base.errors import UnknownKindError
from greenroom.runtime.lmdb.key_blinding import Span

if TYPE_CHECKING:
    from greenroom.runtime.actor.context import Context
    from greenroom.runtime.base.address import Address

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)

Slices = Generator[None, None, R]
"""What a handler of long work returns: it yields whenever `Context.slice_over` says so."""


class Message(msgspec.Struct, Generic[R_co], frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A request to one actor whose reply is an ``R``: subclass ``Message[int]`` and declare the fields.

    It must survive JSON, because tells, timers and idempotent answers are stored as that.
    """

    def question(self) -> tuple[Address, Message[Any]] | None:
        """Return whom to ask what before this message is delivered, or None.

        The supervisor asks first and puts the answer into `Context.answer`: a
        check at that moment, not a lock. Who waits for no reply waits for no answer
        either, so a message with a question is asked or posted, and not told.
        """
        return None


def check_told(message: Message[Any]) -> None:
    """Check that a message can be told, now or at its time.

    Raises:
        TypeError: it has a question.
    """
    if message.question() is not None:
        raise TypeError(
            f"{type(message).__name__} has a question that another actor answers first, so it can be neither "
            "told nor put on a timer; ask it"
        )


def reply_type(asked: type[Any]) -> Any:
    """Return the ``R`` of a subclass of ``Message[R]``, or of another generic type of one parameter.

    Raises:
        TypeError: the class does not say what it is answered with.
    """
    for base in asked.__mro__:
        for generic in getattr(base, "__orig_bases__", ()):
            match get_args(generic):
                case (answer,) if not isinstance(answer, TypeVar):
                    return answer
    raise TypeError(
        f"{asked.__name__} does not say what it is answered with: derive it from Message[...] or the like"
    )


S = TypeVar("S")
N = TypeVar("N")
Handler = Callable[[S, N, "Context"], "R | Slices[R]"]
_HANDLES = "_greenroom_handles"


def handles(message_type: type[Message[R]]) -> Callable[[Handler[S, N, R]], Handler[S, N, R]]:
    """Mark a method as the handler of one message type.

    A handler is an ordinary function ``(self, message, context) -> reply``; long
    work is a generator (`Slices`). It does no I/O and reads no clock.
    """

    def mark(function: Handler[S, N, R]) -> Handler[S, N, R]:
        setattr(function, _HANDLES, message_type)
        return function

    return mark


class Actor:
    """Base of every actor class: one instance per address, one message at a time.

    Class attributes:
        kind: The name of the kind, unique in a runtime.
        size: An estimate of one resident instance, in bytes, unless `resident_bytes` is overridden.
    """

    kind: ClassVar[str]
    size: ClassVar[int] = 1_000
    handlers: ClassVar[Mapping[type[Message[Any]], str]] = {}

    def __init_subclass__(cls) -> None:
        """Collect the handlers by the message type that each is marked with."""
        super().__init_subclass__()
        own = {
            getattr(member, _HANDLES): name for name, member in vars(cls).items() if hasattr(member, _HANDLES)
        }
        cls.handlers = {**cls.handlers, **own}

    @staticmethod
    def names(key: bytes) -> Iterable[Span]:  # noqa: ARG004 - for those who override it
        """Say which parts of a record's key are names, which an encrypted store hides; see `Names`.

        What it says of keys that are stored may not change. The actor's own key is hidden in any case.
        """
        return ()

    def activate(self, context: Context) -> None:
        """Load what the handlers need from the store; called before the first message and after a failure."""

    def resident_bytes(self) -> int:
        """Return an estimate of this instance's memory, in bytes."""
        return self.size


def kinds_by_name(classes: tuple[type[Actor], ...]) -> dict[str, type[Actor]]:
    """Return the classes by kind.

    Raises:
        UnknownKindError: two classes claim one kind, or one handles two messages of one name.
    """
    table: dict[str, type[Actor]] = {}
    for cls in classes:
        if table.setdefault(cls.kind, cls) is not cls:
            raise UnknownKindError(f"{cls!r} and {table[cls.kind]!r} both claim the kind {cls.kind!r}")
        names: dict[str, type[Message[Any]]] = {}  # tells and timers are stored under them
        for message in cls.handlers:
            if names.setdefault(message.__name__, message) is not message:
                raise UnknownKindError(
                    f"{cls!r} handles {message!r} and {names[message.__name__]!r}; rename one of them"
                )
    return table
