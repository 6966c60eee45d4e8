"""The search debugger and what was told, in a real browser: live from a second client, keys, layouts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.browser import check_layouts, go_by_keys

if TYPE_CHECKING:
    from playwright.sync_api import Page
    from support.browser import ConsoleServer

pytestmark = pytest.mark.slow

HOSTILE = '"><script>alert(1)</script><img src=x onerror=alert(1)>\u202e heron'
WRAPPED = """() => [...document.querySelectorAll(".bar-row .num")].filter((each) => {
  const range = document.createRange();
  range.selectNodeContents(each);
  return range.getClientRects().length > 1;
}).map((each) => each.textContent)"""


@pytest.fixture(scope="module", autouse=True)
def seeds(console_server: ConsoleServer) -> None:
    texts = {
        "mascot": "The mascot of the company is a grey heron, chosen in spring",
        "releases": "Releases are cut on Thursday from the branch called stable",
        "invoices": "Invoices are numbered by year and quarter",
        "heron-colour": "The heron on the website is painted in teal, the one on paper in grey",
        "hostile": HOSTILE,
    }
    for key, text in texts.items():
        console_server.ask("store_memory", content=text, key=key, tags=["birds"] if "heron" in text else [])


def test_a_search_is_explained_in_every_mode(page: Page) -> None:
    go_by_keys(page, "gf", "**/search")
    page.get_by_label("Query").fill("gray heron mascto")
    page.get_by_role("button", name="Search").click()
    page.locator(".tabs").get_by_role("link", name="Memories", exact=True).click()
    page.get_by_role("heading", name="semantic").wait_for()
    assert page.get_by_role("heading", name="recall").is_visible()
    assert page.locator("meter[aria-label=words]").first.is_visible()
    assert page.evaluate(WRAPPED) == []
    check_layouts(page, "search")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url("**/memories/*")


def test_documents_and_messages_have_bars_too(page: Page, console_server: ConsoleServer) -> None:
    text = "# Herons\n\nA grey heron hunts in the reeds.\n\n# Storks\n\nA stork hunts frogs.\n"
    console_server.ask("ingest_documents", texts=[{"path": "birds.md", "text": text}])
    page.goto(f"{console_server.url}search?in=documents&q=heron+hunts")
    page.locator("meter[aria-label=coverage]").first.wait_for()
    page.get_by_label("Why is this missing").fill("never.md")
    page.get_by_role("button", name="Search").click()
    page.get_by_text("There is no such passage or document").first.wait_for()
    check_layouts(page, "search-documents")
    session = console_server.ask("create_session", purpose="birds")["session_id"]
    console_server.ask("add_message", session_id=session, content="a grey heron stood in the reeds")
    page.goto(f"{console_server.url}search?in=session&session={session}&q=heron")
    page.locator("meter[aria-label=words]").first.wait_for()
    assert page.get_by_text("it contains the literal query").first.is_visible()
    check_layouts(page, "search-session")


def test_what_another_client_recalls_is_shown_by_itself(page: Page, console_server: ConsoleServer) -> None:
    page.goto(f"{console_server.url}told")
    page.get_by_text("No injection matches these filters").wait_for()
    console_server.ask("recall_context", task="which grey heron is our mascot")
    console_server.ask("recall_context", task=HOSTILE, max_tokens=100)
    page.get_by_text("which grey heron is our mascot").wait_for()
    check_layouts(page, "told")
    page.get_by_role("row", name="which grey heron").get_by_role("rowheader").get_by_role("link").click()
    page.get_by_role("link", name="mascot").first.wait_for()
    check_layouts(page, "telling")
    page.get_by_role("link", name="Other injections of it").first.click()
    page.wait_for_url("**/told?memory=*")
    page.get_by_text("which grey heron is our mascot").wait_for()
