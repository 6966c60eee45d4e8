"""`greenroom console`: a browser logged in at the console, by a link that works once.

The link stands in a file that only this user reads, and the browser is given the address of that file: what
stands in the arguments of programs every user of the machine can read.

Where the folder's owner serves HTTP, the link leads there. Else this process shares the folder as any server
does, and serves HTTP on a free loopback port as long as a browser is logged in. In a terminal it prints codes
by which that browser confirms what it may not do alone, and stays for that.
"""

from __future__ import annotations

import argparse
import json
import secrets
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import trio

from greenroom.transports.base import exit_codes
from greenroom.transports.base.config.load import Resolved
from greenroom.transports.base.config.settings import Settings
from greenroom.transports.base.net.addresses import HostPort
from greenroom.transports.ops.cli.output import complain, remark, say
from greenroom.transports.ops.cli.support.browsers import Browser
from greenroom.transports.ops.cli.support.code_printer import (
    NewCode,
    explain_codes,
    has_terminal,
    print_at_enter,
    print_at_enter_while_serving,
    print_code,
)
from greenroom.transports.ops.control.client import Code, ControlSocketError, Link, NoOwnerError, call

if TYPE_CHECKING:
    from greenroom.transports.ops.control.server import Linker
    from greenroom.transports.web.rest.browser_sessions import BrowserSessions

_PATIENCE: Final = 10.0  # seconds for the owner to answer
_LAST_PAGE: Final = 2.0  # seconds in which who has logged out still gets the page that says so


def console(chosen: argparse.Namespace, resolved: Resolved) -> int:
    """Open a browser that is logged in, or print the link; return the exit code."""
    browser = None if chosen.print_only else _found()
    terminal = secrets.token_urlsafe() if has_terminal() else None
    made = None
    with suppress(ControlSocketError, NoOwnerError):  # it shows nothing to browsers, or there is none
        link = Link(read_only=chosen.read_only, as_file=browser is not None, terminal=terminal)
        made = json.loads(call(resolved.settings.data, link, patience=_PATIENCE))
    if made is None:
        return _serve_it(chosen, resolved, browser, terminal)
    new_code = partial(_code_of_owner, resolved.settings.data, terminal or "")
    if terminal is not None:
        print_code(new_code())
        explain_codes()
    file = None if made["file"] is None else Path(made["file"])
    if browser is None or file is None or not _opened(browser, file):
        _print(made["url"], is_wanted=chosen.print_only)
    return exit_codes.OK if terminal is None else _stay(new_code)


def _stay(new_code: NewCode) -> int:
    """Print a code of the owner's at each Enter; return the exit code.

    It ends with Ctrl-C or the end of input.
    """
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


def _serve_it(
    chosen: argparse.Namespace, resolved: Resolved, browser: Browser | None, terminal: str | None
) -> int:
    """Serve the console until nobody looks at it any more."""
    from greenroom.transports.ops.cli.commands.serve import Purpose, serve_for
    from greenroom.transports.ops.cli.support.error_report import start_logging  # noqa: PLC0415 - likewise

    async def attend(link: Linker, sessions: BrowserSessions, stop: trio.Event) -> None:
        url = link(read_only=chosen.read_only, terminal=terminal)
        assert url is not None, "it is on a loopback address"

        def new_code() -> str:
            return sessions.new_code(terminal or "") or ""

        async with trio.open_nursery() as nursery:
            file = None if browser is None or sessions.files is None else sessions.files.write(url)
            given = None if terminal is None else new_code
            nursery.start_soon(_open, url, browser, file, given, chosen.print_only)
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


async def _open(
    url: str,
    browser: Browser | None,
    file: Path | None,
    new_code: NewCode | None,
    is_print_wanted: bool,  # noqa: FBT001 - a task's argument
) -> None:
    if new_code is not None:
        print_code(new_code())
        explain_codes()
    # Some browsers run in the terminal until they are closed.
    if (
        browser is None
        or file is None
        or not await trio.to_thread.run_sync(_opened, browser, file, abandon_on_cancel=True)
    ):
        _print(url, is_wanted=is_print_wanted)
    remark("greenroom console: open until you log out or look at nothing for half an hour; Ctrl-C ends it")
    if new_code is not None:
        await print_at_enter_while_serving(new_code)


def _found() -> Browser | None:
    """Return the browser; None where none can read a file of ours."""
    browser = Browser()
    return browser if browser.reads_files() else None


def _opened(browser: Browser, file: Path) -> bool:
    """Open a browser at the file of the link; return whether there surely is one."""
    if not browser.open_file(file):
        return False
    remark("greenroom console: if no browser shows it, `greenroom console --print` prints the address")
    return True


def _print(url: str, *, is_wanted: bool) -> None:
    if not is_wanted:
        remark("greenroom console: no browser here opens a file of yours, so open this address:")
    say(url)
    remark("greenroom console: the link works once, within a minute, in a browser that reaches the server")
