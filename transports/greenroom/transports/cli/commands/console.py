"""`greenroom console`: a browser logged in at the console, by a link that works once.

Where the folder's owner serves HTTP, the link leads there. Else this process shares the folder as any server
does, and serves HTTP on a free loopback port until nobody is logged in any more.
"""

from __future__ import annotations

import argparse
import json
import webbrowser
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import trio

from greenroom.transports.base import exit_codes
from greenroom.transports.cli.output import remark, say
from greenroom.transports.config.load import Resolved
from greenroom.transports.config.settings import Settings
from greenroom.transports.control.client import ControlSocketError, Link, NoOwnerError, call
from greenroom.transports.net.addresses import HostPort

if TYPE_CHECKING:
    from greenroom.transports.control.server import Linker
    from greenroom.transports.rest.browser_sessions import BrowserSessions

_PATIENCE: Final = 10.0  # seconds for the owner to answer
_LAST_PAGE: Final = 2.0  # seconds in which who has logged out still gets the page that says so


def console(chosen: argparse.Namespace, resolved: Resolved) -> int:
    """Open a browser that is logged in, or print the link; return the exit code."""
    with suppress(ControlSocketError, NoOwnerError):  # it shows nothing to browsers, or there is none
        found = call(resolved.settings.data, Link(read_only=chosen.read_only), patience=_PATIENCE)
        url: str = json.loads(found)["url"]
        _show(url, printed=chosen.print_only or not webbrowser.open(url))
        return exit_codes.OK
    return _serve_it(chosen, resolved)


def _serve_it(chosen: argparse.Namespace, resolved: Resolved) -> int:
    """Serve the console until nobody looks at it any more."""
    from greenroom.transports.cli.commands.serve import (  # noqa: PLC0415 - 0.3 s, for who needs it
        Purpose,
        serve_for,
    )
    from greenroom.transports.cli.support.error_report import start_logging  # noqa: PLC0415 - likewise

    async def attend(link: Linker, sessions: BrowserSessions, stop: trio.Event) -> None:
        url = link(read_only=chosen.read_only)
        assert url is not None, "it is on a loopback address"
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_open, url, chosen.print_only)
            await sessions.wait_until_unused()
            remark("greenroom console: nobody is logged in any more")
            await trio.sleep(_LAST_PAGE)
            stop.set()
            nursery.cancel_scope.cancel()

    start_logging(resolved.settings.log_level)
    here = replace(resolved, settings=_on_loopback(resolved.settings))
    return serve_for(Purpose("console", "own", attend), here)


def _on_loopback(settings: Settings) -> Settings:
    """Return the settings of a server for one browser: on a free port, to others open by a key alone."""
    return replace(
        settings,
        http=HostPort("127.0.0.1", 0),
        ws=None,
        stdio=False,
        tls_cert=None,
        tls_key=None,
        base_url=None,
        behind_proxy=False,
        allow_origin=(),
        oauth_issuer=None,
        oauth_resource=None,
        require_key=True,
    )


async def _open(url: str, printed: bool) -> None:  # noqa: FBT001 (a task's argument)
    # Some browsers run in the terminal until they are closed.
    shown = not printed and await trio.to_thread.run_sync(webbrowser.open, url, abandon_on_cancel=True)
    _show(url, printed=not shown)
    remark("greenroom console: open until you log out or look at nothing for half an hour; Ctrl-C ends it")


def _show(url: str, *, printed: bool) -> None:
    if printed:
        say(url)
        remark(
            "greenroom console: the link works once, within a minute, in a browser that reaches the server"
        )
