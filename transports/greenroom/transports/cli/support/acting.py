"""In whose name a command works: the holder of the key in the environment, else who the settings name."""

from __future__ import annotations

import os
from dataclasses import replace

from greenroom.actors import Principal
from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.core.auth.scopes import allows
from greenroom.runtime import RuntimeClient
from greenroom.transports.auth.caller import NAMELESS_AGENT
from greenroom.transports.base.config.settings import Settings
from greenroom.transports.base.observability.access import AccessMeter
from greenroom.transports.ops.cli.support.authentication import open_authentication


async def acting_principal(
    runtime: RuntimeClient, settings: Settings, what: str, scope: str, *, agent: str = NAMELESS_AGENT
) -> Principal:
    """Return who a command works for.

    Args:
        runtime: The opened store, which has the keys.
        settings: The command's.
        what: The command, as a refusal calls it.
        scope: What a key must allow.
        agent: The agent's name where neither key nor settings have one.

    Raises:
        AuthenticationError: the key in the environment opens nothing, or not as the settings say.
        Refusal: ``PERMISSION_DENIED``: it does not allow that.
    """
    local = replace(settings, ws=None, http=None)
    async with open_authentication(local, runtime, os.environ, on_stdio=True, access=AccessMeter()) as found:
        principal = found.principal(agent, found.on_stdio)
    if not allows(principal.scopes, scope):
        raise auth_errors.scope_missing(what, scope)
    return principal
