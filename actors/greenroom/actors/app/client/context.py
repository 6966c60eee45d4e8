"""The state of one client; each request uses the parts that its room knows."""

from __future__ import annotations

import time
from collections.abc import Callable
from copy import copy
from functools import cached_property, partial
from hashlib import blake2b
from typing import Any, Protocol

import msgspec

from greenroom.actors.app.client.prompts import PromptSource
from greenroom.actors.app.savings.ledger import Ledger
from greenroom.actors.core.auth.principal import Principal
from greenroom.actors.core.presence.requests import ProcessPresence
from greenroom.actors.knowledge.ingest.files.places import ClientFiles, Reach, find_project_of
from greenroom.actors.knowledge.workspaces.index_lease import Workspaces
from greenroom.actors.memories.storage.quota import Quota
from greenroom.actors.sessions.passports.signing import ClientPassports, PassportClient, PassportOptions
from greenroom.actors.sessions.requests.current_session import CurrentSession, SessionLocator
from greenroom.actors.sessions.storage.migrations import client_tool
from greenroom.runtime import RuntimeClient


class ServerPort(Protocol):
    """The serving process, as its clients use it."""

    @property
    def is_stopping(self) -> bool:
        """Whether it accepts no further request."""

    async def figures(self, *, often: bool = False) -> dict[str, Any]:
        """Return the figures of `greenroom stats --json`; ``often`` omits the slow figures."""

    def presence(self) -> ProcessPresence:
        """Return the presence report of this process."""

    def end_browser(self, browser: str) -> bool:
        """Log a browser out; return whether it was logged in at this process."""


class ClientContext(PassportClient):
    """One client: its identity and its state.

    Args:
        client: The name that the client gives itself.
        scope: The scope of the client's idempotency keys.
        locator: Finds the session of a client without a connection; None if it has a connection.
        ledger: Counts savings; without a ledger, only stored savings are read.
        on_export: Called with the size of each export in bytes.

    Attributes:
        files: The files that the client may read, and those that it has read.
    """

    def __init__(
        self,
        runtime: RuntimeClient,
        principal: Principal,
        client: str | None = None,
        options: PassportOptions | None = None,
        scope: str = "",
        locator: SessionLocator | None = None,
        ledger: Ledger | None = None,
        server: ServerPort | None = None,
        quota: Quota | None = None,
        on_export: Callable[[int], None] = lambda _: None,
        reach: Reach | None = None,
        workspaces: Workspaces | None = None,
        prompts: PromptSource | None = None,
    ) -> None:
        self.runtime = runtime
        self.principal = principal
        self.tool = client_tool(client or principal.agent_id).tool_id
        self.scope = scope or blake2b(msgspec.json.encode(principal, order="deterministic")).hexdigest()
        self.on_export = on_export
        find_project = partial(find_project_of, reach=reach or Reach())
        self.session = CurrentSession(runtime, principal, self.tool, self.scope, locator, find_project)
        self.passports = ClientPassports(runtime, principal.scopes, options or PassportOptions())
        self.files = ClientFiles(reach)
        self.workspaces = workspaces
        self.server = server
        self.prompts = prompts
        self._quota = quota
        self._ledger = ledger

    def with_unread_files(self) -> ClientContext:
        """Return the same client with no files read, and without a record of its reads."""
        other = copy(self)
        other.files = ClientFiles(self.files.reach)
        return other

    @cached_property
    def ledger(self) -> Ledger:
        """The ledger of savings; without a counter, it only reads stored savings."""
        return self._ledger or Ledger(self.runtime, time.time_ns)

    async def charge_bytes(self, stored_bytes: int, action: str) -> None:
        """Charge bytes stored outside of the request to the client's quota, once per action.

        Raises:
            Refusal: ``QUOTA_EXCEEDED``.
        """
        if self._quota is not None:
            await self._quota.charge_bytes(self.runtime, stored_bytes, f"{self.scope} quota {action}")
