"""`greenroom console`: opens a browser, logged in to the console by a one-time link.

The link is in a file that only this user can read, and the browser gets the path of the file: all users of
the machine can read the arguments of programs.

If the folder's owner serves HTTP, the link leads to the owner. Otherwise this process attaches to the folder
or owns it, and serves HTTP on a free loopback port while a browser is logged in. In a terminal, the process
continues to run and prints codes, which confirm sensitive actions of that browser.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import trio

from greenroom.transports.base import exit_codes
from greenroom.transports.base.config.load import Resolved
from greenroom.transports.base.config.settings import Settings
from greenroom.transports.base.net.addresses import HostPort
from greenroom.transports.ops.cli.output import complain, remark, say
from greenroom.transports.ops.cli.support.browsers import Browser
from greenroom.transports.ops.cli.support.terminal import is_ours
from greenroom.transports.ops.control.client import Code, ControlSocketError, Link, NoOwnerError, call

if TYPE_CHECKING:
    from greenroom.transports.ops.control.server import Linker
    from greenroom.transports.web.rest.browser_sessions import BrowserSessions

_PATIENCE: Final = 10.0  # seconds for the owner to answer
_LAST_PAGE: Final = 2.0  # seconds for a browser to load the page after its log-out
_LINE: Final = 4_096
_BACKGROUND: Final = 1.0  # a background process checks at this interval whether it is in front again
_ABOUT_CODES: Final = (
    "greenroom console: type the code in the browser to make a key, export, or read as another agent; it "
    "works once, within ten minutes, and Enter prints a new one"
)
NewCode = Callable[[], str]


def console(chosen: argparse.Namespace, resolved: Resolved) -> int:
    """Open a logged-in browser, or print the link; return the exit code."""
    found = Browser()
    browser = None if chosen.print_only or not found.reads_files() else found
    terminal = secrets.token_urlsafe() if _has_terminal() else None
    made = None
    with suppress(ControlSocketError, NoOwnerError):  # no owner, or the owner does not serve browsers
        link = Link(read_only=chosen.read_only, as_file=browser is not None, terminal=terminal)
        made = json.loads(call(resolved.settings.data, link, patience=_PATIENCE))
    if made is None:
        return _serve_it(chosen, resolved, browser, terminal)

    def new_code() -> str:
        request = Code(terminal=terminal or "")
        return str(json.loads(call(resolved.settings.data, request, patience=_PATIENCE))["code"])

    if terminal is not None:
        _print_code(new_code())
        remark(_ABOUT_CODES)
    file = None if made["file"] is None else Path(made["file"])
    if browser is None or file is None or not _open_browser(browser, file):
        _print(made["url"], is_wanted=chosen.print_only)
    return exit_codes.OK if terminal is None else _stay(new_code)


def _stay(new_code: NewCode) -> int:
    """Print a new code from the owner at each Enter; return the exit code.

    This ends with Ctrl-C or at the end of input.
    """
    try:
        remark("greenroom console: Ctrl-C ends this command; the browser stays logged in")
        while _has_line(sys.stdin.fileno()):
            _print_code(new_code())
    except KeyboardInterrupt:
        pass
    except NoOwnerError:
        return complain("console", "the server that showed the console has ended", exit_codes.FAILED)
    except ControlSocketError as error:
        return complain("console", str(error), error.code)
    return exit_codes.OK


def _serve_it(
    chosen: argparse.Namespace, resolved: Resolved, browser: Browser | None, terminal: str | None
) -> int:
    """Serve the console until no browser is logged in."""
    from greenroom.transports.ops.cli.commands.serve import Purpose, serve_for  # noqa: PLC0415 - takes 0.3 s
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
            remark("greenroom console: no browser is logged in any more")
            await trio.sleep(_LAST_PAGE)
            stop.set()
            nursery.cancel_scope.cancel()

    start_logging(resolved.settings.log_level)
    here = replace(resolved, settings=_on_loopback(resolved.settings))
    return serve_for(Purpose("console", "own", attend), here)


def _on_loopback(settings: Settings) -> Settings:
    """Return settings that serve one browser: on a free loopback port that requires a key."""
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
        _print_code(new_code())
        remark(_ABOUT_CODES)
    # Some browsers run in the terminal until they are closed.
    if (
        browser is None
        or file is None
        or not await trio.to_thread.run_sync(_open_browser, browser, file, abandon_on_cancel=True)
    ):
        _print(url, is_wanted=is_print_wanted)
    remark("greenroom console: it ends at log-out, after half an hour without use, or with Ctrl-C")
    if new_code is not None:
        await _print_at_enter_while_serving(new_code)


def _open_browser(browser: Browser, file: Path) -> bool:
    """Open a browser at the link's file; return whether a browser certainly opened."""
    if not browser.open_file(file):
        return False
    remark("greenroom console: if no browser shows it, `greenroom console --print` prints the address")
    return True


def _print(url: str, *, is_wanted: bool) -> None:
    if not is_wanted:
        remark("greenroom console: no browser here can open a file of yours, so open this address:")
    say(url)
    remark("greenroom console: the link works once, within a minute, in any browser that reaches the server")


def _has_terminal() -> bool:
    """Return whether input and output are a terminal that this process may read from."""
    streams = sys.stdin, sys.stdout
    return all(stream is not None and stream.isatty() for stream in streams) and is_ours(sys.stdin.fileno())


def _print_code(code: str) -> None:
    """Print a code to standard output, where the link goes, and not to a log."""
    say(f"Code: {code}")


async def _print_at_enter_while_serving(new_code: NewCode) -> None:
    """Print a code at each Enter, in a process that serves at the same time."""
    descriptor = sys.stdin.fileno()
    while True:
        await trio.lowlevel.wait_readable(descriptor)
        if not is_ours(descriptor):  # reading in the background would stop this process
            await trio.sleep(_BACKGROUND)
        elif _has_line(descriptor):
            _print_code(new_code())
        else:
            return


def _has_line(descriptor: int) -> bool:
    """Read a line; return whether there was a line."""
    try:
        return bool(os.read(descriptor, _LINE))
    except OSError:  # the terminal was closed
        return False
