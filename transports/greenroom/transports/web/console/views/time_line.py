"""A session's way between tools as stretches of time: who worked in it, from when to when."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from operator import attrgetter
from typing import Final, NamedTuple

from greenroom.actors.core.replies.replies import SessionView
from greenroom.actors.schemas.transcripts import Compaction
from greenroom.actors.sessions.requests.session_context import Migration

_BEGINS: Final = frozenset({"started", "resumed", "restored", "reopened"})


class Stay(NamedTuple):
    """A stretch of a session in one tool.

    Attributes:
        tool: The tool; None where a program made the session without one.
        agent: Who took it up there.
        since: From when.
        until: Until when; None while it goes on.
        moves: What happened in it, in order: steps between tools, and when the context of its client was
            made shorter.
    """

    tool: str | None
    agent: str
    since: datetime
    until: datetime | None
    moves: list[Migration | Compaction]

    @property
    def seconds(self) -> float | None:
        """How long it took; None while it goes on."""
        return None if self.until is None else (self.until - self.since).total_seconds()


def stays(moves: Sequence[Migration], compactions: Sequence[Compaction], session: SessionView) -> list[Stay]:
    """Return the stretches of a session, oldest first.

    Args:
        moves: Its steps between tools, oldest first.
        compactions: When the context of a client was made shorter, likewise.
        session: The session.
    """
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
    """End the last stretch, unless it has ended."""
    if found and found[-1].until is None:
        found[-1] = found[-1]._replace(until=max(at, found[-1].since))
