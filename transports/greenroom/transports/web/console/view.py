"""The inputs and outputs of a view: reader, place, and the content of the page."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from hashlib import blake2b
from http import HTTPStatus
from typing import Any, Final, NamedTuple

import msgspec
import trio

from greenroom.actors.core.auth.scopes import allows, needed_for_request
from greenroom.runtime import GreenroomError
from greenroom.transports.web.console.agent_names import AgentNames
from greenroom.transports.web.rest.browser_sessions import SessionView
from greenroom.transports.web.rest.impersonation import VisitorAgent

_MOST_DIGITS: Final = 16


class Place(NamedTuple):
    """The address of a page."""

    path: str
    rest: str  # the decoded path after the view's name: an id, or empty
    query: Mapping[str, list[str]]

    def get(self, name: str) -> str | None:
        """Return a parameter's first value, stripped; None if it is missing or empty."""
        return next(iter(self.query.get(name, ())), "").strip() or None

    def name(self, name: str) -> str | None:
        """Return a parameter's first value, not stripped; None if it is missing or blank."""
        value = next(iter(self.query.get(name, ())), "")
        return value if value.strip() else None

    def number(self, name: str) -> int | None:
        """Return a parameter as a whole number; None if it is not a whole number."""
        return whole_number(self.get(name))

    def all(self, name: str) -> list[str]:
        """Return all values of a parameter that are not blank."""
        return [value for value in self.query.get(name, ()) if value.strip()]


def whole_number(text: str | None) -> int | None:
    """Parse a number of 0 or more; return None if it is invalid."""
    if text is None or len(text) > _MOST_DIGITS or not (text.isascii() and text.isdecimal()):
        return None
    return int(text)


class View(NamedTuple):
    """The content of a page."""

    template: str
    title: str
    values: Mapping[str, Any] = {}
    topics: tuple[str, ...] = ()  # when these resources (URIs) change, the page is updated
    # Seconds until the page is fetched again, for data without a resource; None for never.
    every: float | None = None
    status: HTTPStatus = HTTPStatus.OK


def may_ask(who: SessionView, name: str) -> bool:
    """Return whether a visitor's scopes allow a request, by its name."""
    return allows(who.scopes, needed_for_request(name))


def not_found(sentence: str) -> View:
    """Return a page for an address at which there is nothing."""
    return View("failure.html", "Not found", {"sentence": sentence}, status=HTTPStatus.NOT_FOUND)


class Reader:
    """Sends the requests of a view with the rights of its visitor."""

    def __init__(self, agent: VisitorAgent, who: SessionView) -> None:
        self._agent = agent
        self.who = who
        self.read: list[bytes] = []
        self._replies: list[bytes] = []

    def may(self, name: str) -> bool:
        """Return whether the visitor may send a request, by its name."""
        return may_ask(self.who, name)

    def check_scope(self, request: type[Any]) -> None:
        """Check the visitor's scope for a type of request, before the URL is parsed."""
        self._agent.check_scope(request)

    async def ask(self, request: Any) -> Any:
        """Send a request to the domain, after a yield to the event loop."""
        await trio.lowlevel.checkpoint()
        try:
            reply = await self._agent.ask(request)
        except GreenroomError as error:
            self.read.append(_digest(repr(error).encode(errors="replace")))
            raise
        self._replies.append(msgspec.json.encode(reply))
        self.read.append(_digest(self._replies[-1]))
        return reply

    def agent_names(self) -> AgentNames:
        """Return the names of the agents in all replies."""
        return AgentNames(self._replies)


def _digest(data: bytes) -> bytes:
    return blake2b(data, digest_size=16).digest()


ViewFunction = Callable[[Reader, Place], Awaitable[View]]
"""Makes a page from replies, its place and the reader only, so the tag identifies the page."""


FormFunction = Callable[[Reader, Place, Mapping[str, str]], Awaitable[str | View]]
"""Carries out a form; returns the path of the next page, or the form with a refusal."""

FileFunction = Callable[[Reader, Place], tuple[str, str, Callable[[], Awaitable[bytes]]]]
"""Returns a file's name, its type, and a function for the next part; an empty part is the end."""


class Form(NamedTuple):
    """A form of a page that the browser itself sends to the page's address."""

    fields: tuple[str, ...]
    take: FormFunction


class Entry(NamedTuple):
    """A view in the navigation."""

    name: str  # the first part of the view's path; empty for the first view
    label: str  # the view's name in the navigation
    key: str  # the key that opens the view when typed after `g`
    show: ViewFunction
    # The request that a visitor must be allowed to send to see the view; with None everyone sees it.
    needs: str | None = None
    files: Mapping[str, FileFunction] = {}  # downloads, by the part of the path after the view's name
    # Forms of the view that work without a script, by the last part of their path, and their fields.
    forms: Mapping[str, Form] = {}
