"""The console in a real browser: logging in, what is shown at once, keys, and being logged out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.browser import check_layouts

if TYPE_CHECKING:
    from playwright.sync_api import Page
    from support.browser import ConsoleServer

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", autouse=True)
def seeds(console_server: ConsoleServer) -> None:
    console_server.ask("create_session", session_id="release", purpose="plan the release")
    console_server.ask("store_memory", content="Tabs, not spaces.", key="style", tags=["code"])


@pytest.mark.parametrize("path", ["", "sessions", "memories"])
def test_every_view_fits_and_is_accessible(page: Page, console_server: ConsoleServer, path: str) -> None:
    page.goto(console_server.url + path)
    page.locator("main h1").wait_for()
    check_layouts(page, path or "overview")


def test_keys_lead_to_views_and_along_rows(page: Page) -> None:
    page.keyboard.type("gs")
    page.wait_for_url("**/sessions")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url("**/sessions/*")
    page.keyboard.press("?")
    page.get_by_role("dialog", name="Keys").wait_for()


def test_who_is_logged_out_is_told_and_shown_nothing(page: Page, console_server: ConsoleServer) -> None:
    page.get_by_role("button", name="Log out").click()
    page.get_by_label("API key").wait_for()
    page.goto(f"{console_server.url}memories")
    assert page.get_by_label("API key").is_visible()
    assert page.locator("nav").count() == 0
