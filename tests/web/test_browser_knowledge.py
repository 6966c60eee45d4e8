"""Knowledge and code in a real browser: how pages look, and what another client puts in."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.browser import check_layouts, console_server_in, go_by_keys, logged_in, profile_of
from support.workspaces import folder_of_code

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser, Page
    from support.browser import ConsoleServer

pytestmark = pytest.mark.slow

TEXT = """# Queues

What waits is in Acme Queue.

## When it is full

Then whoever asks is told to ask again. Acme Queue and Bolt DB share a disk.
"""


@pytest.fixture(scope="module", autouse=True)
def seeds(console_server: ConsoleServer) -> None:
    texts = [{"path": f"a/very/long/path/of/folders/without/end/part-{n}.md", "text": TEXT} for n in range(3)]
    texts.append({"path": "a/very/long/path/of/folders/without/end/that/is/broken.ipynb", "text": "{"})
    console_server.ask("ingest_documents", texts=texts, corpus="handbook")
    console_server.ask(
        "define_entities",
        corpus="handbook",
        entities=[
            {"name": "Acme Queue", "type": "vendor", "description": "Holds messages until they are read."},
            {"name": "Bolt DB", "type": "library", "relations": [{"type": "used_by", "to": "Acme Queue"}]},
        ],
    )


def test_a_corpus_its_documents_and_entities_fit_and_are_accessible(
    page: Page, console_server: ConsoleServer
) -> None:
    page.goto(f"{console_server.url}knowledge")
    page.get_by_role("link", name="handbook").click()
    page.get_by_role("heading", level=1, name="handbook").wait_for()
    page.get_by_text("1 file could not be taken in").click()
    page.get_by_text("it is no notebook").wait_for()
    check_layouts(page, "knowledge-corpus")
    page.locator("tr[data-row] a").first.click()
    page.get_by_role("link", name="When it is full").click()
    page.wait_for_url("**#section-*")
    check_layouts(page, "knowledge-document")
    page.go_back()
    page.go_back()
    page.get_by_role("link", name="Entities", exact=True).click()
    page.get_by_role("link", name="Acme Queue").click()
    page.get_by_role("heading", level=2, name="Related to").wait_for()
    check_layouts(page, "knowledge-entity")


def test_a_document_that_another_client_puts_in_is_shown_at_once(
    page: Page, console_server: ConsoleServer
) -> None:
    page.goto(f"{console_server.url}knowledge")
    page.get_by_role("link", name="handbook").click()
    page.get_by_label("Path or title").fill("later")
    page.get_by_label("Path or title").press("Enter")
    page.get_by_text("There are no documents here.").wait_for()
    later = [{"path": "later.md", "text": "# Later\n\nIt came later.\n"}]
    console_server.ask("ingest_documents", texts=later, corpus="handbook")
    page.get_by_role("link", name="Later").wait_for()


def test_a_workspace_and_a_file_of_it_fit_and_are_accessible(chromium: Browser, tmp_path: Path) -> None:
    code = folder_of_code(tmp_path, 3)
    (code / "user.py").write_text("import json\nfrom part_0 import part_0\n\n\ndef use():\n    part_0()\n")
    options = ("--embedder", "none", "--workspace", str(code))
    with console_server_in(tmp_path / "data", *options) as server, profile_of(chromium) as profile:
        while server.ask("search_code_semantic", query="anchor")["freshness"]["state"] != "watching":
            pass
        page = logged_in(profile, server)
        go_by_keys(page, "gc", "**/code")
        page.get_by_role("link", name=str(code)).click()
        page.get_by_label("Symbol").fill("part_0")
        page.get_by_label("Symbol").press("Enter")
        page.get_by_role("heading", level=2, name="Defined").wait_for()
        check_layouts(page, "code-symbols")
        page.get_by_role("link", name="user.py:6").click()
        page.get_by_role("heading", level=2, name="Imports").wait_for()
        check_layouts(page, "code-file")
