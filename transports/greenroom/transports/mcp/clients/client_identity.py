"""The identity of a client: its era, its own name, and its agent."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

from greenroom.transports.auth.caller import fit_agent_id
from greenroom.transports.mcp.agent_port import AgentPort
from greenroom.transports.mcp.clients.ordering import IN_ORDER
from greenroom.transports.mcp.frames.frames import Frame
from greenroom.transports.mcp.frames.versions import (
    HANDSHAKE_VERSIONS,
    MODERN_VERSION,
    Era,
    claims_modern_era,
    client_name,
)


class ClientIdentity:
    """The identity of a client, learned from its first requests, which decide the era.

    The first request with a name, or for an actor, fixes the name.

    Attributes:
        era: Its era; None before its first request.
        folder_of: Returns the working folder of a client with this name, from its process.
        is_introduced: Whether its requests may be served: after the handshake, if its era has one.
        is_name_fixed: Whether its name, and with it its era, is final.
        known_agent: Its agent, if it needed one; reading this attribute does not fix the name.
    """

    def __init__(self, agent_for: Callable[[str], AgentPort]) -> None:
        self.era: Era | None = None
        self.version = HANDSHAKE_VERSIONS[-1]
        self.initialize: dict[str, Any] | None = None
        self.name: str | None = None
        self.folder_of: Callable[[str | None], str | None] = lambda _: None
        self.is_introduced = False
        self.is_name_fixed = False
        self._agent_for = agent_for
        self.known_agent: AgentPort | None = None

    @cached_property
    def agent(self) -> AgentPort:
        """The client's agent; reading this attribute fixes the client's name."""
        self.known_agent = self._agent_for(fit_agent_id(self.name))
        return self.known_agent

    @property
    def folder(self) -> str | None:
        """Its working folder, from its process, for clients that report no folders themselves."""
        return self.folder_of(self.name)

    @property
    def scopes(self) -> frozenset[str]:
        """The client's scopes, empty without an agent; reading them does not fix the name."""
        keep = self.known_agent is not None or self.is_name_fixed
        try:
            agent = self.agent if keep else self._agent_for(fit_agent_id(self.name))
        except Exception:  # noqa: BLE001  (this error answers every request to the agent)
            return frozenset()
        return agent.scopes

    def learn(self, frame: Frame) -> None:
        """Learn the sender of a request, while its name is not fixed."""
        self.name = client_name(frame.method, frame.params)
        self.is_name_fixed = self.name is not None or frame.method in IN_ORDER
        if self.era is None:
            is_modern = frame.method != "initialize" and claims_modern_era(frame.params)
            self.speak(Era.MODERN if is_modern else Era.HANDSHAKE)

    def speak(self, era: Era) -> None:
        """Set the era."""
        self.era = era
        if era is Era.MODERN:
            self.version = MODERN_VERSION
            self.is_introduced = True

    def accept_handshake(self, params: dict[str, Any], version: str) -> None:
        """Record an accepted handshake."""
        self.initialize, self.version, self.is_introduced = params, version, True

    def close(self) -> None:
        """Close its agent, if any."""
        if self.known_agent is not None:
            self.known_agent.close()
