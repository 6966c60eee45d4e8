"""Which passports of a session were issued and redeemed: rows in a shared index that passports write.

A passport has rows at the sessions that it has to do with, as long as it remembers anything:

    i session           it was issued of this session, and who took it
    t session attempt   it was redeemed, and this session came of it

Invariants:

- The user who issued a passport sees that row, and who redeemed one sees the other.
- Whoever else sees the session sees of them what the steps on its way tell as well, which agent did it and
  when, and until when they are valid. Ids, sizes and what was taken along are their owner's alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from hashlib import blake2b
from typing import Final, Literal

import msgspec

from greenroom.actors.core.auth import policy
from greenroom.actors.core.auth.namespaces import user_namespace
from greenroom.actors.core.auth.principal import Principal
from greenroom.actors.core.replies.replies import Reply
from greenroom.actors.core.validation import types
from greenroom.actors.core.validation.checked_when_built import CheckedWhenBuilt
from greenroom.actors.core.validation.times import to_datetime
from greenroom.actors.sessions.storage import directory
from greenroom.runtime import Address, Context, IndexReader, Query, Slices

INDEX: Final = "passports"
MOST_LISTED: Final = 200
"""So many of each kind a session's list has, the newest."""
MOST_TAKERS: Final = 50
"""So many who took a passport it remembers, the newest."""
_ISSUED: Final = b"i"
TAKEN: Final = b"t"
_TAG_BYTES: Final = 8


class Taker(msgspec.Struct, frozen=True, array_like=True):
    """Who redeemed a passport: whose agent, when, and in which session it is now.

    Attributes:
        owner: The namespace of the user, or of the agent.
        at: In microseconds since 1970.
        done: Whether the session was made.
    """

    attempt: str
    owner: str
    agent: str
    at: int
    session_id: str
    done: bool


class IssuedRow(msgspec.Struct, frozen=True, array_like=True):
    """A passport that was issued here; times are microseconds since 1970, ``size`` is in characters."""

    session_id: str
    owner: str
    agent: str
    at: int
    expires: int
    signer: str
    size: int
    memories: int
    one_time: bool
    encrypted: bool
    takers: list[Taker] = []


class TakenRow(msgspec.Struct, frozen=True, array_like=True):
    """A passport that was redeemed here, wherever it was issued."""

    taker: Taker
    expires: int


class PassportTaken(msgspec.Struct, frozen=True, kw_only=True):
    """Who redeemed a passport, and which session came of it; ``done``: whether it is made."""

    agent: str
    at: datetime
    session_id: str
    done: bool


class PassportIssued(msgspec.Struct, frozen=True, kw_only=True):
    """A passport that was issued of a session here.

    Attributes:
        agent: By whom.
        signer: The public key of the server that signed it.
        size: How many characters it has.
        memories: How many memories are in it.
        taken: Who redeemed it here, the newest first.
    """

    passport_id: str
    agent: str
    issued_at: datetime
    expires_at: datetime
    is_expired: bool
    signer: str
    size: int
    memories: int
    one_time: bool
    encrypted: bool
    taken: list[PassportTaken]


class PassportRedeemed(msgspec.Struct, frozen=True, kw_only=True):
    """A passport of which a session came."""

    passport_id: str
    expires_at: datetime
    by: PassportTaken


class PassportOfOther(msgspec.Struct, frozen=True, kw_only=True):
    """A passport that another user issued of a session, or redeemed to bring it here.

    Attributes:
        deed: What the other did with it.
        agent: By which agent.
        sessions: The sessions that came of one that was issued, as far as the reader may see them.
    """

    deed: Literal["issued", "redeemed"]
    agent: str
    at: datetime
    expires_at: datetime
    is_expired: bool
    sessions: list[PassportTaken]


class PassportList(Reply, frozen=True, kw_only=True):
    """Answers `ListPassports`, newest first; ``issued`` and ``redeemed`` are those of the reader's user."""

    session_id: str
    issued: list[PassportIssued]
    redeemed: list[PassportRedeemed]
    of_others: list[PassportOfOther] = msgspec.field(default_factory=list)


