"""How a client starts its server, as `greenroom setup` writes it."""

from __future__ import annotations

from greenroom.transports.cli.support.startup_notice import program
from greenroom.transports.config.load import Resolved


def started(name: str, resolved: Resolved) -> tuple[str, list[str]]:
    """Return the program and its arguments; folder and user are named where they are not the default.

    Args:
        name: The client, as `greenroom setup` calls it; its agent is called so, too.
        resolved: The settings in force.
    """
    command, before = program()
    arguments = [*before, "serve", "--agent", name.removesuffix("-project")]
    if resolved.sources["data"].kind != "default":
        arguments += ["--data", str(resolved.settings.data.absolute())]
    if resolved.sources["user"].kind != "default":
        arguments += ["--user", resolved.settings.user]
    return command, arguments
