"""Real browsers at a real server: Chromium without a window, driven by Playwright.

A test is a plain function, since Playwright's blocking interface has a loop of its own, for each test file:
while it runs, nothing else in this thread may have one.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import urllib.error
import urllib.request
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urljoin, urlsplit

import pytest
from axe_playwright_python.base import AXE_SCRIPT, AxeResults
from harness import clean_environment
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, sync_playwright
from playwright.sync_api import TimeoutError as LateError
from support.forking import forked_program

from greenroom.transports.ops.control.client import Code, Link, call

if TYPE_CHECKING:
    from collections.abc import Iterator

PATIENCE = 120_000
"""Milliseconds for what a busy machine may take."""
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
STANDARDS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
LAYOUTS: tuple[tuple[int, Literal["light", "dark"]], ...] = ((360, "dark"), (1280, "light"), (2560, "dark"))
"""The widths in pixels at which pages are looked at, each in one of the colour schemes."""
SCREENSHOTS = "GREENROOM_SCREENSHOTS"
CONFIRMED = {"create_api_key", "rotate_api_key", "export_memories", "export_session", "export_audit_log"}
"""What a browser's session asks for with a code."""


class ConsoleServer:
    """A server in a process of its own, and a client of it that needs no browser.

    Attributes:
        mcp: The URL of MCP.
        url: Where the console is, below its secret path, with a slash at the end.
        folder: Its data.
        process: The process.
        key: By which it is asked; the folder's owner logs in by a link unless there is one.
    """

    key: str | None = None

    def __init__(self, folder: Path, *options: str) -> None:
        self.folder = folder
        command = [*forked_program(), "serve", "--http", "127.0.0.1:0", "--data", str(folder), *options]
        environment = clean_environment(folder.parent)
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, env=environment, text=True)
        assert self.process.stderr is not None
        said: list[str] = []
        while not said or "listening on" not in said[-1]:
            said.append(self.process.stderr.readline())
            assert said[-1], "".join(said)
        self.mcp = said[-1].split()[-1]
        path = urlsplit(self.link()).path.partition("login/")[0]  # the same in every process on the folder
        self.url = urljoin(self.mcp, path)
        self._cookie, self._token = "", ""
        self._terminal = token_hex()
        self.terminals: dict[BrowserContext, str] = {}

    def link(self, *, read_only: bool = False, terminal: str | None = None) -> str:
        """Return a link that logs a browser in as the folder's owner."""
        return str(json.loads(call(self.folder, Link(read_only=read_only, terminal=terminal)))["url"])

    def code(self, page: Page) -> str:
        """Return the code that the terminal of a page's browser prints."""
        return self._code(self.terminals[page.context])

    def _code(self, terminal: str) -> str:
        return str(json.loads(call(self.folder, Code(terminal=terminal)))["code"])

    def link_file(self) -> Path:
        """Return a file that leads a browser to such a link."""
        return Path(json.loads(call(self.folder, Link(as_file=True)))["file"])

    def ask(self, request: str, **arguments: Any) -> Any:
        """Have a request carried out, as another client than the browser; return its answer."""
        if not self._token and self.key is None:
            token = self.link(terminal=self._terminal).rpartition("/")[2]
            answer, said = self._post("login", {"link": token})
            self._cookie, self._token = answer["set-cookie"].partition(";")[0], said["csrf_token"]
        return self._post(request, arguments)[1]

    def _post(self, path: str, values: Any) -> tuple[Any, Any]:
        headers = {"content-type": "application/json"}
        if self.key is None:
            headers |= {"cookie": self._cookie, "x-csrf-token": self._token}
            if path in CONFIRMED:
                headers["x-confirmation"] = self._code(self._terminal)
        else:
            headers |= {"authorization": f"Bearer {self.key}"}
        body = json.dumps(values).encode()
        request = urllib.request.Request(f"{self.url}api/v1/{path}", body, headers)  # noqa: S310 - it is ours
        try:
            with urllib.request.urlopen(request) as answer:  # noqa: S310 - likewise
                return answer.headers, json.loads(answer.read())
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{path}: {error.read().decode()}") from None

    def stop(self) -> None:
        """End the process, however."""
        self.process.kill()
        self.process.wait()
        assert self.process.stderr is not None
        self.process.stderr.close()


