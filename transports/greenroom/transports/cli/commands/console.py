"""`greenroom console`: a browser logged in at the console, by a link that works once.

Where the folder's owner serves HTTP, the link leads there. Else this process shares the folder as any server
does, and serves HTTP on a free loopback port until nobody is logged in any more. In a terminal it prints
codes by which that browser confirms what it may not do alone, and stays for that.
"""

from __future__ import annotations

import argparse
import json
import secrets
import webbrowser
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

import trio

from greenroom.transports.base import exit_codes
from greenroom.transports.cli.output import complain, remark, say
from greenroom.transports.cli.support.code_printer import (
    NewCode,
    explain_codes,
    has_terminal,
    print_at_enter,
    print_at_enter_while_serving,
    print_code,
)
from greenroom.transports.config.load import Resolved
from greenroom.transports.config.settings import Settings
from greenroom.transports.control.client import Code, ControlSocketError, Link, NoOwnerError, call
from greenroom.transports.net.addresses import HostPort

if TYPE_CHECKING:
    from pathlib import Path

    from greenroom.transports.control.server import Linker
    from greenroom.transports.rest.browser_sessions import BrowserSessions

_PATIENCE: Final = 10.0  # seconds for the owner to answer
_LAST_PAGE: Final = 2.0  # seconds in which who has logged out still gets the page that says so


def console(chosen: argparse.Namespace, resolved: Resolved) -> int:
    """Open a browser that is logged in, or print the link; return the exit code."""
    terminal = secrets.token_urlsafe() if has_terminal() else None
    url = None
    with suppress(ControlSocketError, NoOwnerError):  # it shows nothing to browsers, or there is none
        link = Link(read_only=chosen.read_only, terminal=terminal)
        url = json.loads(call(resolved.settings.data, link, patience=_PATIENCE))["url"]
    if url is None:
        return _serve_it(chosen, resolved, terminal)
    new_code = partial(_code_of_owner, resolved.settings.data, terminal or "")
    if terminal is not None:
        print_code(new_code())
        explain_codes()
    _show(url, printed=chosen.print_only or not webbrowser.open(url))
    return exit_codes.OK if terminal is None else _stay(new_code)


def _stay(new_code: NewCode) -> int:
    """Print a code of the owner's at each Enter, until Ctrl-C or the end of input; return the exit code."""
    try:
        remark("greenroom console: Ctrl-C ends this command; the browser stays logged in")
        print_at_enter(new_code)
    except KeyboardInterrupt:
        pass
    except NoOwnerError:
        return complain("console", "the server that showed the console has ended", exit_codes.FAILED)
    except ControlSocketError as error:
        return complain("console", str(error), error.code)
    return exit_codes.OK


def _code_of_owner(folder: Path, terminal: str) -> str:
    code: str = json.loads(call(folder, Code(terminal=terminal), patience=_PATIENCE))["code"]
    return code


def _serve_it(chosen: argparse.Namespace, resolved: Resolved, terminal: str | None) -> int:
    """Serve the console until nobody looks at it any more."""
    from greenroom.transports.cli.commands.serve import (  # noqa: PLC0415 - 0.3 s, for who needs it
        Purpose,
        serve_for,
    )
    from greenroom.transports.cli.support.error_report import start_logging  # noqa: PLC0415 - likewise

    async def attend(link: Linker, sessions: BrowserSessions, stop: trio.Event) -> None:
        url = link(read_only=chosen.read_only, terminal=terminal)
        assert url is not None, "it is on a loopback address"

        def new_code() -> str:
            return sessions.new_code(terminal or "") or ""

        async with trio.open_nursery() as nursery:
            nursery.start_soon(_open, url, chosen.print_only, None if terminal is None else new_code)
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


async def _open(url: str, printed: bool, new_code: NewCode | None) -> None:  # noqa: FBT001 (a task's argument)
    if new_code is not None:
        print_code(new_code())
        explain_codes()
    # Some browsers run in the terminal until they are closed.
    shown = not printed and await trio.to_thread.run_sync(webbrowser.open, url, abandon_on_cancel=True)
    _show(url, printed=not shown)
    remark("greenroom console: open until you log out or look at nothing for half an hour; Ctrl-C ends it")
    if new_code is not None:
        await print_at_enter_while_serving(new_code)


def _show(url: str, *, printed: bool) -> None:
    if printed:
        say(url)
        remark(
            "greenroom console: the link works once, within a minute, in a browser that reaches the server"
        )
