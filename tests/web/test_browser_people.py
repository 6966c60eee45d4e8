"""Keys and people in a real browser: a key that is shown once, logging others out, and erasing by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.browser import confirm, console_server_in, logged_in, logged_in_by, profile_of

from greenroom.transports.web.console.views.table import ENTRIES

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser, Page
    from support.browser import ConsoleServer

pytestmark = pytest.mark.slow

HOSTILE = '"><script>alert(1)</script>'
OUT = "You are logged out"


def key_of(console_server: ConsoleServer, **given: object) -> tuple[str, str]:
    """Have a key made; return it and what it is named by."""
    made = console_server.ask("create_api_key", **{"name": "n", "scopes": ["*:read"], **given})
    return made["api_key"], made["key"]["key_id"]


@pytest.mark.promise("console.key-once")
def test_a_key_is_shown_until_the_page_is_left(page: Page, console_server: ConsoleServer) -> None:
    page.goto(f"{console_server.url}people")
    page.get_by_text("Make a key").click()
    page.get_by_label("Name", exact=True).fill(HOSTILE)
    page.get_by_label("*:read").uncheck()
    page.get_by_role("button", name="Make it").click()
    page.get_by_role("alert").filter(has_text="scopes").wait_for()
    page.get_by_label("*:read").check()
    page.get_by_label("memory:read").check()
    page.get_by_role("button", name="Make it").click()
    confirm(page, console_server.code(page))
    shown = page.locator("#made output")
    shown.wait_for()
    key = shown.inner_text()
    assert key.startswith("gr_")
    page.get_by_role("rowheader", name=HOSTILE).wait_for()
    assert shown.inner_text() == key  # also now that the page was fetched again
    page.reload()
    page.get_by_role("rowheader", name=HOSTILE).wait_for()
    assert key not in page.content()
    assert not page.locator("#made").is_visible()


def test_a_key_that_is_revoked_logs_its_browsers_out(
    page: Page, chromium: Browser, console_server: ConsoleServer
) -> None:
    key, key_id = key_of(console_server)
    with profile_of(chromium) as profile:
        other = logged_in_by(profile, console_server, key)
        other.goto(f"{console_server.url}memories")
        page.goto(f"{console_server.url}people")
        row = page.locator(f"#key-{key_id}")
        row.get_by_text("Manage").click()
        row.get_by_text("Revoke…").click()
        row.get_by_role("button", name="Revoke for good").click()
        page.get_by_text(f"({key_id}) was revoked").wait_for()
        row.wait_for(state="detached")
        other.get_by_text(OUT).wait_for()
        other.reload()
        other.get_by_label("API key").wait_for()


def test_a_rotated_key_is_shown_and_both_are_listed(page: Page, console_server: ConsoleServer) -> None:
    _, key_id = key_of(console_server, name="old")
    page.goto(f"{console_server.url}people")
    row = page.locator(f"#key-{key_id}")
    row.get_by_text("Manage").click()
    row.get_by_role("button", name="Rotate").click()
    confirm(page, console_server.code(page))
    page.locator("#made output").wait_for()
    page.get_by_role("rowheader", name="old").nth(1).wait_for()
    assert page.locator("#made output").inner_text().startswith("gr_")


def test_a_user_is_erased_when_the_name_is_typed(page: Page, console_server: ConsoleServer) -> None:
    key_of(console_server, user="zoe", name="of zoe")
    page.goto(f"{console_server.url}people")
    row = page.locator("section[aria-labelledby=seen] tr").filter(has_text="zoe")
    row.get_by_text("Erase…").click()
    row.get_by_role("button", name="Count what there is").click()
    row.locator("output").filter(has_text="keys: 1").wait_for()
    name = row.get_by_label("Type the user's name")
    for wrong in ("zo", "Zoe"):
        name.fill(wrong)
        row.get_by_role("button", name="Erase for good").click()
        assert not name.evaluate("field => field.checkValidity()")
        assert any(each["user"] == "zoe" for each in console_server.ask("list_api_keys")["keys"])
    name.fill("zoe")
    row.get_by_role("button", name="Erase for good").click()
    page.get_by_role("status").filter(has_text="greenroom erase --finish").wait_for()
    assert not [each for each in console_server.ask("list_api_keys")["keys"] if each["user"] == "zoe"]


@pytest.mark.promise("console.connected")
def test_every_process_shows_all_and_logs_browsers_of_others_out(chromium: Browser, tmp_path: Path) -> None:
    folder = tmp_path / "data"
    with (
        console_server_in(folder, "--embedder", "none") as owner,
        console_server_in(folder, "--embedder", "none") as follower,
        profile_of(chromium) as profile,
        profile_of(chromium) as other,
    ):
        key, _ = key_of(owner, agent="far-away", scopes=["*"])
        there = logged_in_by(other, follower, key)
        for entry in reversed(ENTRIES):
            there.goto(follower.url + entry.name)
            there.locator("main h1").wait_for()
            assert not there.locator("main p.refusal:visible").count(), entry.name
        page = logged_in(profile, owner)
        for server in (owner, follower):
            page.get_by_role("heading", name=f"Process {server.process.pid}").wait_for()
        page.get_by_role("cell", name="far-away").wait_for()
        page.goto(f"{owner.url}people")
        row = page.locator("section[aria-labelledby=browsers] tr").filter(has_text="far-away")
        row.get_by_role("button", name="Log out").click()
        there.get_by_text(OUT).wait_for()
