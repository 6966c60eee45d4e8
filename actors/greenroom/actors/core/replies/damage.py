"""Damaged records in replies: which entries are missing, and what to do about it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, ParamSpec, Protocol, TypeVar

import msgspec

from greenroom.runtime import RecordDamagedError

if TYPE_CHECKING:  # parser processes import this through document types, without trio
    from greenroom.runtime import Context, Slices

P = ParamSpec("P")
R = TypeVar("R")
REMEDY: Final = (
    "`greenroom doctor` says what is damaged, `greenroom repair` saves all else into a new store, and "
    "`greenroom restore` brings back a backup"
)
HIDDEN: Final = {"hidden": "yes"}
"""Marks the error of an entry that the caller may not see: no reply names it."""
MOST_NAMED: Final = 20
"""The most entries that one reply names."""
_NAMES: Final = ("key", "memory_id", "message_id", "session_id", "document", "name")
"""Fields by which a sentence may name an entry; the first known field is used."""


class Notes(Protocol):
    """Collects damaged records for the reply: a handler's context, or an index reader."""

    damage: Sequence[RecordDamagedError]

    def note_damage(self, error: RecordDamagedError) -> None:
        """Add a damaged record."""


class Damaged(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Entries, at least ``count``, that are missing because they cannot be read from the disk.

    The first twenty are named by their known keys or ids.
    """

    count: int
    sentence: str
    remedy: str = REMEDY
    entries: list[dict[str, str]] = []


def damaged_entry(error: RecordDamagedError, what: str, **entry: str | None) -> RecordDamagedError:
    """Return the error of an entry (``what``, with its article) with a damaged record."""
    known = {name: value for name, value in entry.items() if value is not None}
    called = next((f" {known[name]!r}" for name in _NAMES if name in known), "")
    sentence = f"{what}{called} is damaged on disk and cannot be read; others can. {REMEDY}"
    return RecordDamagedError(error.key, sentence, known or {"what": what})


def missing_record(what: str, where: bytes = b"") -> RecordDamagedError:
    """Return the error of a missing record to which other records refer."""
    return RecordDamagedError(where, f"a record of {what} is missing; {REMEDY}")


def describe_damage(errors: Sequence[RecordDamagedError]) -> Damaged:
    """Describe the damaged records that a reply skipped."""
    return _of(len(errors), [error.entry for error in errors])


def merge_damage(found: Iterable[Damaged | msgspec.UnsetType]) -> Damaged | msgspec.UnsetType:
    """Merge the damage of several replies into one; unset if there is no damage."""
    several = [each for each in found if isinstance(each, Damaged)]
    if not several:
        return msgspec.UNSET
    return _of(sum(each.count for each in several), [entry for each in several for entry in each.entries])


def _of(count: int, entries: Iterable[dict[str, str]]) -> Damaged:
    named = [known for each in entries if (known := {name: each[name] for name in each if name != "what"})]
    called = [repr(next(each[name] for name in (*_NAMES, *each) if name in each)) for each in named]
    which = f": {', '.join(called[:MOST_NAMED])}" if called else ""
    more = f" and {count - len(called)} others" if called and count > len(called) else ""
    verb = "entry is" if count == 1 else "entries are"
    return Damaged(
        count=count,
        sentence=f"{count} {verb} damaged on disk and missing here{which}{more}",
        entries=named[:MOST_NAMED],
    )


def with_damage(reply: R, context: Notes) -> R:
    """Return a reply that names the skipped entries, or raise the first error."""
    changed: Any = reply
    if not hasattr(changed, "damaged"):
        raise context.damage[0]
    damage = describe_damage(context.damage)
    members: dict[str, Any] = {"damaged": damage}
    if getattr(changed, "partial", None) is msgspec.UNSET:
        members |= {"partial": True, "partial_reason": damage.sentence}
    if getattr(changed, "lacks_reason", False):
        from greenroom.actors.core.replies.empty_reasons import explain_empty  # noqa: PLC0415 - it imports scopes

        members["empty_because"] = explain_empty((), "damaged", why=damage.sentence)
    named: R = msgspec.structs.replace(changed, **members)
    return named


def add_damage(context: Notes, cut: str) -> str:
    """Return a cut reply's sentence with the skipped entries added; clear these from ``context``."""
    if not context.damage:
        return cut
    damage = describe_damage(context.damage)
    context.damage = ()
    return "; ".join(filter(None, [cut, damage.sentence]))


def filter_damage(
    context: Context, prefix: bytes, on_damage: Callable[[RecordDamagedError], object] | None = None
) -> Callable[[RecordDamagedError], None]:
    """Return a handler of damaged records that ignores records outside of a prefix.

    It passes the other records on to ``on_damage``, or raises their errors.
    """

    def met(error: RecordDamagedError) -> None:
        if context.is_own(error, prefix):
            if on_damage is None:
                raise error
            on_damage(error)

    return met


def skip_damaged(context: Notes, slices: Slices[R]) -> Slices[R | None]:
    """Return the result of slices; None for a damaged entry, which the reply names."""
    try:
        return (yield from slices)
    except RecordDamagedError as error:
        note_damage(context, error)
        return None


def read_undamaged(context: Notes, read: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R | None:
    """Return the result of a read; None for a damaged entry, which the reply names."""
    try:
        return read(*args, **kwargs)
    except RecordDamagedError as error:
        note_damage(context, error)
        return None


def note_damage(context: Notes, error: RecordDamagedError) -> None:
    """Name a damaged entry in the reply, unless the caller may not see it.

    Raises:
        RecordDamagedError: no entry is known to be lost: other records may restore this one.
    """
    if not error.entry:
        raise error
    if error.entry != HIDDEN:
        context.note_damage(error)
