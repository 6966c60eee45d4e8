"""A session of the OpenAI Agents SDK as a session of Greenroom."""

from __future__ import annotations

import logging
import re
import secrets
from hashlib import blake2b
from typing import TYPE_CHECKING, Final, cast

from agents.memory import SessionSettings
from anyio.lowlevel import checkpoint

from greenroom.actors import Database, Event, Principal, ServiceError, SessionService
from greenroom.actors.sessions.requests.requests import TakeSnapshot
from greenroom.adapters.openai_agents.items import content_of, is_lost, item_of, preview_of
from greenroom.runtime import Address, Refusal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agents.items import TResponseInputItem

logger = logging.getLogger(__name__)

ITEMS_A_SLICE: Final = 500  # this many are converted between two yields, in about 1 ms
APP: Final = "openai-agents"
_PREFIX: Final = "openai-agents."
"""The ids of events that are items begin with this."""
_PLAIN: Final = re.compile(r"[A-Za-z0-9_.-]{1,128}")
_FOREIGN: Final = re.compile(r"[^A-Za-z0-9.-]")
_ESCAPED: Final = "x-"
_DIGESTED: Final = "xx-"
_RESERVED: Final = frozenset({"all", "current"})
_LONGEST: Final = 128
_SHOWN: Final = 80


