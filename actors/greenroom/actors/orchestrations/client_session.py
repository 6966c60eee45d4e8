"""State of one client: its tool, and the session it works in."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from functools import cached_property
from hashlib import blake2b
from typing import Any, ClassVar, Final, NamedTuple, Protocol, TypeVar

import msgspec
from msgspec import UNSET

from greenroom.actors.app.client.prompts import PromptSource
from greenroom.actors.app.savings.ledger import Ledger
from greenroom.actors.base.orchestration import Orchestration
from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.core.auth import policy, scopes
from greenroom.actors.core.auth.namespaces import project_of_path, project_part, workflow_key
from greenroom.actors.core.auth.principal import Principal
from greenroom.actors.core.base.unicode_forms import composed
from greenroom.actors.core.presence.requests import ProcessPresence
from greenroom.actors.knowledge.ingest.files.places import Reach
from greenroom.actors.knowledge.workspaces.index_lease import Workspaces
from greenroom.actors.memories.storage.quota import Quota
from greenroom.actors.schemas import session_continuation as continuation
from greenroom.actors.sessions.client_tools import client_tool
from greenroom.actors.sessions.passports.signing import Signers
from greenroom.actors.sessions.requests import session_context as travel
from greenroom.actors.sessions.requests.requests import AddMessage
from greenroom.actors.sessions.requests.session_context import (
    ContextRead,
    GetSessionContext,
    SessionContext,
    TalkView,
)
from greenroom.actors.sessions.summary.briefing import LEAST_ROOM, MOST_BYTES
from greenroom.actors.sessions.workflows.requests import KIND as WORKFLOW
from greenroom.actors.sessions.workflows.requests import NoteStep
from greenroom.runtime import Address, GreenroomError, Idempotency, Message, RuntimeClient, Subscriber

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)

SESSIONS: Final = "sessions:read"
"""Scope required to read other agents' messages."""
MAX_CALLERS: Final = 10_000
"""Callers without a connection whose session is remembered."""
_TOKEN_BYTES: Final = 8
_MOST_BEFORE: Final = 3
"""Sessions, each continued by the next, of which a briefing tells besides its own."""


class PassportOptions(NamedTuple):
    """How passports are signed and whose are trusted.

    Attributes:
        trusted: Public keys of servers whose passports are taken (`greenroom passport signer` prints them).
        shared: A secret that servers share, by which they sign instead of with keys of their own.
        base_url: The URL at which clients reach this server's HTTP, below which passports have links; None
            where they do not.
    """

    trusted: tuple[str, ...] = ()
    shared: bytes | None = None
    base_url: str | None = None


class SessionLocator:
    """Remembers in which session each caller without a connection works, in this process.

    Of callers that nothing tells apart, such as two windows of one tool, it is the one taken up last.
    """

    def __init__(self) -> None:
        self._sessions: dict[str, tuple[str, str | None]] = {}

    def find(self, caller: str) -> tuple[str, str | None] | None:
        """Return a caller's session and its project, if it is known."""
        return self._sessions.get(caller)

    def record(self, caller: str, session_id: str, project_id: str | None) -> None:
        """Record a caller's session; beyond `MAX_CALLERS` the oldest is forgotten."""
        self._sessions.pop(caller, None)
        self._sessions[caller] = session_id, project_id
        if len(self._sessions) > MAX_CALLERS:
            del self._sessions[next(iter(self._sessions))]


class ServerPort(Protocol):
    """What the process that serves a client knows of itself."""

    @property
    def is_stopping(self) -> bool:
        """Whether it takes no further request."""

    async def figures(self, *, often: bool = False) -> dict[str, Any]:
        """Return what `greenroom stats --json` says; ``often``: without what takes long."""

    def presence(self) -> ProcessPresence:
        """Return what people are told of it."""

    def end_browser(self, browser: str) -> bool:
        """Log a browser out; return whether it had logged in there."""


