"""Who a client is: which era it speaks, its name for itself, and its agent in the domain."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from greenroom.transports.auth.caller import fit_agent_id
from greenroom.transports.mcp.agent_port import AgentPort
from greenroom.transports.mcp.clients.ordering import IN_ORDER
from greenroom.transports.mcp.frames.frames import Frame
from greenroom.transports.mcp.frames.versions import (
    HANDSHAKE_VERSIONS,
    MODERN_VERSION,
    Era,
    client_name,
    opens_modern_era,
)


class ClientIdentity:
    """Who a client is, as its first requests say: the first one decides the era.

    Its name is fixed by the first request that has one, or that is of the domain.

    Args:
        agent_for: Returns its agent in the domain, given its name made to fit.

    Attributes:
        era: The era it speaks; None before its first request.
        version: The protocol's revision.
        initialize: The parameters of its handshake; None without one.
        name: Its own name for itself.
        folder_of: Returns the folder in which a client of this name works, as its process shows.
    """

    def __init__(self, agent_for: Callable[[str], AgentPort]) -> None:
        self.era: Era | None = None
        self.version = HANDSHAKE_VERSIONS[-1]
        self.initialize: dict[str, Any] | None = None
        self.name: str | None = None
        self.folder_of: Callable[[str | None], str | None] = lambda _: None
        self._name_fixed = False
        self._agent_for = agent_for
        self._agent: AgentPort | None = None

    @property
    def agent(self) -> AgentPort:
        """The client's agent; to ask for it fixes its name."""
        if self._agent is None:
            self._agent = self._agent_for(fit_agent_id(self.name))
        return self._agent

    @property
    def known_agent(self) -> AgentPort | None:
        """The client's agent, if there was need of one; to ask for this fixes no name."""
        return self._agent

    @property
    def folder(self) -> str | None:
        """The folder that it works in, as its process shows; for where it tells none itself."""
        return self.folder_of(self.name)

    @property
    def scopes(self) -> frozenset[str]:
        """What the client may do; to ask for it fixes no name. Nothing, where there is no agent for it."""
        keep = self._agent is not None or self._name_fixed
        try:
            agent = self.agent if keep else self._agent_for(fit_agent_id(self.name))
        except Exception:  # noqa: BLE001  (whatever is asked through it is answered with that)
            return frozenset()
        return agent.scopes

    def learn(self, frame: Frame) -> Era:
        """Learn from a request who sent it, and return the era that it speaks."""
        if not self._name_fixed:
            self.name = client_name(frame.method, frame.params)
            self._name_fixed = self.name is not None or frame.method in IN_ORDER
        if self.era is None:
            self.speak(Era.MODERN if opens_modern_era(frame.method, frame.params) else Era.HANDSHAKE)
        assert self.era is not None, "it was just decided"
        return self.era

    def speak(self, era: Era) -> None:
        """Decide the era."""
        self.era = era
        if era is Era.MODERN:
            self.version = MODERN_VERSION

    def accept_handshake(self, params: dict[str, Any], version: str) -> None:
        """Record a handshake that was accepted."""
        self.initialize, self.version = params, version

    @property
    def is_introduced(self) -> bool:
        """Whether its requests may be served: after its handshake, where its era has one."""
        return self.initialize is not None or self.era is Era.MODERN

    def close(self) -> None:
        """Close its agent, if it has one."""
        if self._agent is not None:
            self._agent.close()
