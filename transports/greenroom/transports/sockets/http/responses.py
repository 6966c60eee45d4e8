"""Complete HTTP responses: a status, headers and a body."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any, Final, NamedTuple

from greenroom.transports.base.errors import HttpRefusedError
from greenroom.transports.mcp.frames.frames import INTERNAL_ERROR, INVALID_REQUEST, NO_ID, error_line

Header = tuple[bytes, bytes]

JSON: Final = (b"content-type", b"application/json")
TEXT: Final = (b"content-type", b"text/plain; charset=utf-8")
EVENTS: Final[tuple[Header, ...]] = (
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),  # or nginx would buffer the events
)
CLOSE: Final = (b"connection", b"close")


class Response(NamedTuple):
    """A complete response. The length of its body is added when it is sent."""

    status: int
    headers: Sequence[Header]
    body: bytes


class RpcRefusedError(HttpRefusedError):
    """A request rejected with an HTTP status and a JSON-RPC error as the body."""

    def __init__(self, status: HTTPStatus, code: int, sentence: str, **headers: str) -> None:
        super().__init__(status, sentence, **headers)
        self.code = code


@contextmanager
def rpc_refusals() -> Iterator[None]:
    """Convert refusals in the block to JSON-RPC errors: MCP clients show no other bodies.

    This is for refusals that the SDK's server does not have; other refusals have that server's words.
    """
    try:
        yield
    except HttpRefusedError as error:
        is_ours = error.status >= HTTPStatus.INTERNAL_SERVER_ERROR
        code = INTERNAL_ERROR if is_ours else INVALID_REQUEST
        raise RpcRefusedError(error.status, code, str(error), **error.headers) from None


def response_to(error: HttpRefusedError) -> Response:
    """Return the response for an error."""
    headers = [(name.encode(), value.encode("latin-1", "replace")) for name, value in error.headers.items()]
    if isinstance(error, RpcRefusedError):
        return Response(error.status, [JSON, *headers], rpc_error(error.code, str(error)))
    return Response(error.status, [TEXT, *headers], f"{error}\n".encode())


def rpc_error(code: int, sentence: str, *, id: bytes = NO_ID, data: Any = None) -> bytes:
    """Return a JSON-RPC error as a body."""
    return error_line(id, code, sentence, data)[:-1]