class ClientSessionState:
    """State of one client: who and which tool it is, and the session that it works in.

    Args:
        runtime: Where the actors are.
        principal: Who the client is.
        client: Its own name for itself.
        options: How passports are signed.
        scope: Of the client's idempotency keys.
        locator: Remembers the session of a client that has no connection; None where it has one.
        ledger: Counts what is saved; given none, nobody does, and what is kept is read.

    Attributes:
        session_id: The session that it works in; None until it starts or restores one.
        project_id: The project of that session; None for none.
        tool: The tool that it is.
        token: Tells it from others that work in the same session.
        quota: What the client may have, where that is limited.
        on_export: Called with the bytes of what it exported.
        reach: The files that it may have read.
        workspaces: Keep the indexes of the folders that it works in; None where nobody does.
        workspace_path: The folder that its session began in, if it said so.
        server: The process that serves the client; None where none does.
        files_read: What of files it has read, by path and lines: a digest of the file.
        prompts: The user's own prompts; None where there are none.
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
    ) -> None:
        self.runtime = runtime
        self.principal = principal
        self.tool = client_tool(client or principal.agent_id).tool_id
        self.quota: Quota | None = None
        self.on_export: Callable[[int], None] = lambda _: None
        self.reach = Reach()
        self.workspaces: Workspaces | None = None
        self._ledger = ledger
        self.server: ServerPort | None = None
        self.workspace_path: str | None = None
        self.files_read: dict[tuple[str, int, int | None], str] = {}
        self.prompts: PromptSource | None = None
        self._options = options or PassportOptions()
        self.scope = scope or blake2b(msgspec.json.encode(principal, order="deterministic")).hexdigest()
        self._locator = locator
        self._caller = f"{self.scope} {self.tool} {principal.address}"
        self.session_id: str | None = None
        self.project_id: str | None = None
        if locator is not None and (known := locator.find(self._caller)) is not None:
            self.session_id, self.project_id = known
        self.token = (
            secrets.token_hex(_TOKEN_BYTES)
            if locator is None
            else blake2b(self._caller.encode(), digest_size=_TOKEN_BYTES).hexdigest()
        )
        self._held: Subscriber | None = None
        self._is_closed = False

    def without_memory_of_files(self) -> ClientSessionState:
        """Return the same client as one that has read no file, nor notes which it reads."""
        other = copy(self)
        other.files_read = {}
        return other

    @property
    def current_session(self) -> str | None:
        """The session that the client works in now, also where another request of it began that."""
        if self._locator is None:
            return self.session_id
        known = self._locator.find(self._caller)
        return None if known is None else known[0]

    @property
    def holder(self) -> travel.Holder:
        """The client as one who works in a session."""
        return travel.Holder(self.token, 0, self._locator is None, self.principal.agent_id)

    @cached_property
    def ledger(self) -> Ledger:
        """Knows what was saved; where nobody counts, what is kept."""
        return self._ledger or Ledger(self.runtime, time.time_ns)

    @cached_property
    def signers(self) -> Signers:
        """Signs and checks passports."""
        return Signers(self.runtime.derive, self._options.trusted, self._options.shared)

    @property
    def base_url(self) -> str | None:
        """The URL below which passports have links; None where the client gets none."""
        return self._options.base_url if self.may_read else None

    def join(self, session_id: str, project_id: str | None) -> None:
        """Work in a session of a project from now on, and hold it until the client leaves."""
        before = self.session_id
        self.session_id, self.project_id = session_id, project_id
        self._hold(session_id)
        self.tell(Address("session", session_id), travel.HoldSession(holder=self.holder))
        if self._locator is not None:
            self._locator.record(self._caller, session_id, project_id)
        if before is not None and before != session_id and self._locator is None:  # else another window's
            self.tell(Address("session", before), travel.LeaveSession(token=self.token))

    @contextmanager
    def holding(self, session_id: str) -> Iterator[None]:
        """Hold a session, besides the one that the client works in, while it is asked for it."""
        self._hold(session_id, self.session_id)
        try:
            yield
        finally:
            self._hold(self.session_id)

    def close(self) -> None:
        """Release every session: the client is gone."""
        self._is_closed = True
        if self._held is not None:
            self._held.close()

    def _hold(self, *session_ids: str | None) -> None:
        """Hold exactly these sessions."""
        if self._locator is not None or self._is_closed:
            return
        if self._held is None:
            self._held = self.runtime.subscriber()
        wanted = {self.holder.topic(each) for each in session_ids if each is not None}
        for topic in wanted - set(self._held.topics):
            self._held.add(topic)
        for topic in set(self._held.topics) - wanted:
            self._held.remove(topic)

    def resolve_session(self, session_id: str | None) -> str:
        """Return the session that is named, or the one that the client works in.

        Raises:
            Refusal: ``VALIDATION_ERROR``: none is named, and none was started here.
        """
        session_id = session_id or self.session_id
        if session_id is None:
            raise auth_errors.invalid(
                "session_id", "session_id: start or restore a session first, or say which one is meant"
            )
        return session_id

    def with_session(self, request: Any) -> Any:
        """Fill in the client's session where a request names none.

        Raises:
            Refusal: as `resolve_session`; a message would be added to a session that another window of the
                same caller may have started.
        """
        session_id = self.resolve_session(None)
        if isinstance(request, AddMessage) and self._locator is not None:
            raise auth_errors.invalid(
                "session_id",
                f"session_id: no connection tells which session you mean; the one that you worked in last is "
                f"{session_id!r}, name it if it is meant",
            )
        named = msgspec.structs.replace(request, session_id=session_id)
        if isinstance(named, GetSessionContext) and named.tool_id is None:
            return msgspec.structs.replace(named, tool_id=self.tool)
        return named

    @property
    def may_read(self) -> bool:
        """Whether the client may read sessions."""
        return scopes.allows(self.principal.scopes, SESSIONS)

    def context_of(self, read: ContextRead) -> SessionContext:
        """Return the context as far as the client may read it."""
        return read.context if self.may_read else SessionContext()

    def talk_of(self, read: ContextRead) -> TalkView:
        """Return how much was said, as far as the client may read it."""
        return read.talk if self.may_read else TalkView()

    async def briefing_of(self, read: ContextRead, *, asked: bool = True) -> str:
        """Return the briefing, which says what is in the context.

        Where there is room left in it, it goes on with what was said in the session that this one continues.

        Args:
            read: The session.
            asked: Whether the client named it.
        """
        if not self.may_read:
            return ""
        text, before = read.briefing, read.continues
        for _ in range(_MOST_BEFORE):
            room = MOST_BYTES - len(text.encode()) - 1
            if before is UNSET or room < LEAST_ROOM:
                break
            try:
                earlier = await self.ask(
                    Address("session", before), continuation.TellEarlier(most_bytes=room, asked=asked)
                )
            except GreenroomError:  # it was deleted, or hidden, since
                break
            text = f"{text}\n{earlier.text}" if earlier.text else text
            before = earlier.continues
        return text

    async def charge_bytes(self, stored_bytes: int, deed: str) -> None:
        """Charge stored bytes that the request does not show to the client's quota, once for each deed.

        Raises:
            Refusal: ``QUOTA_EXCEEDED``.
        """
        if self.quota is not None:
            await self.quota.charge_bytes(self.runtime, stored_bytes, f"{self.scope} quota {deed}")

    def check_scope(self, what: str, scope: str) -> None:
        """Check that the client holds a scope beyond the one that its tool needs.

        Raises:
            Refusal: ``PERMISSION_DENIED``: it may not.
        """
        if not scopes.allows(self.principal.scopes, scope):
            raise auth_errors.scope_missing(what, scope)

    def idempotency(self, tool: str, key: str | None, arguments: Any) -> Idempotency | None:
        """Return the idempotency key of a request with these arguments, in the client's scope."""
        if key is None:
            return None
        fingerprint = blake2b(msgspec.json.encode(arguments), digest_size=16).digest()
        return Idempotency(f"{self.scope} {tool}", composed(key), fingerprint)

    def tool_of(self, tool_id: str | None) -> str:
        """Return the tool that is meant."""
        return self.tool if tool_id is None else client_tool(tool_id).tool_id

    def project_of(self, project_id: str | None, workspace_path: str | None) -> str | None:
        """Return the project that is meant: as named, else that of the workspace.

        Raises:
            Refusal: the caller belongs to several projects and names none, or to another one.
        """
        principal = self.principal
        if project_id is None and principal.projects:
            if len(principal.projects) > 1:
                mine = ", ".join(sorted(principal.projects))
                raise auth_errors.invalid(
                    "project_id", f"project_id: you belong to several; say which: {mine}"
                )
            (project_id,) = principal.projects
        elif project_id is None and workspace_path is not None and principal.projects is None:
            project_id = project_of_path(workspace_path)
        if not policy.may_see_session(principal, project_id):
            raise auth_errors.permission_denied(
                "project_id", f"project_id: you are no member of {project_id!r}"
            )
        return project_id

    @property
    def thread(self) -> str:
        """What tells the client's steps from those of others: its session, or the agent where it has none."""
        return self.session_id or f"agent:{self.principal.agent_id}"

    @property
    def own_project(self) -> str | None:
        """The project that the client works in: of its session, or the only one that it is a member of."""
        if self.session_id is None and self.principal.projects and len(self.principal.projects) == 1:
            return next(iter(self.principal.projects))
        return self.project_id

    def record_step(self, tool: str, *, passed: bool, seconds: float) -> None:
        """Record a tool call that is over among the steps of the client's user."""
        project_id = self.own_project
        key = workflow_key(self.principal, project_part(project_id))
        note = NoteStep(
            tool=tool,
            passed=passed,
            duration_ms=round(seconds * 1_000, 3),
            session_id=self.session_id,
            thread=self.thread,
            project_id=project_id,
        )
        self.tell(Address(WORKFLOW, key), note)

    async def ask(self, address: Address, message: Message[R], idempotency: Idempotency | None = None) -> R:
        """Ask an actor in the client's name."""
        return await self.runtime.ask(address, message, principal=self.principal, idempotency=idempotency)

    def tell(self, address: Address, told: Message[None]) -> None:
        """Tell an actor; a failure is ignored, since the message may be lost anyhow."""
        try:
            self.runtime.tell(address, told, principal=self.principal)
        except GreenroomError:  # nobody's request fails for it
            return


class ClientOrchestration(Orchestration[R_co], frozen=True, kw_only=True):
    """An orchestration that needs the client's state: subclass it and define `carry_out`."""

    writes: ClassVar[bool] = True

    async def run(self, runtime: RuntimeClient, principal: Principal) -> R_co:
        """Run it for a client without state of its own."""
        return await self.carry_out(ClientSessionState(runtime, principal))

    async def carry_out(self, client: ClientSessionState) -> R_co:
        """Run it for a client, and return the reply."""
        raise NotImplementedError(f"{type(self).__name__} does not define carry_out()")
