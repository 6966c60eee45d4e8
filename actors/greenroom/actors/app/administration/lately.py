"""What agents did of late, for the start page of the console; see `LatelyDone`."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from operator import attrgetter
from typing import Final

from greenroom.actors.app.administration import replies as schemas
from greenroom.actors.core.auth.principal import Principal
from greenroom.actors.core.replies.replies import SessionSummary
from greenroom.actors.core.validation.times import DAY, to_datetime, to_microseconds
from greenroom.actors.memories.requests.requests import LatestMemory
from greenroom.actors.sessions.requests.session_context import ListDecisions
from greenroom.actors.sessions.storage.directory import ListSessions
from greenroom.runtime import Address, GreenroomError, RuntimeClient

SESSIONS: Final = 200
"""This many sessions with the last activity are looked at."""
DECIDING: Final = 20
"""The decisions of at most this many sessions are read, until `SHOWN` are found."""
SHOWN: Final = 6
DAYS, LEAST_DAYS = 30, 7
_CLOSED: Final = frozenset({"terminated", "archived"})


async def read_sessions(runtime: RuntimeClient, principal: Principal) -> list[SessionSummary]:
    """Return the sessions with the last activity that the caller sees, newest first."""
    listed = await runtime.query(ListSessions(limit=SESSIONS), principal=principal)
    return listed.sessions


async def read_decisions(
    runtime: RuntimeClient, principal: Principal, sessions: Iterable[SessionSummary]
) -> list[schemas.LateDecision]:
    """Return the newest decisions of some sessions."""
    found: list[schemas.LateDecision] = []
    for session in sessions:
        if len(found) >= SHOWN:
            break
        with suppress(GreenroomError):  # deleted meanwhile, or damaged
            address = Address("session", session.session_id)
            made = await runtime.ask(address, ListDecisions(), principal=principal)
            found += [
                schemas.LateDecision(
                    session_id=session.session_id,
                    purpose=session.purpose,
                    what=each.what,
                    why=each.why,
                    by=each.by,
                    at=each.at,
                )
                for each in made
            ]
    return heapq.nlargest(SHOWN, found, key=attrgetter("at"))


def lately_done(
    latest: Iterable[LatestMemory],
    memory_days: Mapping[int, int],
    sessions: list[SessionSummary],
    decided: list[schemas.LateDecision],
    now: int,
) -> schemas.LatelyDone:
    """Return what was done of late; ``now`` is in microseconds, days are days since 1970."""
    return schemas.LatelyDone(
        learned=[_learned(each) for each in heapq.nlargest(SHOWN, latest, key=attrgetter("at"))],
        decided=decided,
        running=[each for each in sessions if each.status not in _CLOSED][:SHOWN],
        ended=[each for each in sessions if each.status in _CLOSED][:SHOWN],
        days=_days(memory_days, sessions, now // DAY),
    )


def _learned(memory: LatestMemory) -> schemas.LearnedMemory:
    return schemas.LearnedMemory(
        memory_id=memory.memory_id,
        key=memory.key,
        namespace=memory.namespace,
        text=memory.text,
        author=memory.author,
        at=to_datetime(memory.at),
        unreviewed=memory.unreviewed,
    )


def _days(
    memory_days: Mapping[int, int], sessions: list[SessionSummary], today: int
) -> list[schemas.DayOfWork]:
    """Return the days since something first began, `DAYS` at most and `LEAST_DAYS` at least."""
    begun = Counter(to_microseconds(each.created_at) // DAY for each in sessions)
    active = [day for day in (*memory_days, *begun) if today - DAYS < day <= today]
    if not active:
        return []
    return [
        schemas.DayOfWork(
            begins=to_datetime(day * DAY), memories=memory_days.get(day, 0), sessions=begun[day]
        )
        for day in range(min(*active, today - LEAST_DAYS + 1), today + 1)
    ]
