"""The URIs of resources, which are also the topics under which their changes are published."""

from __future__ import annotations

import re
from typing import NamedTuple

from greenroom.actors.auth import errors as auth_errors
from greenroom.runtime import Address

SESSION_TEMPLATE = "session://{session_id}"
MEMORY_TEMPLATE = "agent://{agent_id}/memory"

_SESSION = re.compile(r"session://([A-Za-z0-9_.-]{1,128})")
_MEMORY = re.compile(r"agent://([A-Za-z0-9_.-]{1,100})/memory")
_EXPORT = re.compile(r"greenroom://export/([0-9a-f]{32})(?:/(?:[2-9]|[1-9][0-9]{1,3}))?")
_PASSPORT = re.compile(r"greenroom://passport/([0-9a-f]{32})")

_KINDS = ((_SESSION, "session"), (_MEMORY, "memory"), (_EXPORT, "export"), (_PASSPORT, "passport"))

SCHEMES = ("session", "agent", "greenroom")
"""What the URIs of resources begin with."""


class ResourceTemplate(NamedTuple):
    """A kind of resource, in words for those who list the templates; ``kind`` is that of its actors."""

    uri_template: str
    name: str
    title: str
    description: str
    kind: str


TEMPLATES: tuple[ResourceTemplate, ...] = (
    ResourceTemplate(
        SESSION_TEMPLATE,
        "session",
        "Shared session",
        "A session with its statistics and the newest 100 messages that you may see.",
        "session",
    ),
    ResourceTemplate(
        MEMORY_TEMPLATE,
        "agent_memory",
        "Your memory",
        "Your own memory entries by scope, without their values, newest 1,000; nobody else can read it.",
        "memory",
    ),
)
"""All kinds of resources."""


def session_uri(session_id: str) -> str:
    """Return the URI of a session."""
    return f"session://{session_id}"


def memory_uri(agent_id: str) -> str:
    """Return the URI of an agent's memory."""
    return f"agent://{agent_id}/memory"


def check_scheme(uri: str) -> None:
    """Check that a URI is of a kind that is served, whether or not there is such a resource.

    Raises:
        Refusal: ``VALIDATION_ERROR`` naming the schemes that are.
    """
    if not uri.startswith(tuple(f"{scheme}://" for scheme in SCHEMES)):
        raise auth_errors.invalid(
            "uri",
            f"uri: no resource begins like {uri[:200]!r}; there are {SESSION_TEMPLATE} and {MEMORY_TEMPLATE}",
            schemes=list(SCHEMES),
        )


def parse_uri(uri: str) -> Address | None:
    """Return the actor that a resource's URI names, or None when no resource can have such a URI."""
    for pattern, kind in _KINDS:
        if named := pattern.fullmatch(uri):
            return Address(kind, named[1])
    return None