@contextmanager
def console_server_in(folder: Path, *options: str) -> Iterator[ConsoleServer]:
    """Run a server on a folder."""
    server = ConsoleServer(folder, *options)
    try:
        yield server
    finally:
        server.stop()


@contextmanager
def launched() -> Iterator[Browser]:
    """Run a browser without a window; a sandbox of its own needs more rights than containers have."""
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        pytest.skip("there is no chromium")
    with sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path=found, args=["--no-sandbox", "--disable-gpu"])


@contextmanager
def profile_of(browser: Browser, **options: Any) -> Iterator[BrowserContext]:
    """Give a browser's profile of one's own; at the end no page of it may have had a fault."""
    faults: list[tuple[str, str]] = []
    made = browser.new_context(**options)
    made.set_default_timeout(PATIENCE)
    made.on("weberror", lambda error: faults.append((str(error.error), "")))
    made.on("console", lambda said: faults.append(_fault(said)) if said.type == "error" else None)
    yield made
    made.close()
    left = [f"{text} [{url}]" for text, url in faults if not _is_of_the_test(text, url)]
    assert not left, "\n".join(left)


def _fault(message: ConsoleMessage) -> tuple[str, str]:
    return message.text, message.location["url"]


def _is_of_the_test(text: str, url: str) -> bool:
    """Return whether a fault is a refusal that a test asks for, or told of a server that the test has ended.

    Whatever breaks the content security policy is none, nor a connection to a server that is still there.
    """
    if re.search("Failed to load.* status of 4", text):
        return True
    if "Failed to load resource: net::ERR" not in text or not url.startswith("http"):
        return False
    try:
        socket.create_connection(("127.0.0.1", urlsplit(url).port or 80)).close()
    except OSError:
        return True
    return False


def logged_in(context: BrowserContext, server: ConsoleServer, *, read_only: bool = False) -> Page:
    """Open a page and log in by a link."""
    page, terminal = context.new_page(), token_hex()
    server.terminals[context] = terminal
    page.goto(server.link(read_only=read_only, terminal=terminal))
    return _came_in(page)


def logged_in_by(profile: BrowserContext, server: ConsoleServer, key: str) -> Page:
    """Open a page and log in by a key."""
    page = profile.new_page()
    page.goto(server.url)
    page.get_by_label("API key").fill(key)
    return _came_in(page)


def _came_in(page: Page) -> Page:
    page.get_by_role("button", name="Log in").click()
    page.get_by_role("heading", level=1, name="Overview").wait_for()
    page.wait_for_load_state()  # from then on the script hears keys
    return page


def confirm(page: Page, typed: str) -> None:
    """Type what confirms something where the page asks for it."""
    field = page.locator("#confirmation")
    field.fill(typed)
    page.get_by_role("button", name="Confirm").click()


def go_by_keys(page: Page, keys: str, url: str) -> None:
    """Press the two keys that lead to a view; again where the second one came later than a page waits for it.

    Args:
        page: The page.
        keys: Such as ``gs``.
        url: The pattern of the view's URL.
    """
    while True:
        page.keyboard.type(keys)
        with suppress(LateError):
            page.wait_for_url(url, timeout=PATIENCE / 10)
            return


def check_accessible(page: Page) -> None:
    """Check a page by axe-core's rules of WCAG 2.2 AA."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE_SCRIPT)
    options = {"runOnly": STANDARDS, "resultTypes": ["violations"]}  # what is right is only counted
    found = AxeResults(page.evaluate("options => axe.run(options)", options))
    assert found.violations_count == 0, found.generate_report()


def check_layouts(page: Page, name: str) -> None:
    """Check that a page fits from 360 to 2,560 pixels, and is accessible; keep pictures where wanted."""
    for width, scheme in LAYOUTS:
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme=scheme)
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= width, f"{name} is {wide} pixels wide where there are {width}"
        if folder := os.environ.get(SCREENSHOTS):
            page.screenshot(path=Path(folder) / f"{name}-{width}-{scheme}.png")
        if width < 2560:  # where nothing is laid out otherwise than before
            check_accessible(page)
