"""The console in a real browser: logging in, what is shown at once, keys, and being logged out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.browser import check_layouts, console_server_in, go_by_keys, logged_in, logged_in_by, profile_of

from greenroom.transports.web.console.views.table import ENTRIES

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser, BrowserContext, Page
    from support.browser import ConsoleServer

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", autouse=True)
def seeds(console_server: ConsoleServer) -> None:
    console_server.ask("create_session", session_id="release", purpose="plan the release")
    console_server.ask("store_memory", content="Tabs, not spaces.", key="style", tags=["code"])


VIEWS = [entry.name for entry in ENTRIES]


@pytest.mark.parametrize("path", VIEWS)
def test_every_view_fits_and_is_accessible(page: Page, console_server: ConsoleServer, path: str) -> None:
    page.goto(console_server.url + path)
    page.locator("main h1").wait_for()
    assert not page.locator("main p.refusal:visible").count()
    check_layouts(page, path or "overview")


def test_every_view_can_be_read_without_a_script(chromium: Browser, console_server: ConsoleServer) -> None:
    with profile_of(chromium, java_script_enabled=False) as profile:
        page = logged_in(profile, console_server)
        for name in VIEWS:
            page.goto(console_server.url + name)
            assert page.locator("main h1").is_visible()
            assert page.locator("header nav a[aria-current=page]").count() == 1
            assert not page.locator("main p.refusal:visible").count()


def test_keys_lead_to_views_and_along_rows(page: Page) -> None:
    go_by_keys(page, "gs", "**/sessions")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url("**/sessions/*")
    page.keyboard.press("?")
    page.get_by_role("dialog", name="Keys").wait_for()


@pytest.mark.promise("console.link-file")
def test_a_file_leads_a_browser_to_the_link(profile: BrowserContext, console_server: ConsoleServer) -> None:
    file = console_server.link_file()
    page = profile.new_page()
    page.goto(file.as_uri())
    page.wait_for_url(f"{console_server.url}login/*")
    page.get_by_role("button", name="Log in").click()
    page.get_by_role("heading", level=1, name="Overview").wait_for()
    assert page.url == console_server.url
    assert not file.exists()


def test_who_is_logged_out_is_told_and_shown_nothing(page: Page, console_server: ConsoleServer) -> None:
    page.get_by_role("button", name="Log out").click()
    page.get_by_label("API key").wait_for()
    page.goto(f"{console_server.url}memories")
    assert page.get_by_label("API key").is_visible()
    assert page.locator("nav").count() == 0


def test_a_change_by_another_client_is_shown_at_once(page: Page, console_server: ConsoleServer) -> None:
    page.goto(f"{console_server.url}memories")
    page.get_by_role("link", name="Tabs, not spaces.").wait_for()
    console_server.ask("store_memory", content="Spaces, not tabs.", key="newer")
    page.get_by_role("link", name="Spaces, not tabs.").wait_for()


def again(page: Page) -> int:
    """Have a page looked at anew, as when somebody comes back to it; return what it is answered."""
    with page.expect_response(lambda answer: answer.request.resource_type == "fetch") as told:
        page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    return told.value.status


def test_a_page_that_has_not_changed_is_not_sent_again(page: Page, console_server: ConsoleServer) -> None:
    page.goto(f"{console_server.url}sessions/release")
    first, *later = [again(page) for _ in range(3)]  # of which a minute's end changes one
    assert first == 200
    assert 304 in later
    console_server.ask("add_message", session_id="release", content="what nobody knew")
    page.get_by_text("what nobody knew").wait_for()


BREAK_OFF = """() => {
  const body = () => new ReadableStream({ start: (stream) => stream.error(new TypeError("broken off")) });
  window.fetch = async () => new Response(body());
  document.dispatchEvent(new Event("visibilitychange"));
}"""


def test_a_page_that_breaks_off_leaves_what_was_shown(page: Page, console_server: ConsoleServer) -> None:
    page.goto(f"{console_server.url}memories")
    page.evaluate(BREAK_OFF)
    page.get_by_role("status").filter(has_text="The server does not answer").wait_for()
    assert page.get_by_role("link", name="Tabs, not spaces.").is_visible()


def test_a_page_goes_on_when_the_folder_gets_another_owner(chromium: Browser, tmp_path: Path) -> None:
    folder = tmp_path / "data"
    with (
        console_server_in(folder, "--embedder", "none") as owner,
        console_server_in(folder, "--embedder", "none") as follower,
        profile_of(chromium) as profile,
    ):
        owner.ask("store_memory", content="Before.", key="before")
        key = owner.ask("create_api_key", name="for a browser", scopes=["*"])["api_key"]
        page = logged_in_by(profile, follower, key)
        page.goto(f"{follower.url}memories")
        page.get_by_role("link", name="Before.").wait_for()
        owner.stop()
        follower.key = key
        follower.ask("store_memory", content="After.", key="after")
        page.get_by_role("link", name="After.").wait_for()
        assert page.get_by_role("link", name="Before.").is_visible()


def test_revoking_a_key_ends_what_is_open(profile: BrowserContext, console_server: ConsoleServer) -> None:
    made = console_server.ask("create_api_key", name="for a browser", scopes=["*:read"])
    page = logged_in_by(profile, console_server, made["api_key"])
    page.goto(f"{console_server.url}memories")
    page.get_by_role("link", name="Tabs, not spaces.").wait_for()
    console_server.ask("revoke_api_key", key_id=made["key"]["key_id"])
    page.get_by_role("alert").filter(has_text="logged out").wait_for()
    page.get_by_role("link", name="Log in again").click()
    page.get_by_label("API key").wait_for()
