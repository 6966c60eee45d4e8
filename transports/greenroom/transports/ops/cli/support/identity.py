"""The principal of a command without keys. This imports little, since hooks need it."""

from __future__ import annotations

from greenroom.actors.core.auth.principal import Principal
from greenroom.transports.auth.caller import NAMELESS_AGENT
from greenroom.transports.base.config.settings import Settings


def principal_of(settings: Settings) -> Principal:
    """Return the principal in the settings."""
    return Principal(
        agent_id=settings.agent or NAMELESS_AGENT,
        agent_type=settings.agent_type,
        user=settings.user,
        projects=frozenset(settings.project) or None,
    )
