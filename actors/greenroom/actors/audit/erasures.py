"""Who is being erased, and what the audit log may still say of them.

A person is remembered here until the store's file is rewritten: the audit log cannot be changed while it is
being written, and what was deleted stays in free pages. The rewriting forgets this record, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import blake2b
from typing import Any, Final

import msgspec

from greenroom.actors.core.audit.record import AuditRow, record
from greenroom.actors.core.auth.person import Person
from greenroom.actors.schemas.erasure import BeginErasure, ReadErased
from greenroom.runtime import Actor, Address, Context, handles

ERASURES: Final = Address("erasure", "all")
_PERSON: Final = b"p"
_DIGEST_BYTES: Final = 16


class ErasureActor(Actor):
    """All persons that are being erased."""

    kind = "erasure"

    @handles(BeginErasure)
    def begin(self, request: BeginErasure, context: Context) -> Person:
        """Remember a person, with what an earlier attempt knew; an erasing that never ends is in the log."""
        context.use_reserve()
        person = request.person
        where = _PERSON + blake2b(person.user.encode(), digest_size=_DIGEST_BYTES).digest()
        known = person.with_traces(context.get(where, Person) or person)
        context.put(where, known)
        record(context, "begin_erasing", None)
        return known

    @handles(ReadErased)
    def read(self, message: ReadErased, context: Context) -> list[str]:  # noqa: ARG002  as every handler
        """Answer who they are."""
        return sorted(person.user for _, person in context.scan(Person, prefix=_PERSON))


def redacted(row: AuditRow, persons: Iterable[Person]) -> AuditRow | None:
    """Return what may stay of an audit record, or None if it tells nothing of these persons."""
    kept = row
    for person in persons:
        if person.has_grant(row.user, row.agent) or row.key_id in person.keys:
            return AuditRow(row.at, None, None, row.action, {}, row.outcome)
        if row.session in person.sessions:
            kept = msgspec.structs.replace(kept, session=None, details={})
        if person.has_agent(row.agent):
            kept = msgspec.structs.replace(kept, agent=None)
        if any(_names(person, text) for text in _texts(row.details)):
            kept = msgspec.structs.replace(kept, details={})
    return None if kept is row else kept


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from _texts(list(value.values()))
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _texts(each)


def _names(person: Person, text: str) -> bool:
    """Return whether a text names a person, or an actor or a resource of theirs."""
    return any(
        person.has_name(name) or person.has_root(name) or name in person.sessions
        for name in (text, *text.split("/"))
    )
