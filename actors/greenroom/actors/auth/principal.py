"""The principal: the identity that a transport attaches to every message."""

from __future__ import annotations

import re

import msgspec

MAX_NAME = 100
NAME = re.compile(rf"[A-Za-z0-9_.-]{{1,{MAX_NAME}}}")
"""What an agent id and an agent type look like."""


class Principal(msgspec.Struct, frozen=True, kw_only=True):
    """An agent as the server knows it; tool arguments never carry any of this.

    Attributes:
        agent_id: 1-100 of ``A-Za-z0-9_.-``.
        agent_type: The same alphabet; without one, ``agent_only`` means private.
        user: The person behind the agent, when known.
        projects: The projects whose sessions the agent may see; None means every project.
        scopes: What the agent may do, as `scopes` says; everything unless given.
        key_id: The API key by which it came, if by one.
        address: Where its connection comes from; for the audit log alone.
        seen_by: The agent that looks on in this one's place, which is counted nowhere; None where
            the agent itself asks.

    Raises:
        ValueError: the agent id or type does not fit the alphabet or the length.
    """

    agent_id: str
    agent_type: str | None = None
    user: str | None = None
    projects: frozenset[str] | None = None
    scopes: frozenset[str] = frozenset({"*"})
    key_id: str | None = None
    address: str | None = None
    seen_by: str | None = None

    def __post_init__(self) -> None:
        if NAME.fullmatch(self.agent_id) is None:
            raise ValueError(f"the agent id {self.agent_id!r} is not 1-100 of A-Za-z0-9_.-")
        if self.agent_type is not None and NAME.fullmatch(self.agent_type) is None:
            raise ValueError(f"the agent type {self.agent_type!r} is not 1-100 of A-Za-z0-9_.-")

    @property
    def identity(self) -> Principal:
        """The principal without its key, its address and who looks on: whose data is whose tells the rest."""
        return msgspec.structs.replace(self, key_id=None, address=None, seen_by=None)
