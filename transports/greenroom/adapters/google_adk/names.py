"""Greenroom's names for the kit's programs, users, sessions and events."""

from __future__ import annotations

import json
import re
from hashlib import blake2b

from greenroom.actors.core.auth.namespaces import USER, segment

_DIGEST_BYTES = 20
_FOREIGN = re.compile(r"[^A-Za-z0-9_.-]")
_LONGEST_AGENT = 100


def session_name(app_name: str, user_id: str, session_id: str) -> str:
    """Return the unique id of the Greenroom session for a session of the kit."""
    return f"adk-{_digest(app_name, user_id, session_id)}"


def user_state_name(app_name: str, user_id: str) -> str:
    """Return the id of the session with a user's shared state."""
    return f"adk-user-{_digest(app_name, user_id)}"


def app_state_name(app_name: str) -> str:
    """Return the id of the session with a program's shared state."""
    return f"adk-app-{_digest(app_name)}"


def project_of_app(app_name: str) -> str:
    """Return the project of a program's shared state."""
    return f"app:{segment(app_name)}"


def memory_namespace(app_name: str, user_id: str) -> str:
    """Return the namespace of a user's memories of a program, private to the user."""
    return f"{USER}{segment(user_id)}:adk:{segment(app_name)}"


def actor_of(author: str) -> str:
    """Return the actor of an event's author: ``user``, ``system`` or ``agent:<id>``."""
    if author == "user":
        return author
    return f"agent:{_FOREIGN.sub('_', author)[:_LONGEST_AGENT]}" if author else "system"


def _digest(*names: str) -> str:
    return blake2b(json.dumps(names).encode(), digest_size=_DIGEST_BYTES).hexdigest()