class ListPassports(Query[PassportList], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """List the passports of a session: those issued of it, and those by which it came here.

    One that expired more than a day ago is forgotten, and only the audit log tells of it.
    """

    session_id: types.SessionId

    def run(self, reader: IndexReader) -> Slices[PassportList]:
        """Read the rows at the session, as far as the caller may see them."""
        issued: list[PassportIssued] = []
        redeemed: list[PassportRedeemed] = []
        others: list[PassportOfOther] = []
        if _sees_session(reader, self.session_id):
            for row in reader.rows(INDEX, IssuedRow, prefix=issued_key(self.session_id)):
                if row.value.session_id == self.session_id:
                    if _is_own(reader.principal, row.value.owner):
                        issued.append(_issued(row.address.key, row.value, reader.now))
                    else:
                        others.append(_issued_by_other(reader, row.value))
                if reader.should_yield():
                    yield
            for taken in reader.rows(INDEX, TakenRow, prefix=_taken_prefix(self.session_id)):
                taker, expires = taken.value.taker, taken.value.expires
                if taker.session_id == self.session_id:
                    if _is_own(reader.principal, taker.owner):
                        redeemed.append(
                            PassportRedeemed(
                                passport_id=taken.address.key,
                                expires_at=to_datetime(expires),
                                by=_taken(taker),
                            )
                        )
                    else:
                        others.append(_of_other("redeemed", taker.agent, taker.at, expires, reader.now))
                if reader.should_yield():
                    yield
        issued.sort(key=lambda each: each.issued_at, reverse=True)
        redeemed.sort(key=lambda each: each.by.at, reverse=True)
        others.sort(key=lambda each: each.at, reverse=True)
        return PassportList(
            session_id=self.session_id,
            issued=issued[:MOST_LISTED],
            redeemed=redeemed[:MOST_LISTED],
            of_others=others[:MOST_LISTED],
        )


def put_issued(context: Context, row: IssuedRow) -> None:
    """Stage what is known of a passport that is issued, where the passport finds it and where lists do."""
    context.put(_ISSUED, row)
    context.put_row(INDEX, issued_key(row.session_id), row)


def put_taken(context: Context, taker: Taker, expires: int) -> None:
    """Stage that somebody redeems the passport, in the place of what was known of the same attempt."""
    remove_taken(context, lambda each: each.attempt == taker.attempt)
    row = TakenRow(taker, expires)
    context.put(TAKEN + taker.attempt.encode(), row)
    context.put_row(INDEX, _taken_key(taker), row)
    issued = context.get(_ISSUED, IssuedRow)
    if issued is not None:
        takers = [*issued.takers, taker][-MOST_TAKERS:]
        put_issued(context, msgspec.structs.replace(issued, takers=takers))


def taken(context: Context, attempt: str) -> TakenRow | None:
    """Return what is known of an attempt; of older ones nothing is."""
    return context.get(TAKEN + attempt.encode(), TakenRow)


def remove_taken(context: Context, is_meant: Callable[[Taker], bool]) -> int:
    """Stage that nothing is known of some who redeemed the passport; return of how many it was."""
    gone = [(key, row) for key, row in context.scan(TakenRow, prefix=TAKEN) if is_meant(row.taker)]
    for key, row in gone:
        context.delete(key)
        context.delete_row(INDEX, _taken_key(row.taker))
    issued = context.get(_ISSUED, IssuedRow)
    if gone and issued is not None:
        takers = [each for each in issued.takers if not is_meant(each)]
        put_issued(context, msgspec.structs.replace(issued, takers=takers))
    return len(gone)


def remove_issued(context: Context) -> None:
    """Stage that nothing is known of the passport's issuing."""
    issued = context.get(_ISSUED, IssuedRow)
    if issued is not None:
        context.delete(_ISSUED)
        context.delete_row(INDEX, issued_key(issued.session_id))


def list_again(context: Context) -> None:
    """Stage the rows by which lists find the passport, which are lost."""
    issued = context.get(_ISSUED, IssuedRow)
    if issued is not None:
        context.put_row(INDEX, issued_key(issued.session_id), issued)
    for _, row in context.scan(TakenRow, prefix=TAKEN):
        context.put_row(INDEX, _taken_key(row.taker), row)


def names_in(key: bytes) -> tuple[tuple[int, int], ...]:
    """Say where in a sort key the session and the attempt are."""
    end = 1 + _TAG_BYTES
    if len(key) <= 1:
        return ()
    return ((1, end),) if len(key) <= end else ((1, end), (end, len(key)))


def issued_key(session_id: str) -> bytes:
    """Return the sort key of the rows of passports that were issued of a session."""
    return _ISSUED + _tag(session_id)


def _taken_prefix(session_id: str) -> bytes:
    return TAKEN + _tag(session_id)


def _taken_key(taker: Taker) -> bytes:
    return _taken_prefix(taker.session_id) + _tag(taker.attempt)


def _tag(name: str) -> bytes:
    return blake2b(name.encode(), digest_size=_TAG_BYTES).digest()


def _is_own(principal: Principal, owner: str) -> bool:
    return owner == user_namespace(principal)


def _sees_session(reader: IndexReader, session_id: str) -> bool:
    base = reader.get(directory.INDEX, directory.BASE, Address("session", session_id), directory.BaseRow)
    return base is not None and policy.may_see_session(reader.principal, base.project_id)


def _issued_by_other(reader: IndexReader, row: IssuedRow) -> PassportOfOther:
    sessions = [_taken(each) for each in reversed(row.takers) if _sees_session(reader, each.session_id)]
    return _of_other("issued", row.agent, row.at, row.expires, reader.now, sessions)


def _of_other(
    deed: Literal["issued", "redeemed"],
    agent: str,
    at: int,
    expires: int,
    now: int,
    sessions: Sequence[PassportTaken] = (),
) -> PassportOfOther:
    return PassportOfOther(
        deed=deed,
        agent=agent,
        at=to_datetime(at),
        expires_at=to_datetime(expires),
        is_expired=expires <= now,
        sessions=list(sessions),
    )


def _issued(passport_id: str, row: IssuedRow, now: int) -> PassportIssued:
    return PassportIssued(
        passport_id=passport_id,
        agent=row.agent,
        issued_at=to_datetime(row.at),
        expires_at=to_datetime(row.expires),
        is_expired=row.expires <= now,
        signer=row.signer,
        size=row.size,
        memories=row.memories,
        one_time=row.one_time,
        encrypted=row.encrypted,
        taken=[_taken(each) for each in reversed(row.takers)],
    )


def _taken(taker: Taker) -> PassportTaken:
    return PassportTaken(
        agent=taker.agent, at=to_datetime(taker.at), session_id=taker.session_id, done=taker.done
    )
