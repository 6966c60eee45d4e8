"""Confirmations in a real browser: a code or a key is typed first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.browser import check_accessible, check_layouts, confirm, logged_in_by, profile_of

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page
    from support.browser import ConsoleServer

pytestmark = [pytest.mark.slow, pytest.mark.promise("console.confirmed")]

WRONG = "AAAA-AAAA"
CONFIRM = "Confirm it"


def keys_named(console_server: ConsoleServer, name: str) -> int:
    return sum(each["name"] == name for each in console_server.ask("list_api_keys")["keys"])


def test_a_key_is_made_after_the_code_was_typed_and_not_before(
    page: Page, console_server: ConsoleServer
) -> None:
    page.goto(f"{console_server.url}people")
    page.get_by_text("Make a key").click()
    page.get_by_label("Name", exact=True).fill("by code")
    page.get_by_role("button", name="Make it").click()
    dialog = page.get_by_role("dialog", name=CONFIRM)
    dialog.get_by_text("press Enter there for a new one").wait_for()
    check_accessible(page)
    assert page.get_by_label("Code", exact=True).evaluate("field => field === document.activeElement")
    page.get_by_role("button", name="Cancel").click()
    page.get_by_role("alert").filter(has_text="Making a key needs the code").wait_for()
    page.get_by_role("button", name="Make it").click()
    confirm(page, WRONG)
    dialog.get_by_role("alert").filter(has_text="This is not the code").wait_for()
    assert keys_named(console_server, "by code") == 0
    confirm(page, console_server.code(page))
    page.locator("#made output").filter(has_text="gr_").wait_for()
    assert keys_named(console_server, "by code") == 1


def test_who_came_by_a_key_types_it_again(chromium: Browser, console_server: ConsoleServer) -> None:
    key = console_server.ask("create_api_key", name="to log in", scopes=["*"])["api_key"]
    with profile_of(chromium) as profile:
        page = logged_in_by(profile, console_server, key)
        page.goto(f"{console_server.url}people")
        page.get_by_text("Make a key").click()
        page.get_by_label("Name", exact=True).fill("by key")
        page.get_by_role("button", name="Make it").click()
        confirm(page, "gr_nonsense")
        page.get_by_role("dialog").get_by_role("alert").filter(has_text="not the key").wait_for()
        confirm(page, key)
        page.locator("#made output").filter(has_text="gr_").wait_for()


@pytest.mark.parametrize("script", [True, False])
def test_seeing_as_and_the_download_of_the_audit_log_ask_also_without_script(
    chromium: Browser,
    console_server: ConsoleServer,
    script: bool,  # noqa: FBT001 - of the table
) -> None:
    key = console_server.ask("create_api_key", name="to log in", scopes=["*"])["api_key"]
    session = console_server.ask("create_session", purpose="p")["session_id"]
    with profile_of(chromium, java_script_enabled=script) as profile:
        page = logged_in_by(profile, console_server, key)
        page.goto(f"{console_server.url}sessions/{session}")
        page.get_by_text("See it as another agent does").click()
        page.get_by_label("Agent", exact=True).fill("scribe")
        page.get_by_role("button", name="See it as this agent").click()
        page.get_by_role("heading", name=CONFIRM).wait_for()
        if script:
            check_layouts(page, "confirm")
        confirm(page, "gr_nonsense")
        page.get_by_role("alert").filter(has_text="This is not the key").wait_for()
        confirm(page, key)
        page.get_by_text("You see what scribe may read").wait_for()
        page.goto(f"{console_server.url}audit")
        page.get_by_role("link", name="Download").click()
        page.get_by_role("heading", name=CONFIRM).wait_for()
        with page.expect_download() as loaded:
            confirm(page, key)
        assert loaded.value.suggested_filename == "greenroom-audit.jsonl"


def test_a_passport_is_made_after_the_code_was_typed(page: Page, console_server: ConsoleServer) -> None:
    session = console_server.ask("create_session", purpose="p")["session_id"]
    page.goto(f"{console_server.url}sessions/{session}/passports")
    page.get_by_role("button", name="Make the passport").click()
    confirm(page, console_server.code(page))
    page.locator("output").filter(has_text=":").wait_for()
