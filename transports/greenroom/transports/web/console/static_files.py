"""The built script and styles of the console, with the licences of all their parts."""

from __future__ import annotations

import gzip
from functools import cache
from hashlib import sha256
from http import HTTPStatus
from pathlib import Path
from typing import Final

from greenroom.transports.base.errors import HttpRefusedError
from greenroom.transports.sockets.http.request_head import RequestHead
from greenroom.transports.sockets.http.responses import Response

PREFIX: Final = "/static/"
_FOLDER: Final = Path(__file__).with_name("static")
_TYPES: Final = {
    "console.css": b"text/css; charset=utf-8",
    "console.js": b"text/javascript; charset=utf-8",
    "favicon.svg": b"image/svg+xml",
    "map.js": b"text/javascript; charset=utf-8",
    "licenses.txt": b"text/plain; charset=utf-8",
}
_FOR_A_YEAR: Final = (b"cache-control", b"max-age=31536000, immutable")


@cache
def version() -> str:
    """Return the digest of the build; file paths contain it, so browsers may cache files."""
    digest = sha256()
    for name in sorted(_TYPES):
        digest.update(name.encode() + (_FOLDER / name).read_bytes())
    return digest.hexdigest()[:12]


def static_file(head: RequestHead) -> Response:
    """Return a response with the file at a path."""
    shown, _, name = head.path.removeprefix(PREFIX).partition("/")
    if name not in _TYPES or shown != version():
        raise HttpRefusedError(HTTPStatus.NOT_FOUND, "there is no such file")
    headers = [(b"content-type", _TYPES[name]), _FOR_A_YEAR, (b"vary", b"accept-encoding")]
    plain, packed = _contents(name)
    if "gzip" not in (head.text(b"accept-encoding") or ""):
        return Response(HTTPStatus.OK, headers, plain)
    return Response(HTTPStatus.OK, [*headers, (b"content-encoding", b"gzip")], packed)


@cache
def _contents(name: str) -> tuple[bytes, bytes]:
    plain = (_FOLDER / name).read_bytes()
    return plain, gzip.compress(plain, mtime=0)
