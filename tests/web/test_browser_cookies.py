"""What programs on other ports learn of a browser that is logged in."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

import pytest
from support.browser import console_server_in, logged_in, profile_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, Page
    from support.browser import ConsoleServer

pytestmark = [pytest.mark.slow, pytest.mark.promise("console.ports")]

HOSTS = ("127.0.0.1", "localhost", "x.localhost")
GUESSES = (
    "",
    "api/v1/session",
    "api/v1/",
    "console",
    "console/",
    "login",
    "login/x",
    "memories",
    "static/x",
    "mcp",
)


class Neighbour:
    """A program on another port of this machine, which keeps what browsers send.

    Attributes:
        port: Its port.
        heard: Each request's path, with its headers by name in lower case.
    """

    def __init__(self) -> None:
        heard: list[tuple[str, dict[str, str]]] = []

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                heard.append((self.path, {name.lower(): value for name, value in self.headers.items()}))
                self.send_response(200)
                self.send_header("content-type", "text/html")
                self.send_header("set-cookie", "mine=1; Path=/")
                self.end_headers()
                self.wfile.write(b"<!DOCTYPE html><title>neighbour</title><h1>neighbour</h1>")

            def log_message(self, format: str, *args: object) -> None:
                """Say nothing."""

        self.heard = heard
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port: int = self.server.server_address[1]

    def at(self, path: str) -> dict[str, str]:
        """Return the headers with which a path was asked for last."""
        return [headers for asked, headers in self.heard if asked == path][-1]


@contextmanager
def neighbour() -> Iterator[Neighbour]:
    found = Neighbour()
    thread = threading.Thread(target=found.server.serve_forever)
    thread.start()
    try:
        yield found
    finally:
        found.server.shutdown()
        thread.join()
        found.server.server_close()


def named(server: ConsoleServer, host: str) -> str:
    """Return the console's URL by another name of this machine."""
    at = urlsplit(server.url)
    return f"http://{host}:{at.port}{at.path}"


@pytest.mark.parametrize("host", HOSTS)
def test_a_page_of_another_port_gets_no_cookie(
    chromium: Browser, console_server: ConsoleServer, host: str
) -> None:
    link = console_server.link().replace("127.0.0.1", host)
    with neighbour() as other, profile_of(chromium) as profile:
        page = profile.new_page()
        page.goto(link)
        page.get_by_role("button", name="Log in").click()
        page.get_by_role("heading", level=1, name="Overview").wait_for()
        (name,) = [each["name"] for each in profile.cookies()]
        assert name.startswith(f"greenroom-{urlsplit(link).port}-")
        visited = 0
        for name in HOSTS:
            for guess in GUESSES:
                page.goto(f"http://{name}:{other.port}/{guess}")
                visited += 1
        documents = [(path, headers) for path, headers in other.heard if path != "/favicon.ico"]
        assert len(documents) == visited
        for path, headers in other.heard:
            assert "greenroom" not in headers.get("cookie", ""), path
        assert any("mine=1" in headers.get("cookie", "") for _, headers in other.heard), (
            "cookies know no ports"
        )
        page.goto(named(console_server, host) + "memories")  # and who is logged in stays
        page.get_by_role("heading", level=1, name="Memories").wait_for()


def test_a_page_that_is_reached_from_the_console_hears_no_address_of_it(
    page: Page, console_server: ConsoleServer
) -> None:
    secret = urlsplit(console_server.url).path.strip("/")
    with neighbour() as other:
        page.goto(f"{console_server.url}memories")
        with page.expect_navigation():
            page.evaluate("url => { location.href = url }", f"http://127.0.0.1:{other.port}/followed")
        assert "referer" not in other.at("/followed")
        assert page.evaluate("document.referrer") == ""
        assert secret not in repr(other.heard)


def test_the_first_page_of_a_server_says_how_to_open_the_console(
    chromium: Browser, console_server: ConsoleServer
) -> None:
    at = urlsplit(console_server.url)
    with profile_of(chromium) as profile:
        page = profile.new_page()
        page.goto(f"http://127.0.0.1:{at.port}/")
        page.get_by_text("greenroom console", exact=True).wait_for()
        assert at.path.strip("/") not in page.content()
        for name in ("memories", "login", "api/v1/session"):
            answer = page.goto(f"http://127.0.0.1:{at.port}/{name}")
            assert answer is not None
            assert answer.status in (401, 404)


def test_a_tab_goes_on_when_the_server_starts_again(chromium: Browser, tmp_path: Path) -> None:
    folder = tmp_path / "data"
    with console_server_in(folder, "--embedder", "none") as first:
        key = first.ask("create_api_key", name="for a browser", scopes=["*"])["api_key"]
        with profile_of(chromium) as profile:
            page = logged_in(profile, first)
            page.goto(f"{first.url}memories")
            address = urlsplit(page.url).path
    with console_server_in(folder, "--embedder", "none") as second, profile_of(chromium) as profile:
        page = profile.new_page()
        page.goto(urljoin(second.mcp, address))  # as a tab that was kept open does; the port is another here
        page.get_by_label("API key").fill(key)
        page.get_by_role("button", name="Log in").click()
        page.get_by_role("heading", level=1, name="Memories").wait_for()
