"""What a view is given and gives: who looks, where, and what is shown there."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from hashlib import blake2b
from http import HTTPStatus
from typing import Any, Final, NamedTuple

import msgspec
import trio

from greenroom.actors.core.auth.scopes import allows, needed_for_request
from greenroom.actors.core.validation.parse import check_request
from greenroom.runtime import GreenroomError
from greenroom.transports.web.rest.browser_sessions import SessionView
from greenroom.transports.web.rest.impersonation import Asked

_MOST_DIGITS: Final = 16


class Place(NamedTuple):
    """Where a page is.

    Attributes:
        path: Its path, from the slash on.
        rest: What stands behind the view's name in it, decoded: an id, or nothing.
        query: The values of each parameter of its URL.
    """

    path: str
    rest: str
    query: Mapping[str, list[str]]

    def get(self, name: str) -> str | None:
        """Return a parameter's first value, without spaces around it; None where it is not given or empty."""
        return next(iter(self.query.get(name, ())), "").strip() or None

    def name(self, name: str) -> str | None:
        """Return a parameter's first value with the spaces around it; None where there is nothing else."""
        value = next(iter(self.query.get(name, ())), "")
        return value if value.strip() else None

    def number(self, name: str) -> int | None:
        """Return a parameter as a whole number; None where it is none."""
        return whole_number(self.get(name))

    def all(self, name: str) -> list[str]:
        """Return every value of a parameter that is not empty."""
        return [value for value in self.query.get(name, ()) if value.strip()]


def whole_number(text: str | None) -> int | None:
    """Return a text of a URL as a number of 0 or more; None where it is none, or too long for one."""
    if text is None or len(text) > _MOST_DIGITS or not (text.isascii() and text.isdecimal()):
        return None
    return int(text)


class View(NamedTuple):
    """What a page shows.

    Attributes:
        template: The name of its template.
        title: Its title, and its heading.
        values: What the template is given.
        topics: URIs of the resources of whose changes the page wants to hear.
        every: Seconds after which it is fetched again, for what no resource tells; None: it is not.
        status: The status of the answer.
    """

    template: str
    title: str
    values: Mapping[str, Any] = {}
    topics: tuple[str, ...] = ()
    every: float | None = None
    status: HTTPStatus = HTTPStatus.OK


def may_ask(who: SessionView, name: str) -> bool:
    """Return whether a visitor's scopes allow a request, by its name."""
    return allows(who.scopes, needed_for_request(name))


def not_found(sentence: str) -> View:
    """Return the page that says that there is nothing at its address."""
    return View("failure.html", "Not found", {"sentence": sentence}, status=HTTPStatus.NOT_FOUND)


class Reader:
    """Asks for a view, in the name of who looks at it.

    Attributes:
        who: Who that is.
        read: Digests of what was read: of each reply, or of why there is none.

    Args:
        agent: The visitor's agent.
        who: Who the visitor is.
    """

    def __init__(self, agent: Asked, who: SessionView) -> None:
        self._agent = agent
        self.who = who
        self.read: list[bytes] = []

    def may(self, name: str) -> bool:
        """Return whether who looks is allowed a request, by its name."""
        return may_ask(self.who, name)

    def check_scope(self, request: type[Any]) -> None:
        """Check that the reader may ask a type of request, before the URL is read.

        Raises:
            Refusal: ``PERMISSION_DENIED``.
        """
        self._agent.check_scope(request)

    def check(self, request: Any) -> None:
        """Check a request, its scope first.

        Raises:
            Refusal: it may not be asked, or not with these values.
        """
        self.check_scope(type(request))
        check_request(request)

    async def ask(self, request: Any) -> Any:
        """Return the reply to a request of the domain; others are served before.

        Raises:
            GreenroomError: it is refused, or fails.
        """
        await trio.lowlevel.checkpoint()
        try:
            reply = await self._agent.ask(request)
        except GreenroomError as error:
            self.read.append(_digest(repr(error).encode(errors="replace")))
            raise
        self.read.append(_digest(msgspec.json.encode(reply)))
        return reply


def _digest(data: bytes) -> bytes:
    return blake2b(data, digest_size=16).digest()


ViewFunction = Callable[[Reader, Place], Awaitable[View]]
"""Makes a page of what it reads, its place and who looks, and of nothing else: by that it is known again."""


FileFunction = Callable[[Reader, Place], tuple[str, str, Callable[[], Awaitable[bytes]]]]
"""Returns a file's name, its type and what returns its next part; nothing at its end."""


class Entry(NamedTuple):
    """A view in the navigation.

    Attributes:
        name: The first part of its path; empty for the first view.
        label: What the navigation calls it.
        key: What is typed after `g` to go there.
        show: Makes its pages.
        files: What is downloaded below its path, by the rest of that.
        needs: A request that visitors must be allowed to ask, or it is not offered; None: everybody sees it.
    """

    name: str
    label: str
    key: str
    show: ViewFunction
    needs: str | None = None
    files: Mapping[str, FileFunction] = {}
