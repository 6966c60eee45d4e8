"""Runs of hooks that the owner carries out, since it has imported everything."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar, TypeVarTuple

import msgspec
import trio

from greenroom.actors import AnswerHook
from greenroom.actors.core.auth.principal import Principal
from greenroom.actors.core.base.threads import get_or_make
from greenroom.actors.sessions.requests.hook_events import HookAnswer, HookEvent
from greenroom.runtime import GreenroomError, RuntimeClient
from greenroom.transports.clients.hooks import transcript
from greenroom.transports.clients.hooks.answers import texts_of
from greenroom.transports.clients.hooks.client_json import NotUnderstoodError
from greenroom.transports.clients.hooks.dialects import DIALECTS, HookInput, answer, interpret
from greenroom.transports.clients.hooks.drain import Drain as SpoolDrain
from greenroom.transports.clients.hooks.enqueue import NothingKeptError, enqueue, make_event, session_of
from greenroom.transports.clients.hooks.guard import ASKING, sentence_of
from greenroom.transports.clients.hooks.spool import hold_spool
from greenroom.transports.ops.control.client import Drain, Hook, RunHook

R = TypeVar("R")
Ts = TypeVarTuple("Ts")

CATCH_UP_SECONDS: Final = 0.5  # the start of a session waits this long for events of earlier ones
_MOST_NEW: Final = 256 << 10
"""The most new bytes of a transcript that the owner reads; more would take its time from other clients."""
_limiter: trio.lowlevel.RunVar[trio.CapacityLimiter] = trio.lowlevel.RunVar("hooks")
_FAILURES: Final = (OSError, NothingKeptError, NotUnderstoodError, transcript.TranscriptRefusedError)


async def serve_hooks(
    runtime: RuntimeClient, request: Drain | Hook | RunHook, drain: SpoolDrain | None
) -> object:
    """Carry out what a hook asks for, and return the result.

    Raises:
        GreenroomError: The request failed.
    """
    match request:
        case Drain():
            if drain is not None:
                drain.poke()
            return {"draining": True}
        case Hook():
            return await _answer(runtime, request.principal, request.event, drain)
        case RunHook():
            if drain is None:
                raise GreenroomError("the process that owns the folder takes no events of hooks")
            return await _run(runtime, request, drain)


async def _run(runtime: RuntimeClient, request: RunHook, drain: SpoolDrain) -> msgspec.Raw:
    """Carry out a run of a hook; return the object for its client.

    If this fails, the hook's own process does it, under the same event id.
    """
    if request.client not in DIALECTS:
        raise GreenroomError(f"there is no client {request.client!r}")
    try:
        given = _complete(interpret(request.client, request.given), request)
        if request.name not in ASKING:
            await _in_thread(_enqueue, drain.folder, request, given)
            drain.poke()
            return msgspec.Raw(answer(request.client, request.name, "", ""))
        event = await _in_thread(make_event, request.name, request.client, given, [])
    except _FAILURES as error:
        raise GreenroomError(sentence_of(error)) from error
    found = await _answer(runtime, request.principal, event, drain)
    return msgspec.Raw(answer(request.client, request.name, *texts_of(found)))


async def _answer(
    runtime: RuntimeClient, principal: Principal, event: HookEvent, drain: SpoolDrain | None
) -> HookAnswer:
    """Answer a hook; the start of a session first waits briefly for earlier events."""
    if drain is not None and event.name == "session-start":
        with trio.move_on_after(CATCH_UP_SECONDS):
            await drain.wait_until_idle()
    return await runtime.query(AnswerHook(event=event), principal=principal)


def _complete(given: HookInput, request: RunHook) -> HookInput:
    """Add what the client left out, as its own process knows it."""
    return given._replace(
        id=request.event_id,
        folder=given.folder or request.folder,
        session=given.session or session_of(request.client, given, request.parent),
    )


def _enqueue(folder: Path, request: RunHook, given: HookInput) -> None:
    place = DIALECTS[request.client].transcripts
    if place is not None and given.transcript and request.name != "post-tool":
        path = transcript.check_path(given.transcript, place, request.environment)
        key = transcript.key_of(request.client, given.session, path)
        with hold_spool(folder) as spool:
            kept = spool.read_offset(key)
        if Path(path).stat().st_size - (0 if kept is None else kept.offset) > _MOST_NEW:
            raise GreenroomError(f"the owner reads at most {_MOST_NEW:,} bytes of a transcript")
    enqueue(folder, request.principal, request.name, request.client, given, request.environment)


async def _in_thread(function: Callable[[*Ts], R], *arguments: *Ts) -> R:
    """Run a function in a thread of hooks; nothing else waits for the spool."""
    limiter = get_or_make(_limiter, lambda: trio.CapacityLimiter(2))
    return await trio.to_thread.run_sync(function, *arguments, limiter=limiter, abandon_on_cancel=True)
