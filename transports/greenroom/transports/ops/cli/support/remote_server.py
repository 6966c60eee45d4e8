"""What is known of servers on other machines: URL, certificate and key.

Each has a file. The files lie in the folder of secrets with mode 0600, because they hold keys.
"""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlsplit

import msgspec
import trio

from greenroom.actors.core.auth.key_format import mask_keys
from greenroom.runtime import GreenroomError
from greenroom.runtime.lmdb import files
from greenroom.transports.base.config.settings import Settings
from greenroom.transports.sockets.websocket.certificates import any_certificate, fingerprint_of, open_tls
from greenroom.transports.sockets.websocket.client import (
    CONNECT_TIME,
    CertificateChangedError,
    WebSocketRefusedError,
    websocket_client,
)

if TYPE_CHECKING:
    from mcp.client._transport import TransportStreams

_PORT: Final = 443
_OWN_PATHS: Final = frozenset({"", "/", "/mcp", "/mcp/"})
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9.-]")
_NO_KEY: Final = frozenset({HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN})


class RemoteServerError(GreenroomError):
    """A server of another machine cannot be used; the sentence says what to do."""


class Place(NamedTuple):
    """Where a server listens."""

    host: str
    port: int

    @property
    def url(self) -> str:
        """Its URL in the one form in which it is stored."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"https://{host}" + ("" if self.port == _PORT else f":{self.port}")

    def file(self, secrets: Path) -> Path:
        """Return the file that says how the server is reached."""
        return secrets / f"server-{_UNSAFE.sub('_', self.host)}-{self.port}.json"


class RemoteServer(msgspec.Struct, frozen=True, kw_only=True):
    """How a server is reached; its representation hides the key."""

    url: str
    fingerprint: str
    key: str = ""

    def __repr__(self) -> str:
        return f"<server {self.url}>"


def place_of(url: str) -> Place:
    """Return where the server of a URL listens."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port or _PORT
    except ValueError:
        parts, host, port = urlsplit(""), None, _PORT
    is_plain = parts.path in _OWN_PATHS and not (parts.query or parts.fragment or parts.username)
    if parts.scheme != "https" or not host or not is_plain:
        raise RemoteServerError(
            f"--url {mask_keys(url)[:200]!r} is no server's: give https://HOST:PORT, and no key in it"
        )
    return Place(host, port)


def load(place: Place, secrets: Path) -> RemoteServer | None:
    """Return what is known of a server; None if nothing is."""
    path = place.file(secrets)
    try:
        status, content = path.stat(), path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise RemoteServerError(f"{path} cannot be read: {error.strerror}") from None
    if status.st_mode & 0o077 or status.st_uid not in {os.geteuid(), 0}:
        raise RemoteServerError(
            f"{path} has a key and can be read or changed by others: chmod 600 {path}, and think of whether "
            "the key is still a secret"
        )
    with suppress(msgspec.DecodeError):
        return msgspec.json.decode(content, type=RemoteServer)
    raise RemoteServerError(f"{path} is damaged; remove it, and run `greenroom setup --url {place.url}`")


def save(place: Place, server: RemoteServer, secrets: Path) -> Path:
    """Store how a server is reached; return the file, which only this user can read."""
    path = place.file(secrets)
    part = path.with_suffix(".part")
    try:
        secrets.mkdir(files.FOLDER_MODE, parents=True, exist_ok=True)
        part.unlink(missing_ok=True)
        files.create_file(part, msgspec.json.format(msgspec.json.encode(server)) + b"\n")
        files.sync_file(part)
        part.replace(path)
        files.sync_folder(secrets)
    except OSError as error:
        raise RemoteServerError(f"{path} cannot be written: {error.strerror}") from None
    return path


async def shown_fingerprint(place: Place) -> str:
    """Return the fingerprint of the certificate that a server shows now."""
    try:
        with trio.move_on_after(CONNECT_TIME):
            async with await open_tls(place.host, place.port, any_certificate()) as stream:
                return fingerprint_of(stream)
    except OSError as error:
        raise explained(place.url, error) from None
    raise explained(place.url, TimeoutError(f"no answer within {CONNECT_TIME:g} s"))


@asynccontextmanager
async def connect(
    place: Place, server: RemoteServer, settings: Settings, *, reconnect: bool = True
) -> AsyncIterator[TransportStreams]:
    """Connect to a server, as `websocket_client` does.

    Raises:
        RemoteServerError: It was not reached, or refuses.
    """
    if not (server.key.isascii() and server.key.isprintable()):
        raise RemoteServerError(
            f"the API key of {place.url} has a character that no key has; copy it again, and give it to "
            f"`greenroom setup --url {place.url}`"
        )
    headers = {"Authorization": f"Bearer {server.key}"} if server.key else {}
    trouble: OSError | WebSocketRefusedError | None = None
    try:
        async with websocket_client(
            f"{place.url.replace('https:', 'wss:', 1)}/mcp",
            agent=settings.agent,
            agent_type=settings.agent_type,
            projects=settings.project,
            headers=headers,
            fingerprint=server.fingerprint,
            reconnect=reconnect,
        ) as streams:
            yield streams
    except (OSError, WebSocketRefusedError) as error:
        trouble = error
    if trouble is not None:
        raise explained(place.url, trouble) from None


def explained(url: str, error: OSError | WebSocketRefusedError) -> RemoteServerError:
    """Return the error with what to do about it."""
    if isinstance(error, CertificateChangedError):
        return RemoteServerError(str(error))
    if isinstance(error, WebSocketRefusedError) and error.status in _NO_KEY:
        return RemoteServerError(
            f"{url} refused this client: {error}; make a key there with `greenroom keys create`, and give it "
            f"to `greenroom setup --url {url}` here"
        )
    if isinstance(error, WebSocketRefusedError):
        return RemoteServerError(f"{url} refused this client: {error}")
    return RemoteServerError(
        f"no server is reached at {url} ({error.strerror or error}); start it there, with --http HOST:PORT, "
        "--tls-cert and --tls-key"
    )
