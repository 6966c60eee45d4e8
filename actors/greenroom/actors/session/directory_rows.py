"""The session directory: rows in a shared index that sessions write and listings read.

What a reader gets must come in the order of what it may see, so a session has rows
per audience that has something to see in it:

    b                       the session: what a listing shows of it
    s audience NUL time tie in order of activity, newest first (the time is inverted)
    p audience              the same activity as a point: when, and how many messages

The public audience's rows are there from the start and also move when the session itself changes.
"""

import functools
from collections.abc import Mapping
from hashlib import blake2b

import msgspec

from greenroom.actors.schemas import types
from greenroom.actors.session.records import Header
from greenroom.runtime import Context

INDEX = "sessions"
BASE = b"b"

_TIME_BYTES = 8
_TIE_BYTES = 8
_INVERTED = (1 << 64) - 1


class BaseRow(msgspec.Struct, frozen=True, array_like=True):
    """What a listing shows of a session; see `Header`."""

    purpose: str
    status: types.SessionStatus
    created_at: int
    created_by: str
    app_name: str | None
    user_id: str | None
    project_id: str | None


class ActivityRow(msgspec.Struct, frozen=True, array_like=True):
    """The newest thing that an audience can see in a session, and how many messages it can see.

    ``others`` of the ``messages`` are events that are no messages; older stores have none.
    """

    at: int
    messages: int
    others: int = 0


def put_base(context: "Context", header: "Header") -> None:
    """Stage what listings show of the session."""
    row = BaseRow(
        header.purpose,
        header.status,
        header.created_at,
        header.created_by,
        header.app_name,
        header.user_id,
        header.project_id,
    )
    context.put_row(INDEX, BASE, row)


def move(context: "Context", audience: str, old: ActivityRow | None, new: ActivityRow) -> None:
    """Stage the session's new place in the order of one audience."""
    if old is None or old.at != new.at:
        prefix, session_id = sort_prefix(audience), context.address.key
        if old is not None:
            context.delete_row(INDEX, prefix + position(session_id, old.at))
        context.put_row(INDEX, prefix + position(session_id, new.at), None)
    context.put_row(INDEX, point_key(audience), new)


def remove(context: "Context", activities: "Mapping[str, ActivityRow]") -> None:
    """Stage that the session is in no listing any more."""
    context.delete_row(INDEX, BASE)
    for audience, activity in activities.items():
        context.delete_row(INDEX, sort_prefix(audience) + position(context.address.key, activity.at))
        context.delete_row(INDEX, point_key(audience))


def names_in(key: bytes) -> tuple[tuple[int, int], ...]:
    """Say where in a sort key the audience is, and the digest of the session's id."""
    if len(key) == 1 or key[:1] not in {b"s", b"p"}:
        return ()
    if key[:1] == b"p":
        return ((1, len(key)),)
    end = key.find(0, 1)
    if end < 0:
        return ((1, len(key) + 1),)
    tie = end + 1 + _TIME_BYTES
    return ((1, end), (tie, tie + _TIE_BYTES)) if len(key) > tie else ((1, end),)


@functools.lru_cache(maxsize=1_024)
def sort_prefix(audience: str) -> bytes:
    """Return the bytes before the positions of one audience's order."""
    return b"s" + audience.encode() + b"\0"


@functools.lru_cache(maxsize=1_024)
def point_key(audience: str) -> bytes:
    """Return the sort key of a session's activity for one audience."""
    return b"p" + audience.encode()


def position(session_id: str, at: int) -> bytes:
    """Return the position of a session last active ``at``: 8 bytes of time, 8 that break ties."""
    return (_INVERTED - at).to_bytes(8) + _tie(session_id)


@functools.lru_cache(maxsize=1_024)
def _tie(session_id: str) -> bytes:
    return blake2b(session_id.encode(), digest_size=_TIE_BYTES).digest()


def order_of(position: bytes, place: bytes) -> bytes:
    """Return by what positions of several audiences are in one order, in which each of them is stored.

    An encrypted store has something else for what breaks ties, so those are in another order.

    Args:
        position: As written.
        place: The `Row.place` of its row.
    """
    return position[:_TIME_BYTES] + place[-_TIME_BYTES - _TIE_BYTES :]


def time_of(place: bytes) -> int:
    """Return the time in a position."""
    return _INVERTED - int.from_bytes(place[:8])
