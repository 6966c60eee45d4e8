"""`greenroom console`: a browser logged in at a running server, by a link that works once."""

from __future__ import annotations

import argparse
import json
import webbrowser
from typing import Final

from greenroom.transports.base import exit_codes
from greenroom.transports.cli.output import complain, remark, say
from greenroom.transports.config.load import Resolved
from greenroom.transports.control.client import ControlSocketError, Link, NoOwnerError, call

_PATIENCE: Final = 10.0  # seconds for the owner to answer


def console(chosen: argparse.Namespace, resolved: Resolved) -> int:
    """Open a browser that is logged in, or print the link; return the exit code."""
    folder = resolved.settings.data
    try:
        found = call(folder, Link(read_only=chosen.read_only), patience=_PATIENCE)
    except ControlSocketError as error:
        return complain("console", str(error), error.code)
    except NoOwnerError:
        sentence = f"no server has {folder} open; `greenroom serve --http 127.0.0.1:8080` starts one"
        return complain("console", sentence, exit_codes.FAILED)
    url: str = json.loads(found)["url"]
    if chosen.print_only or not webbrowser.open(url):
        say(url)
        remark(
            "greenroom console: the link works once, within a minute, in a browser that reaches the server"
        )
    return exit_codes.OK
