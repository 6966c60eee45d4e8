"""The principal: the identity that a transport attaches to every message."""

from __future__ import annotations

import re

import msgspec

MAX_NAME = 100
NAME = re.compile(rf"[A-Za-z0-9_.-]{{1,{MAX_NAME}}}")
"""What an agent id and an agent type look like."""
LINK = "console:"
"""What the id of a credential begins with that is the link of the folder's owner."""
_SOME_KEY = "key"


class Principal(msgspec.Struct, frozen=True, kw_only=True):
    """An agent as the server knows it; tool arguments never carry any of this.

    Attributes:
        agent_id: 1-100 of ``A-Za-z0-9_.-``.
        agent_type: The same alphabet; without one, ``agent_only`` means private.
        user: The person behind the agent, when known.
        projects: The projects whose sessions the agent may see; None means every project.
        scopes: What the agent may do, as `scopes` says; everything unless given.
        key_id: The API key by which it came, if by one; or what names its token or its link.
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
    def is_authenticated(self) -> bool:
        """Whether a key or a token says who it is.

        The folder's owner and local programs come without one.
        """
        return self.key_id is not None and not self.key_id.startswith(LINK)

    @property
    def identity(self) -> Principal:
        """The principal without its key, its address and who looks on: whose data is whose tells the rest."""
        return msgspec.structs.replace(self, key_id=None, address=None, seen_by=None)

    @property
    def sight(self) -> Principal:
        """The identity, and whether it came by a key; two equal ones see the same."""
        key_id = _SOME_KEY if self.is_authenticated else None
        return msgspec.structs.replace(self, key_id=key_id, address=None, seen_by=None)


def check_principal(given: object) -> Principal:
    """Return what a program gives as a principal.

    Raises:
        TypeError: it is none, but the bare name of an agent or anything else.
    """
    if isinstance(given, Principal):
        return given
    shown = f"Principal(agent_id={given!r})" if isinstance(given, str) else 'Principal(agent_id="...")'
    raise TypeError(f"the principal is {given!r}, but a Principal says who asks; give {shown}")
