"""Hooks that tell something: what they know of a session goes into the spool, once."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from greenroom.actors.core.auth.principal import Principal
from greenroom.actors.sessions.requests.hook_events import HookEvent, HookName
from greenroom.transports.clients.hooks.dialects import DIALECTS, Said, Transcripts
from greenroom.transports.clients.hooks.spool import Entry, Spool, held
from greenroom.transports.clients.hooks.transcript import checked_path, key_of, read_tail
from greenroom.transports.clients.hooks.turns import RawTurn
from greenroom.transports.hooks.events import make_event, own_turns, session_of


class NothingKeptError(Exception):
    """What a hook should keep is not there; the sentence says what."""


def keep(
    folder: Path,
    principal: Principal,
    hook: HookName,
    client: str,
    said: Said,
    environment: Mapping[str, str],
) -> bool:
    """Keep what a hook has to tell, in the spool of a data folder.

    Of a client with transcripts each tool's call is in there, and told by the hook that reads it.

    Args:
        folder: The data folder.
        principal: Whose session it is.
        hook: The hook.
        client: The client's name.
        said: What the client said.
        environment: Says where the client's folder is.

    Returns:
        Whether there was something to tell.

    Raises:
        TranscriptRefusedError: The transcript is not the client's.
        NothingKeptError: There is no transcript, though something was said.
        OSError, SpoolError, StoreError: It cannot be kept.
    """
    place = DIALECTS[client].transcripts
    if place is None or not said.transcript:
        event = make_event(hook, client, said, own_turns(said))
        return _tells(event) and _put(folder, Entry(principal=principal, event=event))
    if hook == "post-tool":
        return False
    path = checked_path(said.transcript, place, environment)
    with held(folder) as spool:
        if hook == "session-end":
            spool.forget_old()
        return _put_tail(spool, principal, hook, client, said, path, place)


def _put(folder: Path, entry: Entry) -> bool:
    with held(folder) as spool:
        spool.put(entry)
    return True


def _put_tail(
    spool: Spool, principal: Principal, hook: HookName, client: str, said: Said, path: str, place: Transcripts
) -> bool:
    key = key_of(client, session_of(client, said), path)
    turns: list[RawTurn] = []
    kept = None
    try:
        turns, kept = read_tail(path, place, spool.kept(key))
    except FileNotFoundError:
        if hook != "session-end":  # a session may end before anything was said
            raise NothingKeptError(
                f"there is no transcript {path[:200]!r}, so nothing of it is kept"
            ) from None
    event = make_event(hook, client, said, turns)
    if not _tells(event):
        return False
    spool.put(Entry(principal=principal, event=event), key, kept)
    return True


def _tells(event: HookEvent) -> bool:
    return bool(event.turns) or event.name in {"pre-compact", "session-end"}
