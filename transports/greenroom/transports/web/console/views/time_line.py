"""The history of a session as periods, one for each stay in a tool."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from operator import attrgetter
from typing import Final, NamedTuple

from greenroom.actors.core.replies.replies import SessionView
from greenroom.actors.sessions.requests.session_context import Migration
from greenroom.actors.sessions.requests.session_views import Compaction

_BEGINS: Final = frozenset({"started", "resumed", "restored", "reopened"})


class Stay(NamedTuple):
    """A period of a session in one tool."""

    tool: str | None  # the tool; None if a program created the session without one
    agent: str
    since: datetime
    until: datetime | None
    moves: list[Migration | Compaction]  # its hand-overs and its client's compactions, in order

    @property
    def seconds(self) -> float | None:
        """The length in seconds; None while it lasts."""
        return None if self.until is None else (self.until - self.since).total_seconds()


def stays(moves: Sequence[Migration], compactions: Sequence[Compaction], session: SessionView) -> list[Stay]:
    """Return the periods of a session, oldest first."""
    found: list[Stay] = []
    in_order: list[Migration | Compaction] = sorted([*moves, *compactions], key=attrgetter("at"))
    if not (in_order and _begins(in_order[0])):
        since = min([session.created_at, *(move.at for move in in_order[:1])])
        found.append(Stay(None, session.created_by, since, None, []))
    for move in in_order:
        if isinstance(move, Compaction):
            found[-1].moves.append(move)
        elif move.outcome in _BEGINS:
            _close(found, move.at)
            found.append(Stay(move.to_tool, move.by, move.at, None, [move]))
        else:
            found[-1].moves.append(move)
            if move.outcome == "handed_over":
                _close(found, move.at)
    if session.terminated_at is not None:
        _close(found, session.terminated_at)
    return found


def _begins(move: Migration | Compaction) -> bool:
    return isinstance(move, Migration) and move.outcome in _BEGINS


def _close(found: list[Stay], at: datetime) -> None:
    """End the last period, unless it has ended."""
    if found and found[-1].until is None:
        found[-1] = found[-1]._replace(until=max(at, found[-1].since))
