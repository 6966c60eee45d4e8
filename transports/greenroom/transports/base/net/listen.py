"""Listening sockets: addresses, certificates, descriptors."""

from __future__ import annotations

import resource
import socket
import ssl
from contextlib import suppress
from pathlib import Path

import trio

from greenroom.runtime import GreenroomError
from greenroom.transports.base.errors import FileAccessError
from greenroom.transports.base.net.addresses import HostPort, is_loopback

SPARE_DESCRIPTORS = 256
BACKLOG = 1024

Listener = trio.SocketListener | trio.SSLListener[trio.SocketStream]


class ListenError(GreenroomError):
    """The server cannot listen as configured; the message says why."""


def tls_context(certificate: Path, key: Path) -> ssl.SSLContext:
    """Return the server's TLS context for a PEM certificate (with chain) and key.

    Raises:
        FileAccessError: The certificate or the key cannot be read.
        ListenError: The certificate and the key do not belong together.
    """
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    for file in (certificate, key):
        try:
            file.open("rb").close()
        except OSError as error:
            raise FileAccessError(f"{file} cannot be read: {error.strerror}") from None
    try:
        context.load_cert_chain(certificate, key, password=lambda: "")  # it must not ask on a terminal
    except (ssl.SSLError, OSError) as error:
        reason = getattr(error, "reason", None) or error.strerror or "unknown"
        sentence = f"{certificate} and {key} are no certificate and key in PEM form that belong together"
        raise ListenError(f"{sentence} ({str(reason).lower().replace('_', ' ')})") from None
    return context


async def listen(address: HostPort, tls: ssl.SSLContext | None) -> list[Listener]:
    """Listen on an address, and return its sockets.

    Raises:
        ListenError: The address is taken, or a loopback name resolves to another machine's address.
    """
    try:
        for *_, where in await trio.socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM):
            if address.is_loopback and not is_loopback(str(where[0])):
                raise ListenError(f"{address.host} means {where[0]} here, which other machines can reach")
        sockets = await trio.open_tcp_listeners(address.port, host=address.host, backlog=BACKLOG)
    except OSError as error:
        raise ListenError(f"cannot listen on {address}: {error.strerror or error}") from None
    if tls is None:
        return list(sockets)
    return [trio.SSLListener(each, tls, https_compatible=True) for each in sockets]


def url_of(listener: Listener, scheme: str, path: str) -> str:
    """Return the URL of a listener; with TLS its scheme gets an ``s``."""
    plain = listener
    if isinstance(plain, trio.SSLListener):
        scheme += "s"
        assert isinstance(plain.transport_listener, trio.SocketListener), "it was made by `listen`"
        plain = plain.transport_listener
    host, port = plain.socket.getsockname()[:2]
    return f"{scheme}://{HostPort(host, port)}{path}"


def peer_of(stream: trio.abc.Stream) -> str | None:
    """Return the address of the other end of a connection; None if it has none."""
    plain = stream.transport_stream if isinstance(stream, trio.SSLStream) else stream
    if not isinstance(plain, trio.SocketStream):
        return None
    try:
        return str(plain.socket.getpeername()[0])
    except OSError:  # disconnected
        return None


def allow_descriptors(connections: int) -> None:
    """Raise this process's limit of open files, as far as allowed, for that many connections."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections + SPARE_DESCRIPTORS
    if soft != resource.RLIM_INFINITY and soft < wanted:
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
