"""The namespace and principal for a user, an agent or a run."""

from __future__ import annotations

import re
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any, NamedTuple

from greenroom.actors import Principal, owner_of, user_namespace

OWN_AGENT = "mem0"
"""The agent that owns memories with a run, but without a user or agent."""
SUB = ":mem0"
MOST_RUN_ID = 255
_AGENT = re.compile(r"(?!mem0\.)[A-Za-z0-9_.-]{1,100}")


class Scope(NamedTuple):
    """A namespace and its owner."""

    namespace: str
    principal: Principal


def scope_of(identities: Mapping[str, Any]) -> Scope:
    """Return the scope for ids: the user's, else the agent's, else all runs' common scope."""
    user, agent, run = (identities.get(name) for name in ("user_id", "agent_id", "run_id"))
    if run is not None and len(run) > MOST_RUN_ID:
        raise ValueError(f"Invalid run_id: it has {len(run)} characters, and may have {MOST_RUN_ID}.")
    if agent is not None and _AGENT.fullmatch(agent) is None:  # different names have different ids
        agent = f"mem0.{blake2b(agent.encode(), digest_size=16).hexdigest()}"
    principal = Principal(agent_id=agent or OWN_AGENT, user=user)
    namespace = user_namespace(principal) + SUB
    if user is not None and owner_of(namespace, principal).user != user:
        raise ValueError(
            f"Invalid user_id: {user[:40]!r}… is too long: it may have 100 characters, "
            "where each but A-Z, a-z, 0-9 and _ . @ + - counts as three for each of its bytes in UTF-8."
        )
    return Scope(namespace, principal)


def scope_at(root: str) -> Scope:
    """Return the scope of memories below a root, for look-ups by id alone."""
    return Scope(root + SUB, owner_of(root, Principal(agent_id=OWN_AGENT)))
