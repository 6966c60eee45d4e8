"""The list of a session's passports: index rows that passports write.

While a passport has records, it has rows for its sessions:

    i session           the passport was issued for this session; the row has its redeemers
    t session attempt   the passport was redeemed, and created this session

Invariants:

- The user who issued a passport sees its ``i`` row; the user who redeemed it sees the ``t`` row.
- Other readers of the session see agent and time, which its migrations show, too, and the expiry. Only the
  owner sees ids, sizes and contents.
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
from greenroom.actors.core.operations import operation
from greenroom.actors.core.replies.replies import Reply
from greenroom.actors.core.validation import types
from greenroom.actors.core.validation.checked_when_built import CheckedWhenBuilt
from greenroom.actors.core.validation.times import to_datetime
from greenroom.actors.sessions.storage import directory
from greenroom.runtime import Address, Context, IndexReader, Procedure, Slices

INDEX: Final = "passports"
MOST_LISTED: Final = 200
"""A list has at most this many passports of each kind: the newest ones."""
MOST_TAKERS: Final = 50
"""A passport remembers at most this many redeemers: the newest ones."""
_ISSUED: Final = b"i"
TAKEN: Final = b"t"
_TAG_BYTES: Final = 8


class Taker(msgspec.Struct, frozen=True, array_like=True):
    """A redeemer of a passport; ``done`` says whether the session was created."""

    attempt: str
    owner: str
    agent: str
    at: int
    session_id: str
    done: bool


class IssuedRow(msgspec.Struct, frozen=True, array_like=True):
    """A passport issued here; times in microseconds since 1970, ``size`` in characters."""

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
    """A passport redeemed here, issued by any server."""

    taker: Taker
    expires: int


class PassportTaken(msgspec.Struct, frozen=True, kw_only=True):
    """A redemption and its session; ``done`` says whether the session was created."""

    agent: str
    at: datetime
    session_id: str
    done: bool


class PassportIssued(msgspec.Struct, frozen=True, kw_only=True):
    """A passport that was issued for a session here; the newest redemption is first."""

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
    """A passport that created a session."""

    passport_id: str
    expires_at: datetime
    by: PassportTaken


class PassportOfOther(msgspec.Struct, frozen=True, kw_only=True):
    """A session's passport that another user issued or redeemed.

    ``sessions`` has the sessions that it created, if the reader may see them.
    """

    deed: Literal["issued", "redeemed"]
    agent: str
    at: datetime
    expires_at: datetime
    is_expired: bool
    sessions: list[PassportTaken]


class PassportList(Reply, frozen=True, kw_only=True):
    """Answers `ListPassports`, newest first.

    ``issued`` and ``redeemed`` have only passports that the reader's user issued or redeemed.
    """

    session_id: str
    issued: list[PassportIssued]
    redeemed: list[PassportRedeemed]
    of_others: list[PassportOfOther] = msgspec.field(default_factory=list)


@operation(
    "list_passports",
    scope="sessions:read",
)
class ListPassports(Procedure[PassportList], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """List the passports issued of a session, and those that brought it here.

    A passport that expired more than a day ago is only in the audit log.
    """

    runs = "snapshot"

    session_id: types.SessionId

    def run(self, reader: IndexReader) -> Slices[PassportList]:
        """Read the visible rows of the session."""
        issued: list[PassportIssued] = []
        redeemed: list[PassportRedeemed] = []
        others: list[PassportOfOther] = []
        if _sees_session(reader, self.session_id):
            for row in reader.rows(INDEX, IssuedRow, prefix=issued_key(self.session_id)):
                if row.value.session_id == self.session_id:
                    if _is_own(reader.principal, row.value.owner):
                        issued.append(_to_issued(row.address.key, row.value, reader.now))
                    else:
                        others.append(_issued_by_other(reader, row.value))
                yield
            for taken in reader.rows(INDEX, TakenRow, prefix=_taken_prefix(self.session_id)):
                taker, expires = taken.value.taker, taken.value.expires
                if taker.session_id == self.session_id:
                    if _is_own(reader.principal, taker.owner):
                        redeemed.append(
                            PassportRedeemed(
                                passport_id=taken.address.key,
                                expires_at=to_datetime(expires),
                                by=_to_taken(taker),
                            )
                        )
                    else:
                        others.append(_of_other("redeemed", taker.agent, taker.at, expires, reader.now))
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
    """Stage the record and the index row of an issued passport."""
    context.put(_ISSUED, row)
    context.put_row(INDEX, issued_key(row.session_id), row)


def put_taken(context: Context, taker: Taker, expires: int) -> None:
    """Stage a redemption; it replaces the row of the same attempt."""
    remove_taken(context, lambda each: each.attempt == taker.attempt)
    row = TakenRow(taker, expires)
    context.put(TAKEN + taker.attempt.encode(), row)
    context.put_row(INDEX, _taken_key(taker), row)
    issued = context.get(_ISSUED, IssuedRow)
    if issued is not None:
        takers = [*issued.takers, taker][-MOST_TAKERS:]
        put_issued(context, msgspec.structs.replace(issued, takers=takers))


def find_taken(context: Context, attempt: str) -> TakenRow | None:
    """Return the row of an attempt; older attempts have none."""
    return context.get(TAKEN + attempt.encode(), TakenRow)


def remove_taken(context: Context, is_meant: Callable[[Taker], bool]) -> int:
    """Stage the removal of some redeemers; return their number."""
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
    """Stage the removal of the record and the index row of an issued passport."""
    issued = context.get(_ISSUED, IssuedRow)
    if issued is not None:
        context.delete(_ISSUED)
        context.delete_row(INDEX, issued_key(issued.session_id))


def list_again(context: Context) -> None:
    """Stage the lost index rows of the passport again."""
    issued = context.get(_ISSUED, IssuedRow)
    if issued is not None:
        context.put_row(INDEX, issued_key(issued.session_id), issued)
    for _, row in context.scan(TakenRow, prefix=TAKEN):
        context.put_row(INDEX, _taken_key(row.taker), row)


def names_in(key: bytes) -> tuple[tuple[int, int], ...]:
    """Return the spans of session and attempt in a sort key."""
    end = 1 + _TAG_BYTES
    if len(key) <= 1:
        return ()
    return ((1, end),) if len(key) <= end else ((1, end), (end, len(key)))


def issued_key(session_id: str) -> bytes:
    """Return the sort key of passports issued for a session."""
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
    sessions = [_to_taken(each) for each in reversed(row.takers) if _sees_session(reader, each.session_id)]
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


def _to_issued(passport_id: str, row: IssuedRow, now: int) -> PassportIssued:
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
        taken=[_to_taken(each) for each in reversed(row.takers)],
    )


def _to_taken(taker: Taker) -> PassportTaken:
    return PassportTaken(
        agent=taker.agent, at=to_datetime(taker.at), session_id=taker.session_id, done=taker.done
    )
