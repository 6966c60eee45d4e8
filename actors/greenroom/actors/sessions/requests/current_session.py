"""The current session of a client."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import blake2b
from typing import Any, Final, Protocol

import msgspec

from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.core.auth.principal import Principal
from greenroom.actors.core.client import Client
from greenroom.actors.core.git.projects import Project, project_elsewhere
from greenroom.actors.sessions.requests import handover, session_context
from greenroom.actors.sessions.requests.requests import AddMessage
from greenroom.runtime import Address, GreenroomError, Message, RuntimeClient, Subscriber

MAX_CALLERS: Final = 10_000
"""The most callers without a connection that the locator remembers."""
_TOKEN_BYTES: Final = 8


class SessionLocator:
    """Remembers the current session of each caller without a connection, in this process.

    Callers that cannot be distinguished, such as two windows of one tool, share the last session.
    """

    def __init__(self) -> None:
        self._sessions: dict[str, tuple[str, str | None]] = {}

    def find(self, caller: str) -> tuple[str, str | None] | None:
        """Return the session of a caller and its project, if known."""
        return self._sessions.get(caller)

    def record(self, caller: str, session_id: str, project_id: str | None) -> None:
        """Record the session of a caller; beyond `MAX_CALLERS` drop the oldest."""
        self._sessions.pop(caller, None)
        self._sessions[caller] = session_id, project_id
        if len(self._sessions) > MAX_CALLERS:
            del self._sessions[next(iter(self._sessions))]


class CurrentSession:
    """The session that a client works in and holds against other clients.

    Args:
        runtime: The runtime that has the sessions.
        principal: The client's principal.
        tool: The client's program.
        scope: The scope of the client's idempotency keys.
        locator: Remembers the session of a client without a connection; None if the client has one.
        find_project: Finds the project of a folder that the client names.

    Attributes:
        session_id: None until the client starts or restores a session.
        token: Identifies the client among others in the same session.
    """

    def __init__(
        self,
        runtime: RuntimeClient,
        principal: Principal,
        tool: str,
        scope: str,
        locator: SessionLocator | None = None,
        find_project: Callable[[str], Project] = project_elsewhere,
    ) -> None:
        self.session_id: str | None = None
        self.project_id: str | None = None
        self.folder: str | None = None
        self.find_project = find_project
        self._runtime = runtime
        self._principal = principal
        self._tool = tool
        self._locator = locator
        self._caller = f"{scope} {tool} {principal.address}"
        if locator is not None and (known := locator.find(self._caller)) is not None:
            self.session_id, self.project_id = known
        self.token = (
            secrets.token_hex(_TOKEN_BYTES)
            if locator is None
            else blake2b(self._caller.encode(), digest_size=_TOKEN_BYTES).hexdigest()
        )
        self._held: Subscriber | None = None
        self._is_closed = False

    @property
    def latest(self) -> str | None:
        """The current session, even if another request of the client started it."""
        if self._locator is None:
            return self.session_id
        known = self._locator.find(self._caller)
        return None if known is None else known[0]

    @property
    def holder(self) -> handover.Holder:
        """The client as a holder of a session."""
        return handover.Holder(self.token, 0, self._locator is None, self._principal.agent_id)

    @property
    def thread(self) -> str:
        """The key of the client's workflow steps: its session, or else its agent."""
        return self.session_id or f"agent:{self._principal.agent_id}"

    @property
    def own_project(self) -> str | None:
        """The project of the session, or the only project of the client."""
        projects = self._principal.projects
        if self.session_id is None and projects and len(projects) == 1:
            return next(iter(projects))
        return self.project_id

    def set_folder(self, folder: str) -> None:
        """Store the folder that the client begins to work in."""
        self.folder = folder

    def join(self, session_id: str, project_id: str | None) -> None:
        """Make a session current, and hold it until the client leaves."""
        before = self.session_id
        self.session_id, self.project_id = session_id, project_id
        self._hold(session_id)
        self._tell(session_id, handover.HoldSession(holder=self.holder))
        if self._locator is not None:
            self._locator.record(self._caller, session_id, project_id)
        if before is not None and before != session_id and self._locator is None:  # else windows share it
            self._tell(before, handover.LeaveSession(token=self.token))

    @contextmanager
    def holding(self, session_id: str) -> Iterator[None]:
        """Hold a session besides the current one, during a request to it."""
        self._hold(session_id, self.session_id)
        try:
            yield
        finally:
            self._hold(self.session_id)

    def close(self) -> None:
        """Release all sessions: the client has disconnected."""
        self._is_closed = True
        if self._held is not None:
            self._held.close()

    def resolve(self, session_id: str | None) -> str:
        """Return the named session, or the current one; refuse if there is neither."""
        session_id = session_id or self.session_id
        if session_id is None:
            raise auth_errors.invalid(
                "session_id", "session_id: start or restore a session first, or name one"
            )
        return session_id

    def fill_in(self, request: Any) -> Any:
        """Fill in the current session in a request that names no session.

        Refuses `AddMessage` without a connection: another window of the caller may have started the session.
        """
        session_id = self.resolve(None)
        if isinstance(request, AddMessage) and self._locator is not None:
            raise auth_errors.invalid(
                "session_id",
                f"session_id: without a connection your session is not known; the one that you used last is "
                f"{session_id!r}, name it if you mean it",
            )
        named = msgspec.structs.replace(request, session_id=session_id)
        if isinstance(named, session_context.GetSessionContext) and named.tool_id is None:
            return msgspec.structs.replace(named, tool_id=self._tool)
        return named

    def _hold(self, *session_ids: str | None) -> None:
        if self._locator is not None or self._is_closed:
            return
        if self._held is None:
            self._held = self._runtime.subscriber()
        wanted = {self.holder.topic(each) for each in session_ids if each is not None}
        for topic in wanted - set(self._held.topics):
            self._held.add(topic)
        for topic in set(self._held.topics) - wanted:
            self._held.remove(topic)

    def _tell(self, session_id: str, message: Message[None]) -> None:
        """Send a message that may be lost to a session; ignore a failure."""
        try:
            self._runtime.tell(Address("session", session_id), message, principal=self._principal)
        except GreenroomError:
            return


class SessionClient(Client, Protocol):
    """A client with a current session."""

    session: CurrentSession
