"""Read the injection log: which memories were given to which agent, when and why."""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated

import msgspec
from msgspec import Meta

from greenroom.actors.core.auth.namespaces import memory_address, root_of, user_namespace
from greenroom.actors.core.auth.principal import Principal
from greenroom.actors.core.operations import operation
from greenroom.actors.core.replies import memory_types as kinds
from greenroom.actors.core.replies import paging
from greenroom.actors.core.validation import types
from greenroom.actors.core.validation.checked_when_built import CheckedWhenBuilt
from greenroom.actors.hooks.actor import hook_address
from greenroom.actors.memories.recall.replies import Beginning
from greenroom.actors.memories.requests.replies import KnownMemory
from greenroom.actors.memories.requests.requests import LookUpMemories
from greenroom.actors.sessions.requests.hook_messages import ClientSession, session_id_of
from greenroom.actors.sessions.requests.injection_log import (
    GivenRead,
    GivenView,
    Giver,
    MemoriesTold,
    ReadGiven,
    TellingView,
    ToldMemory,
)
from greenroom.runtime import GreenroomError, Procedure, ProcedureContext


class WhyGiven(Procedure[GivenRead], frozen=True, kw_only=True):
    """Read what hooks and recalls gave to the agents of the caller's user, newest first.

    Attributes:
        session: Read only injections into the client's session with this id, or with an id that begins so.
    """

    session: str = ""
    limit: Annotated[int, Meta(ge=1, le=1_000)] = 20

    async def run(self, context: ProcedureContext) -> GivenRead:
        """Read the user's injection log, and look up the current keys of its memories."""
        read = await _read(context, ReadGiven(session=self.session, limit=self.limit))
        known = await _look_up(context, read)
        given = [
            msgspec.structs.replace(
                row,
                memories=[
                    msgspec.structs.replace(each, key=known[each.memory_id].key)
                    if each.memory_id in known
                    else each
                    for each in row.memories
                ],
            )
            for row in read.given
        ]
        return msgspec.structs.replace(read, given=given)


@operation(
    "list_told",
    scope="memory:read",
)
class ListTold(Procedure[MemoriesTold], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """List what hooks and recalls gave the user's agents, and why, newest first."""

    session: Beginning = ""
    agent: Beginning = ""
    source: Giver | None = None
    memory_id: kinds.MemoryId | None = None
    number: Annotated[int, Meta(ge=0, description="this one alone")] | None = None
    limit: types.Limit100 = 50
    cursor: types.Cursor | None = None

    async def run(self, context: ProcedureContext) -> MemoriesTold:
        """Read a page of the user's injection log, and what the memories contain now."""
        binding = f"told {self.session} {self.agent} {self.source} {self.memory_id} {self.number}"
        before = None if self.cursor is None else paging.decode_number(self.cursor, binding)
        request = ReadGiven(
            session=self.session,
            agent=self.agent,
            by=self.source,
            memory_id=self.memory_id or "",
            number=self.number,
            before=before,
            limit=self.limit + 1,
        )
        read = await _read(context, request)
        rows = read.given[: self.limit]
        known = await _look_up(context, msgspec.structs.replace(read, given=rows))
        last = rows[-1].number if len(read.given) > self.limit else None
        return MemoriesTold(
            told=[
                TellingView(
                    number=row.number,
                    at=row.at,
                    source=row.hook,
                    client=row.client,
                    session=row.session,
                    kept_as=_stored_session(row, context.principal),
                    agent=row.agent,
                    project=row.project,
                    reason=row.reason,
                    query=row.query,
                    lines=row.lines,
                    tokens=row.tokens,
                    partial=row.partial,
                    least=row.least,
                    left_out=row.left_out,
                    memories=[
                        ToldMemory(
                            memory_id=each.memory_id,
                            version=each.version,
                            namespace=each.namespace,
                            score=each.score,
                            signals=each.signals,
                            used=each.used,
                            now=known.get(each.memory_id),
                        )
                        for each in row.memories
                    ],
                )
                for row in rows
            ],
            total=read.total,
            next_cursor=None if last is None else paging.encode(last.to_bytes(8), binding),
        )


def _stored_session(row: GivenView, principal: Principal) -> str:
    """Return the id of the stored session of a row; empty for none."""
    if not row.session:
        return ""
    of = ClientSession(client=row.client, session=row.session, project=row.project)
    return session_id_of(of, principal)


async def _read(context: ProcedureContext, request: ReadGiven) -> GivenRead:
    return await context.ask(hook_address(user_namespace(context.principal)), request)


async def _look_up(context: ProcedureContext, read: GivenRead) -> dict[str, KnownMemory]:
    """Return the memories of the rows that the caller may see, by id."""
    wanted: dict[str, dict[str, None]] = {}
    for row in read.given:
        for memory in row.memories:
            wanted.setdefault(root_of(memory.namespace), {})[memory.memory_id] = None
    known: dict[str, KnownMemory] = {}
    for root, ids in wanted.items():
        with suppress(GreenroomError):  # if a namespace is unavailable, only its memories are missing
            answer = await context.ask(memory_address(root), LookUpMemories(memory_ids=list(ids)))
            known |= answer.known
    return known
