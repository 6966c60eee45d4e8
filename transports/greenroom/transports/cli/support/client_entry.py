"""How a client starts its server and its hooks, as `greenroom setup` writes it."""

from __future__ import annotations

from greenroom.transports.base.config.load import Resolved
from greenroom.transports.ops.cli.support.startup_notice import program


def started(name: str, resolved: Resolved) -> tuple[str, list[str]]:
    """Return the program and its arguments; folder and user are named where they are not the default.

    Args:
        name: The client, as `greenroom setup` calls it; its agent is called so, too.
        resolved: The settings in force.
    """
    command, before = program()
    return command, [*before, "serve", "--agent", name.removesuffix("-project"), *whose(resolved)]


def whose(resolved: Resolved) -> list[str]:
    """Return the options that name folder and user, where they are not the default."""
    options = []
    if resolved.sources["data"].kind != "default":
        options += ["--data", str(resolved.settings.data.absolute())]
    if resolved.sources["user"].kind != "default":
        options += ["--user", resolved.settings.user]
    return options
