"""A session in a real browser: it grows while others write, is followed, answered, ended and opened again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.browser import check_layouts, confirm

if TYPE_CHECKING:
    from playwright.sync_api import Page
    from support.browser import ConsoleServer

pytestmark = pytest.mark.slow

LONG = " ".join(f"line {number} of a longer text, which takes some room;" for number in range(60))
IS_AT_END = "document.getElementById('end').getBoundingClientRect().top < innerHeight + 120"


@pytest.fixture(scope="module", autouse=True)
def seeds(console_server: ConsoleServer) -> None:
    ask = console_server.ask
    ask("create_session", session_id="release", purpose="plan the release", project_id="apollo")
    first = ask("add_message", session_id="release", content="Shall we release on Friday?")["message_id"]
    ask("add_message", session_id="release", content="Rather on Monday.", parent_message_id=first)
    for number in range(30):
        ask("add_message", session_id="release", content=f"Point {number}", metadata={"number": number})
    ask("add_message", session_id="release", content=LONG, visibility="private")
    ask(
        "record_context",
        session_id="release",
        files_accessed=[{"path": "docs/release.md", "note": "the plan"}],
        decisions=[{"what": "release on Monday", "why": "nobody is there on Friday"}],
        workflow_state={
            "task": "the release",
            "status": "blocked",
            "blockers": ["the tests"],
            "next": ["tag it"],
        },
    )
    ask("migrate_session", session_id="release", to_tool="zed", note="the tests are next")
    ask("export_session", session_id="release")
    for number in range(12):
        ask("create_session", session_id=f"work-{number}", purpose=f"a piece of work {number}")


@pytest.mark.parametrize(
    "path", ["sessions", *(f"sessions/release{tab}" for tab in ("", "/context", "/passports", "/history"))]
)
def test_every_page_fits_and_is_accessible(page: Page, console_server: ConsoleServer, path: str) -> None:
    page.goto(console_server.url + path)
    page.locator("main h1").wait_for()
    check_layouts(page, path.replace("/", "-"))


def test_a_session_opens_at_its_title_which_stays_in_sight(page: Page, console_server: ConsoleServer) -> None:
    page.goto(f"{console_server.url}sessions/release")
    title = page.get_by_role("heading", level=1)
    title.wait_for()
    assert page.evaluate("scrollY") == 0
    page.get_by_role("link", name="Newest", exact=True).click()
    page.wait_for_function(IS_AT_END)
    box = title.bounding_box()
    assert box is not None
    assert 0 <= box["y"] < 80


def test_a_transcript_grows_for_who_reads_at_its_end(page: Page, console_server: ConsoleServer) -> None:
    page.goto(f"{console_server.url}sessions/release")
    page.get_by_role("link", name="Newest", exact=True).click()
    page.wait_for_function(IS_AT_END)
    said = console_server.ask("add_message", session_id="release", content="Somebody else writes " + LONG)
    message = page.locator(f"#m-{said['message_id']}")
    message.wait_for()
    page.wait_for_function(IS_AT_END)
    assert page.locator(".new-messages").count() == 0


def test_who_reads_further_up_is_told_and_stays_there(page: Page, console_server: ConsoleServer) -> None:
    page.goto(f"{console_server.url}sessions/release")
    page.wait_for_url("**from=*")
    assert page.evaluate("scrollY") == 0
    for number in range(2):
        console_server.ask("add_message", session_id="release", content=f"late {number}")
    page.get_by_role("button", name="2 new").wait_for()
    assert page.evaluate("scrollY") == 0
    page.get_by_role("button", name="2 new").click()
    page.get_by_text("late 1").wait_for()
    page.wait_for_function(IS_AT_END)
    page.wait_for_url("**/sessions/release")


def test_a_message_is_answered_and_a_session_ended_and_opened_again(
    page: Page, console_server: ConsoleServer
) -> None:
    console_server.ask("create_session", session_id="talk", purpose="talk")
    console_server.ask("add_message", session_id="talk", content="A question?")
    page.goto(f"{console_server.url}sessions/talk")
    page.get_by_role("link", name="Reply").click()
    page.get_by_label("Message", exact=True).fill("<b>An answer</b>")
    page.get_by_role("button", name="Send").click()
    page.locator(".transcript").get_by_text("<b>An answer</b>").wait_for()
    assert "A question?" in (page.locator(".answers").text_content() or "")
    page.get_by_role("button", name="End session").click()
    page.get_by_role("button", name="Undo").click()
    page.get_by_role("button", name="End session").wait_for()
    assert console_server.ask("get_session", session_id="talk")["session"]["status"] == "active"


def test_a_passport_is_made_and_its_claim_shown(page: Page, console_server: ConsoleServer) -> None:
    page.goto(f"{console_server.url}sessions/release/passports")
    page.get_by_label("Valid for").select_option("an hour")
    page.get_by_label("It can be redeemed once").check()
    page.get_by_role("button", name="Make the passport").click()
    confirm(page, console_server.code(page))
    page.get_by_text("GREENROOM:C1:").wait_for()
    page.locator("table").get_by_text("once").wait_for()


def test_a_refusal_is_said_beside_its_form(page: Page, console_server: ConsoleServer) -> None:
    page.goto(f"{console_server.url}sessions/release/context")
    page.get_by_text("Record something").click()
    page.get_by_label("Decisions, as JSON").fill('[{"what": ""}]')
    page.get_by_role("button", name="Record").click()
    page.locator("form .refusal").filter(has_text="decisions").wait_for()
    page.get_by_label("Decisions, as JSON").fill('[{"what": "say it in the console"}]')
    page.get_by_role("button", name="Record").click()
    page.locator("#c-decisions ~ ul").get_by_text("say it in the console").wait_for()
