"""`greenroom console`: a browser logged in at the console, by a link that works once.

The link stands in a file that only this user reads, and the browser is given the address of that file: what
stands in the arguments of programs every user of the machine can read.

Where the folder's owner serves HTTP, the link leads there. Else this process shares the folder as any server
does, and serves HTTP on a free loopback port until nobody is logged in any more.
"""

from __future__ import annotations

import argparse
import json
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import trio

from greenroom.transports.base import exit_codes
from greenroom.transports.cli.output import remark, say
from greenroom.transports.cli.support.browsers import Browser
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
    browser = None if chosen.print_only else _found()
    with suppress(ControlSocketError, NoOwnerError):  # it shows nothing to browsers, or there is none
        request = Link(read_only=chosen.read_only, as_file=browser is not None)
        made = json.loads(call(resolved.settings.data, request, patience=_PATIENCE))
        file = None if made["file"] is None else Path(made["file"])
        if browser is None or file is None or not _opened(browser, file):
            _print(made["url"])
        return exit_codes.OK
    return _serve_it(chosen, resolved, browser)


def _serve_it(chosen: argparse.Namespace, resolved: Resolved, browser: Browser | None) -> int:
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
            file = None if browser is None or sessions.files is None else sessions.files.write(url)
            nursery.start_soon(_open, url, browser, file)
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


async def _open(url: str, browser: Browser | None, file: Path | None) -> None:
    # Some browsers run in the terminal until they are closed.
    if (
        browser is None
        or file is None
        or not await trio.to_thread.run_sync(_opened, browser, file, abandon_on_cancel=True)
    ):
        _print(url)
    remark("greenroom console: open until you log out or look at nothing for half an hour; Ctrl-C ends it")


def _found() -> Browser | None:
    """Return the browser; None, and say so, where none can read a file of ours."""
    browser = Browser()
    if browser.reads_files():
        return browser
    remark("greenroom console: there is no browser here that can read a file of yours, so open this address")
    return None


def _opened(browser: Browser, file: Path) -> bool:
    """Open a browser at the file that leads to the link; return whether there surely is one now."""
    if not browser.open_file(file):
        return False
    remark("greenroom console: if no browser shows it, `greenroom console --print` prints the address")
    return True


def _print(url: str) -> None:
    say(url)
    remark("greenroom console: the link works once, within a minute, in a browser that reaches the server")
