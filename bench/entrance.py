"""How a browser comes in at a server: by a link of its folder's owner; and requests below `/api/v1` then."""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from bench.harness import check
from bench.wires import HttpWire, Kind
from greenroom.transports.ops.control.client import Link, call


class Entrance(NamedTuple):
    """A browser's log-in.

    Attributes:
        host: The server's host.
        port: Its port.
        cookie: The cookie.
        token: What it sends with whatever it posts.
        path: The secret path below which it finds everything.
    """

    host: str
    port: int
    cookie: str
    token: str
    path: str

    @property
    def authority(self) -> str:
        """What stands in the header Host."""
        return f"{self.host}:{self.port}"


def log_in(folder: Path, url: str) -> Entrance:
    """Log in at a server at this URL of HTTP, as the owner of its folder."""
    link = json.loads(call(folder, Link(), patience=30.0))["url"]
    at = urlsplit(url)
    assert at.hostname is not None
    assert at.port is not None
    path, _, token = urlsplit(link).path.partition("/login/")
    body = json.dumps({"link": token}).encode()
    headers = {"content-type": "application/json"}
    request = urllib.request.Request(f"http://{at.netloc}{path}/api/v1/login", body, headers)
    with urllib.request.urlopen(request) as answer:  # noqa: S310 (it is ours)
        cookie = answer.headers["set-cookie"].partition(";")[0]
        shown = json.loads(answer.read())["csrf_token"]
    return Entrance(at.hostname, at.port, cookie, shown, path)


def asked(entrance: Entrance, request: str, **arguments: Any) -> Any:
    """Return what a request below `/api/v1` is answered."""
    headers = {
        "content-type": "application/json",
        "cookie": entrance.cookie,
        "x-csrf-token": entrance.token,
    }
    url = f"http://{entrance.authority}{entrance.path}/api/v1/{request}"
    with urllib.request.urlopen(
        urllib.request.Request(url, json.dumps(arguments).encode(), headers)
    ) as answer:
        check(answer.status == 200, f"{request} was answered with {answer.status}")
        return json.loads(answer.read())


class ApiWire(HttpWire):
    """A POST below `/api/v1` for each message, whose kind names the request."""

    def __init__(self, entrance: Entrance) -> None:
        self._root = f"{entrance.path}/api/v1"
        super().__init__(entrance.authority, self._root, modern=False, version="1")
        self._headers = [
            *(each for each in self._headers if each[0] != "accept"),
            ("cookie", entrance.cookie),
            ("x-csrf-token", entrance.token),
        ]

    def encode(self, kind: Kind, body: bytes) -> bytes:
        """Return the request. There is no next one before its answer is over."""
        self._path = f"{self._root}/{kind.name}"
        return super().encode(kind, body)
