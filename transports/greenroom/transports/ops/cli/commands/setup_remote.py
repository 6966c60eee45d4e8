"""`greenroom setup --url`: gets to know the server of another machine, by certificate and key."""

from __future__ import annotations

import argparse
import os
import sys
from functools import partial

import msgspec
import trio

from greenroom.transports.base.config.load import Resolved
from greenroom.transports.base.config.settings import API_KEY_VARIABLE, Settings
from greenroom.transports.clients.setup.change import SetupError
from greenroom.transports.ops.cli.output import remark, say
from greenroom.transports.ops.cli.support.passphrase import ask_secret
from greenroom.transports.ops.cli.support.remote_server import (
    Place,
    RemoteServer,
    RemoteServerError,
    connect,
    load,
    place_of,
    save,
    shown_fingerprint,
)
from greenroom.transports.ops.cli.support.startup_notice import program
from greenroom.transports.ops.cli.support.terminal import printable


def bridge_command(url: str, resolved: Resolved) -> tuple[str, list[str]]:
    """Return the command that a client starts to reach the server of another machine."""
    command, before = program()
    arguments = [*before, "bridge", place_of(url).url]
    if resolved.sources["secrets"].kind != "default":
        arguments += ["--secrets", str(resolved.settings.secrets.absolute())]
    return command, arguments


async def learn_server(chosen: argparse.Namespace, settings: Settings) -> None:
    """Show the server's certificate once, ask for the key, try both, and store them.

    Raises:
        GreenroomError: The server was not reached, refuses the key, or the user does.
    """
    place = place_of(chosen.url)
    known, fingerprint = load(place, settings.secrets), await shown_fingerprint(place)
    is_known = known is not None and known.fingerprint == fingerprint
    if not is_known:
        say(f"{place.url} shows a certificate with this SHA-256; there `openssl x509 -in")
        say(f"CERTIFICATE -noout -fingerprint -sha256` prints it:\n  {fingerprint}")
        if known is not None:
            say(f"until now it had another one:\n  {known.fingerprint}")
    if chosen.only_print:
        return
    if not is_known:
        await _agree(place, chosen, is_change=known is not None)
    given = os.environ.get(API_KEY_VARIABLE, "").strip()
    kept = None if known is None or given else msgspec.structs.replace(known, fingerprint=fingerprint)
    if kept is None or not await _is_admitted(place, kept, settings):
        key = given or await _asked_key(place)
        kept = RemoteServer(url=place.url, fingerprint=fingerprint, key=key)
        async with connect(place, kept, settings, reconnect=False):
            pass
    if kept != known:
        path = save(place, kept, settings.secrets)
        say(f"{printable(str(path))} has the certificate's SHA-256 and the key, for you alone")


async def _agree(place: Place, chosen: argparse.Namespace, *, is_change: bool) -> None:
    """Ask whether the certificate is the right one; `--yes` answers for the first one only."""
    if chosen.yes and not is_change:
        return
    if sys.stdin is None or not sys.stdin.isatty():
        how = f"look at it on a terminal: greenroom setup --url {place.url}"
        raise SetupError(
            f"the certificate is another than before, and nothing was stored; {how}"
            if is_change
            else f"nothing was stored, because this may not be its certificate; {how}, or give --yes"
        )
    remark(f"greenroom setup: {place.url}: is this its certificate? [y/N]")
    typed: str = await trio.to_thread.run_sync(sys.stdin.readline)
    if typed.strip().lower() not in {"y", "yes"}:
        raise SetupError("nothing was stored")


async def _is_admitted(place: Place, server: RemoteServer, settings: Settings) -> bool:
    try:
        async with connect(place, server, settings, reconnect=False):
            return True
    except RemoteServerError as error:
        remark(f"greenroom setup: {printable(str(error))}")
        return False


async def _asked_key(place: Place) -> str:
    if API_KEY_VARIABLE in os.environ:
        return ""  # it is empty, for a server that takes no key
    prompt = f"API key of {place.url} (empty if it takes none): "
    asked = partial(ask_secret, prompt, API_KEY_VARIABLE, "the API key")
    return (await trio.to_thread.run_sync(asked)).strip()
