"""The principal: the identity that a transport attaches to every message."""

from __future__ import annotations

import re

import msgspec

MAX_NAME = 100
NAME = re.compile(rf"[A-Za-z0-9_.-]{{1,{MAX_NAME}}}")
"""The form of an agent id and an agent type."""
LINK = "console:"
"""The prefix of the credential id of a console link, which the folder's owner made."""
_SOME_KEY = "key"


class Principal(msgspec.Struct, frozen=True, kw_only=True):
    """The identity of a caller. No part of it ever comes from tool arguments.

    Attributes:
        agent_id: 1-100 characters of ``A-Za-z0-9_.-``.
        agent_type: In the same alphabet; without a type, ``agent_only`` means private.
        user: The person behind the agent, when known.
        projects: The projects whose sessions the agent may see; None means every project.
        scopes: What the agent may do; see `scopes`. By default it may do everything.
        key_id: The id of its API key, or the name of its token or link.
        address: The address of its connection; for the audit log only.
        seen_by: The agent that impersonates this one; its reads change no counts. None without impersonation.

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
        """Whether a key or a token proves its identity.

        The folder's owner and local programs have no key or token.
        """
        return self.key_id is not None and not self.key_id.startswith(LINK)

    @property
    def identity(self) -> Principal:
        """The fields that decide about ownership, without key, address and impersonation."""
        return msgspec.structs.replace(self, key_id=None, address=None, seen_by=None)

    @property
    def sight(self) -> Principal:
        """The identity, and whether it is authenticated; principals with equal values see the same data."""
        key_id = _SOME_KEY if self.is_authenticated else None
        return msgspec.structs.replace(self, key_id=key_id, address=None, seen_by=None)


def check_principal(value: object) -> Principal:
    """Check that a program passes a principal, and return it."""
    if isinstance(value, Principal):
        return value
    example = f"Principal(agent_id={value!r})" if isinstance(value, str) else 'Principal(agent_id="...")'
    raise TypeError(f"the principal is {value!r}, but must be a Principal; give {example}")
