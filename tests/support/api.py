"""Programs and browsers that ask below `/api/v1`."""

from __future__ import annotations

import json
from secrets import token_hex
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    from support.https import Answer, Guest
    from support.keyed import Premises

    from greenroom.actors import ApiKeyMade

ROOT = "/api/v1"
FORM = "application/x-www-form-urlencoded"


class Browser:
    """Keeps a cookie and a CSRF token, as a page of ours does.

    Attributes:
        headers: What it sends with everything.
        token: The CSRF token.
        below: The secret path below which it finds everything; empty as over TLS.
        confirmation: Returns what confirms something: a new code of its terminal, or its key.
    """

    confirmation: Callable[[], str]

    def __init__(self, guest: Guest, below: str = "") -> None:
        self.guest = guest
        self.below = below
        self.headers: dict[str, str | None] = {"origin": "http://localhost:8080", "accept": "*/*"}
        self.token: str | None = None

    async def log_in(self, **shown: str) -> Answer:
        answer = await self.post("login", **shown)
        if answer.status == 200:
            self.headers["cookie"] = answer.headers["set-cookie"].partition(";")[0]
            self.token = answer.json()["csrf_token"]
        return answer

    async def get(self, path: str, **headers: str | None) -> Answer:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        await self.guest.send("GET", f"{self.below}{ROOT}/{path}", {**self.headers, **named})
        return await self.guest.answer()

    async def post(self, path: str, **arguments: Any) -> Answer:
        token = {} if self.token is None else {"x-csrf-token": self.token}
        return await posted(self.guest, path, arguments, {**self.headers, **token}, self.below)

    async def confirmed(self, path: str, **arguments: Any) -> Answer:
        """Ask a request that asks for a confirmation, with it."""
        headers = {**self.headers, "x-csrf-token": self.token, "x-confirmation": self.confirmation()}
        return await posted(self.guest, path, arguments, headers, self.below)

    async def see_as(self, seen: str) -> Answer:
        """Begin to see as another agent, by parameters of a URL."""
        return await self.get(f"session?{seen}", x_confirmation=self.confirmation())

    async def form(self, path: str, body: str, **headers: str | None) -> Answer:
        given = {**self.headers, "content-type": FORM, **headers}
        await self.guest.send("POST", self.below + path, given, body.encode())
        return await self.guest.answer()


B = TypeVar("B", bound=Browser)


async def posted(guest: Guest, path: str, arguments: Any, headers: dict[str, Any], below: str = "") -> Answer:
    """Ask a request; return its answer."""
    body = arguments if isinstance(arguments, bytes) else json.dumps(arguments).encode()
    await guest.send("POST", f"{below}{ROOT}/{path}", headers, body)
    return await guest.answer()


async def browser(here: Premises, key: ApiKeyMade | None = None, *, read_only: bool = False) -> Browser:
    """Return a browser that has logged in, by a key or else by a link of the folder's owner."""
    return await logged_in(Browser(await here.guest()), here, key, read_only=read_only)


async def logged_in(found: B, here: Premises, key: ApiKeyMade | None, *, read_only: bool) -> B:
    """Log a browser in; return it."""
    if key is None:
        terminal = token_hex()
        link = here.browsers.make_link(read_only=read_only, terminal=terminal)
        answer = await found.log_in(link=link)
        found.confirmation = lambda: here.browsers.new_code(terminal) or ""
    else:
        found.confirmation = lambda: key.api_key
        answer = await found.log_in(key=key.api_key)
    assert answer.status == 200, answer
    return found
