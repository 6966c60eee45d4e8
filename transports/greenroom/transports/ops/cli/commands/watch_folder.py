"""The source of `greenroom watch` on a folder, attached to the server that owns it.

It never owns the folder: when the server ends, it waits for the next server. Its methods, and those of the
source at a WebSocket, raise `WatchError`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Final, TypeVar

import msgspec
import trio

from greenroom.actors import Agent, GetMessages, ReadResource
from greenroom.actors.core.auth.scopes import SESSIONS
from greenroom.runtime import Message, OverloadedError, Refusal, StoreIdleError
from greenroom.transports.base.config.settings import Settings
from greenroom.transports.ops.cli.support.authentication import acting_principal
from greenroom.transports.ops.cli.support.open_store import open_store

R = TypeVar("R")
SCHEME: Final = "session://"
_NAME: Final = "greenroom-watch"
_PAGE: Final = 100  # messages per request if many are new


class WatchError(Exception):
    """The session cannot be followed; the message says why."""


@asynccontextmanager
async def open_folder_source(session_id: str, settings: Settings) -> AsyncIterator[FolderSource]:
    """Attach to the server of the folder, and return the session there."""
    try:
        async with open_store(settings, may="attach") as runtime:
            principal = await acting_principal(runtime, settings, "greenroom watch", SESSIONS, agent=_NAME)
            yield FolderSource(Agent(runtime, principal, client=_NAME), session_id)
    except StoreIdleError:
        raise WatchError(
            f"no server uses {settings.data}; start one, or name another folder with --data or a server "
            "elsewhere with --url"
        ) from None


class FolderSource:
    """A session in the folder."""

    def __init__(self, agent: Agent, session_id: str) -> None:
        self._agent = agent
        self._session_id = session_id

    async def read(self) -> dict[str, Any]:
        """Return the resource: the session with its newest messages."""
        return await self._ask(ReadResource(uri=SCHEME + self._session_id))

    async def page(self, after: int) -> dict[str, Any]:
        """Return the messages after the message ``after``, oldest first."""
        return await self._ask(GetMessages(session_id=self._session_id, since_id=after, limit=_PAGE))

    @asynccontextmanager
    async def changes(self) -> AsyncIterator[Callable[[], Awaitable[bool]]]:
        """Yield a function that waits for the next change; a takeover counts as one."""
        with self._agent.subscriber() as changes:
            changes.add(SCHEME + self._session_id)

            async def next_change() -> bool:
                await changes.next()
                return True

            yield next_change

    async def _ask(self, request: Message[R]) -> dict[str, Any]:
        while True:
            try:
                reply = await self._agent.ask(request)
            except OverloadedError as error:  # no server has the folder at the moment
                await trio.sleep(error.retry_after_ms / 1000)
                continue
            except Refusal as refusal:
                raise WatchError(f"{SCHEME}{self._session_id}: {refusal.sentence}") from None
            found: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(reply))
            return found
