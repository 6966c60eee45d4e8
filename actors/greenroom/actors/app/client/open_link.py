"""Open a one-time link to a passport, in the name of its issuer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

import msgspec

from greenroom.actors.app.client.context import ClientContext
from greenroom.actors.core.audit.actor import record_action
from greenroom.actors.core.base.threads import run_in_thread
from greenroom.actors.sessions.passports import requests
from greenroom.actors.sessions.passports.claims import id_of_link
from greenroom.actors.sessions.passports.export import ExportSession, SignedPassport, collect
from greenroom.actors.sessions.passports.signing import PassportClient, PassportOptions
from greenroom.runtime import Refusal, RuntimeClient

ACTION: Final = "open_passport_link"
"""The action in the audit log."""


class OpenedLink(NamedTuple):
    """The content of a link: the passport of a session, as text."""

    session_id: str
    text: str


async def open_link(
    runtime: RuntimeClient,
    token: str,
    address: str | None,
    *,
    options: PassportOptions,
    is_valid: Callable[[str | None], bool],
    on_export: Callable[[int], None] = lambda _: None,
) -> OpenedLink | None:
    """Redeem a link and return its content; None for an invalid link of any kind.

    It is redeemed last, once its content is ready: after a failure the link can be opened again.
    """
    passport_id = id_of_link(runtime, token)
    place = requests.passport_address(passport_id)
    found = await runtime.ask(place, requests.FindLink())
    if found.maker is None:
        record_action(runtime, ACTION, outcome="denied", address=address)
        return None
    maker = msgspec.structs.replace(found.maker, address=address)
    if not is_valid(maker.key_id):
        record_action(runtime, ACTION, principal=maker, outcome="denied", session=found.session_id)
        return None
    client = ClientContext(runtime, maker, options=options)
    outcome, characters = "failed", 0
    try:
        made = await _exported(client, found.session_id, passport_id)
        if made is None:
            return None
        if not await runtime.ask(place, requests.TakeLink()):  # another caller was first, or it has expired
            outcome = "denied"
            return None
        outcome, characters = "done", len(made.text)
    finally:
        record_action(
            runtime,
            ACTION,
            principal=maker,
            outcome=outcome,
            session=found.session_id,
            passport_id=passport_id,
            characters=characters,
        )
    on_export(made.size)
    return OpenedLink(found.session_id, made.text)


async def _exported(client: PassportClient, session_id: str, passport_id: str) -> SignedPassport | None:
    exporting = ExportSession(session_id=session_id)
    try:
        head, content = await collect(client, session_id, None, exporting.include_memories)
        return await run_in_thread(exporting.pack, client, head, content, passport_id)
    except Refusal:  # the session was deleted, or has grown too large
        return None
