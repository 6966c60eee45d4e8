"""A small issuer of OAuth access tokens on this machine, honest or not."""

from __future__ import annotations

import json
import time
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import jwt
import trio
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

RESOURCE = "https://greenroom.example.org/mcp"


def rsa_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


class Issuer:
    """What it publishes, and tokens that it signs.

    Attributes:
        keys: Its private keys by name, all of which it publishes.
        asked: The paths that it was asked for.
        documents: What it answers otherwise than an issuer would, by path.
        away: Whether it hangs up on everybody.
    """

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.keys: dict[str, Any] = {"one": rsa_key()}
        self.asked: list[str] = []
        self.documents: dict[str, Any] = {}
        self.away = False

    def token(self, *, kid: str | None = "one", key: Any = None, alg: str = "RS256", **claims: Any) -> str:
        """Return a token; a claim that is None is left out."""
        usual: dict[str, Any] = {
            "iss": self.url,
            "aud": RESOURCE,
            "sub": "ann",
            "client_id": "app",
            "exp": int(time.time()) + 600,
            "scope": "sessions:read sessions:write",
        }
        said = {name: value for name, value in {**usual, **claims}.items() if value is not None}
        headers = {"typ": "at+jwt"} if kid is None else {"typ": "at+jwt", "kid": kid}
        # The library would not sign claims of other types than they have.
        return jwt.api_jws.encode(
            json.dumps(said).encode(), key or self.keys[kid or "one"], algorithm=alg, headers=headers
        )

    def _document(self, path: str) -> Any:
        if path in self.documents:
            return self.documents[path]
        if path == "/.well-known/oauth-authorization-server":
            return {"issuer": self.url, "jwks_uri": f"{self.url}/keys"}
        if path == "/keys":
            return {"keys": [{**public(key), "kid": name, "use": "sig"} for name, key in self.keys.items()]}
        return None

    async def serve(self, stream: trio.SocketStream) -> None:
        async with stream:
            head = b""
            while b"\r\n\r\n" not in head:
                if not (part := await stream.receive_some()):
                    return
                head += part
            path = head.split()[1].decode()
            self.asked.append(path)
            if self.away:
                return
            document = self._document(path)
            body = document if isinstance(document, bytes) else json.dumps(document).encode()
            status = b"404 Not Found" if document is None else b"200 OK"
            await stream.send_all(
                b"HTTP/1.1 %b\r\nContent-Type: application/json\r\nContent-Length: %d\r\n"
                b"Connection: close\r\n\r\n%b" % (status, len(body), body)
            )


def public(key: Any) -> dict[str, Any]:
    """Return a key's public half as a JWK."""
    algorithm: Any = jwt.algorithms.RSAAlgorithm
    if isinstance(key, ec.EllipticCurvePrivateKey):
        algorithm = jwt.algorithms.ECAlgorithm
    elif isinstance(key, ed25519.Ed25519PrivateKey):
        algorithm = jwt.algorithms.OKPAlgorithm
    found: dict[str, Any] = json.loads(algorithm.to_jwk(key.public_key()))
    return found


@asynccontextmanager
async def issuing() -> AsyncIterator[Issuer]:
    """Run an issuer."""
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    issuer = Issuer(listeners[0].socket.getsockname()[1])
    async with trio.open_nursery() as nursery:
        await nursery.start(partial(trio.serve_listeners, issuer.serve, listeners))
        yield issuer
        nursery.cancel_scope.cancel()