class GreenroomSession:
    """The history of a conversation, for ``Runner.run(…, session=…)``, in a session of Greenroom.

    Agents with the MCP tools read its messages as messages, and tool calls as events of the type
    ``tool_call``. Each item is returned unchanged; other agents' events are no items. The session is created
    with the first item. Popped and cleared items are removed permanently.

    Args:
        database: An open `Database`.
        session_id: Any text without lone surrogates. If it is no valid id of a session here, the session has
            the id `key`, and its state has the text as ``session_id``.
        principal: The caller, by default the agent ``app``, a member of every project. The session belongs to
            its user; another user's session is refused.
        project_id: The project whose members see the session; None for no project.
        session_settings: The SDK's settings: how many items a run gets.

    Attributes:
        key: The id of the session of Greenroom.

    Raises:
        ValueError: the session id is invalid. The methods raise `ServiceError`, a ``ValueError``: an item is
            invalid, or the session has ended or belongs to another user.
    """

    def __init__(
        self,
        database: Database,
        session_id: str,
        *,
        principal: Principal | None = None,
        project_id: str | None = None,
        session_settings: SessionSettings | None = None,
    ) -> None:
        self.session_id = session_id
        self.session_settings: SessionSettings | None = session_settings or SessionSettings()
        self.key = _session_key(session_id)
        self._database = database
        self._sessions = SessionService(database, principal)
        self._project_id = project_id
        self._is_known = False
        self._longest: int | None = None

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """Return the newest items, oldest first.

        If the limit is None, the limit of ``session_settings`` applies; below 0 there is no limit.
        """
        if limit is None and self.session_settings is not None:
            limit = self.session_settings.limit
        if limit == 0 or not await self._is_there():
            return []
        most = None if limit is None or limit < 0 else limit
        try:
            events = await self._sessions.get_events(self.key, most, _PREFIX)
        except ServiceError as error:
            self._forget_if_gone(error)
            return []
        items: list[TResponseInputItem] = []
        for event in events:
            if is_lost(event.content):
                logger.warning("the session %r came by a passport, which left an item out", self.session_id)
                continue
            items.append(cast("TResponseInputItem", item_of(event.content)))
            if len(items) % ITEMS_A_SLICE == 0:
                await checkpoint()
        return items

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Add items, all or none, in one commit: up to 16 MB of JSON.

        Agents see only the text of an item over 1 MB, such as a photo; passports leave the item out.
        """
        batch = secrets.token_hex(16)
        while items:
            try:
                if not await self._is_there():
                    await self._create()
                await self._sessions.append_events(self.key, self._events(items, batch))
            except ServiceError as error:
                self._learn(error)
            else:
                return

    async def pop_item(self) -> TResponseInputItem | None:
        """Remove and return the newest item; None if there is none."""
        if not await self._is_there():
            return None
        try:
            event = await self._sessions.pop_event(self.key, _PREFIX)
        except ServiceError as error:
            self._forget_if_gone(error)
            return None
        if event is None or is_lost(event.content):
            return None
        return cast("TResponseInputItem", item_of(event.content))

    async def clear_session(self) -> None:
        """Remove all items."""
        if not await self._is_there():
            return
        try:
            await self._sessions.clear_events(self.key, _PREFIX)
        except ServiceError as error:
            self._forget_if_gone(error)

    async def _is_there(self) -> bool:
        """Return whether the session exists now: another user may take a free id."""
        principal, address = self._sessions.principal, Address("session", self.key)
        try:
            found = await self._database.ask(address, TakeSnapshot(session_id=self.key), principal=principal)
        except Refusal as refusal:
            if refusal.code == "SESSION_NOT_FOUND":
                self._is_known = False
                return False
            raise
        if found.session.user_id != principal.user:
            raise ServiceError(
                "PERMISSION_DENIED",
                f"session_id: the session {self.session_id!r} is another user's; choose another id",
                field="session_id",
            )
        self._is_known = True
        return True

    async def _create(self) -> None:
        """Create the session, unless another writer has just done so."""
        try:
            await self._sessions.create_session(
                self.key, APP, None, self._project_id, {"session_id": self.session_id}
            )
        except ServiceError as error:
            if error.code != "KEY_EXISTS" or not await self._is_there():
                raise
        self._is_known = True

    def _events(self, items: list[TResponseInputItem], batch: str) -> Iterator[Event]:
        """Yield the events of items; a retry has the same ids."""
        agent = f"agent:{self._sessions.principal.agent_id}"
        for number, item in enumerate(items):
            made = content_of(item, self._longest)
            yield Event(
                event_type=made.event_type,
                actor=made.role or agent,
                content=made.content,
                shown=preview_of(item, self._longest),
                event_id=f"{_PREFIX}{batch}.{number}",
            )

    def _forget_if_gone(self, error: ServiceError) -> None:
        """Record that the session was erased; raise any other error again."""
        if error.code != "SESSION_NOT_FOUND" or not self._is_known:
            raise error
        self._is_known = False

    def _learn(self, error: ServiceError) -> None:
        """Record the limit of messages, or that the session is gone; raise any other refusal."""
        if error.details.get("field") == "content" and error.details.get("unit") == "characters":
            longest = error.details["limit"]
            if self._longest is None or longest < self._longest:
                self._longest = longest
                return
        self._forget_if_gone(error)


def _session_key(session_id: str) -> str:
    """Return the id of the Greenroom session; different ids give different results.

    An id of 1-128 of ``A-Za-z0-9_.-`` is unchanged. In other ids, each unsuitable byte becomes ``_`` and two
    hexadecimal digits, after ``x-``. A result that is too long ends with a digest, after ``xx-``.

    Raises:
        ValueError: it is no text, or has a lone surrogate.
    """
    if not isinstance(session_id, str):
        raise ValueError(f"session_id: it takes a text, and got {type(session_id).__name__}")  # noqa: TRY004
    try:
        raw = session_id.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"session_id: it holds a lone surrogate at character {error.start}") from None
    is_ours = session_id.startswith((_ESCAPED, _DIGESTED))
    if _PLAIN.fullmatch(session_id) is not None and session_id not in _RESERVED and not is_ours:
        return session_id
    written = _FOREIGN.sub(lambda found: "".join(f"_{byte:02x}" for byte in found[0].encode()), session_id)
    if len(_ESCAPED) + len(written) <= _LONGEST:
        return _ESCAPED + written
    return f"{_DIGESTED}{written[:_SHOWN]}-{blake2b(raw, digest_size=16).hexdigest()}"
