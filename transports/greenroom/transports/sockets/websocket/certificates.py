"""TLS to a server that is known by its certificate alone."""

from __future__ import annotations

import hashlib
import ssl

import trio

TlsStream = trio.SSLStream[trio.SocketStream]


def any_certificate() -> ssl.SSLContext:
    """Return a context that takes every certificate, whose fingerprint must then be compared."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


async def open_tls(host: str, port: int, context: ssl.SSLContext) -> TlsStream:
    """Connect, and agree on TLS.

    Raises:
        OSError: No server was reached, or it speaks no TLS that the context trusts.
    """
    stream = await trio.open_ssl_over_tcp_stream(host, port, ssl_context=context, https_compatible=True)
    try:
        await stream.do_handshake()
    except BaseException as error:
        await trio.aclose_forcefully(stream)
        if isinstance(error, trio.BrokenResourceError):
            reason = error.__cause__ or "it hung up"
            raise ConnectionError(f"{host}:{port} speaks no TLS that is trusted: {reason}") from None
        raise
    return stream


def fingerprint_of(stream: TlsStream) -> str:
    """Return the SHA-256 of the server's certificate, as `openssl x509 -fingerprint` prints it."""
    certificate = stream.getpeercert(binary_form=True) or b""
    return hashlib.sha256(certificate).digest().hex(":").upper()
