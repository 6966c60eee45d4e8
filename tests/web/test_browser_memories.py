"""The console's pages of memories in a real browser: changes while they are open, bulk, and undo."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from support.browser import check_layouts

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page
    from support.browser import ConsoleServer

pytestmark = pytest.mark.slow

HOSTILE = '"><script>document.title="ran"</script><img src=x onerror=\'document.title="ran"\'>\u202e'
VAULT = "The deploy key of the staging server lies in the vault below operations"


@pytest.fixture(scope="module", autouse=True)
def seeds(console_server: ConsoleServer) -> None:
    store(console_server, VAULT, key="vault", tags=["ops"], namespace="team:vault")
    store(console_server, VAULT + " now", key="vault-again", namespace="team:vault")
    store(console_server, HOSTILE, key="hostile", tags=[HOSTILE], author=HOSTILE, unreviewed=True)
    store(console_server, "x" * 400 + " wide " + "word " * 300, key="w" * 200, tags=["t" * 150] * 2)


def store(server: ConsoleServer, content: str, **more: Any) -> str:
    return str(server.ask("store_memory", content=content, **more)["memory_id"])


def inspected(server: ConsoleServer, memory_id: str) -> Any:
    return server.ask("inspect_memory", memory_id=memory_id)


def read(server: ConsoleServer, memory_id: str) -> Any:
    return inspected(server, memory_id)["memory"]


def row(page: Page, name: str) -> Locator:
    return page.locator("tr[data-row]").filter(has=page.get_by_text(name, exact=True))


def test_every_page_of_memories_fits_and_is_accessible(page: Page, console_server: ConsoleServer) -> None:
    memory = store(console_server, "The first word\n\nand the second.", key="paged", tags=["a", "b"])
    console_server.ask("update_memory", memory_id=memory, content="The other word\n\nand the second.")
    console_server.ask("rate_memory", memory_id=memory, rating=-0.5, note="not any more")
    gone = store(console_server, "It was forgotten " + "x" * 400, key="g" * 200, tags=["t" * 150] * 2)
    console_server.ask("forget_memory", memory_id=gone)
    for name, path in {
        "memories": "memories",
        "memory": f"memories/{memory}?version=1&edit=1",
        "duplicates": "memories/duplicates?namespace=team:vault",
        "forgotten": "memories/forgotten",
    }.items():
        page.goto(console_server.url + path)
        page.locator("main h1").wait_for()
        if name == "memories":
            page.get_by_label("Select The other word", exact=True).check()
        check_layouts(page, name)
    assert "ran" not in page.title()


def test_what_another_client_changes_is_seen_without_loading_the_page(
    page: Page, console_server: ConsoleServer
) -> None:
    memory = store(console_server, "as it was", key="live")
    page.goto(f"{console_server.url}memories/{memory}")
    page.locator("main .text").get_by_text("as it was").wait_for()
    page.evaluate("window.kept = true")
    console_server.ask("update_memory", memory_id=memory, content="as it is", tags=["fresh"])
    page.locator("main .text").get_by_text("as it is").wait_for()
    console_server.ask("forget_memory", memory_id=memory)
    page.get_by_text("was forgotten").wait_for()
    page.get_by_role("button", name="Restore it").click()
    page.get_by_text("was forgotten").wait_for(state="detached")
    assert page.evaluate("window.kept") is True
    assert read(console_server, memory)["content"] == "as it is"
    page.get_by_role("button", name="Undo").click()
    page.get_by_text("was forgotten").wait_for()
    page.goto(f"{console_server.url}memories/forgotten")
    page.get_by_role("button", name="Restore as it is").click()
    row(page, "live").wait_for(state="detached")
    assert read(console_server, memory)["content"] == "as it is"
    console_server.ask("forget_memory", memory_id=memory)
    row(page, "live").wait_for()


def test_a_button_that_has_a_value_sends_it(page: Page, console_server: ConsoleServer) -> None:
    memory = store(console_server, "It helped.", key="helpful")
    page.goto(f"{console_server.url}memories/{memory}")
    page.get_by_label("Rate it; why?").fill("it saved an hour")
    page.get_by_role("button", name="Helpful").click()
    page.get_by_text("Rated.").wait_for()
    page.get_by_role("heading", name="Ratings").wait_for()
    (given,) = inspected(console_server, memory)["ratings"]
    assert (given["rating"], given["note"]) == (1, "it saved an hour")


@pytest.mark.promise("console.undo")
def test_of_two_editors_nobody_loses_what_was_typed(page: Page, console_server: ConsoleServer) -> None:
    memory = store(console_server, "\nfirst line\nsecond", key="edited", tags=["a,b", "c"])
    page.goto(f"{console_server.url}memories/{memory}?edit=1")
    field = page.get_by_role("textbox", name="Content")
    assert field.input_value() == "\nfirst line\nsecond"
    field.fill("typed here")
    console_server.ask("update_memory", memory_id=memory, content="written elsewhere")
    page.get_by_role("button", name="Save").click()
    page.get_by_role("alert").filter(has_text="version").wait_for()
    page.locator("main .text").get_by_text("written elsewhere").wait_for()
    assert field.input_value() == "typed here"
    assert read(console_server, memory)["content"] == "written elsewhere"
    page.get_by_role("button", name="Save mine over it").click()
    page.locator("main .text").get_by_text("typed here").wait_for()
    saved = read(console_server, memory)
    assert (saved["content"], saved["tags"], saved["version"]) == ("typed here", ["a,b", "c"], 3)
    page.get_by_role("button", name="Undo").click()
    page.locator("main .text").get_by_text("written elsewhere").wait_for()
    page.get_by_label("Restore version 1", exact=True).click()
    page.locator("main .text").get_by_text("first line").wait_for()
    field.fill("typed while it was forgotten")
    console_server.ask("forget_memory", memory_id=memory)
    page.get_by_text("was forgotten").wait_for()
    page.get_by_role("button", name="Save").click()
    page.get_by_role("alert").filter(has_text="there is no memory").wait_for()
    page.get_by_role("button", name="Restore it").click()
    page.get_by_text("was forgotten").wait_for(state="detached")
    assert field.input_value() == "typed while it was forgotten"
    page.get_by_role("button", name="Save", exact=True).click()
    page.get_by_role("button", name="Save mine over it").click()
    page.locator("main .text").get_by_text("typed while").wait_for()


@pytest.mark.promise("console.undo")
def test_what_is_done_with_several_is_taken_back_whole(page: Page, console_server: ConsoleServer) -> None:
    made = [
        store(
            console_server,
            f"number {number}",
            key=f"several-{number}",
            namespace="team:several",
            tags=[f"own-{number}"],
            metadata={"kept": number},
        )
        for number in range(6)
    ]
    console_server.ask("rate_memory", memory_id=made[0], rating=-1)

    def now() -> list[Any]:
        views = [read(console_server, each) for each in made]
        names = (
            "content",
            "tags",
            "metadata",
            "importance",
            "rating",
            "ratings",
            "superseded_by",
            "deleted_at",
            "namespace",
        )
        return [{name: view.get(name) for name in names} for view in views]

    before = now()
    page.goto(f"{console_server.url}memories?namespace=team:several")
    for act, done in {
        "Add tag": lambda each: "both" in each["tags"],
        "Move there": lambda each: each["namespace"] == "team:several:below",
        "Rate helpful": lambda each: each["rating"] == 1,
        "Merge into the first": lambda each: each["superseded_by"] or len(each["tags"]) > 1,
        "Forget": lambda each: each["deleted_at"],
    }.items():
        page.get_by_label("Select all").check()
        page.get_by_text("6 selected").wait_for()
        if act == "Add tag":
            page.get_by_label("Tag or namespace").fill("both")
        if act == "Move there":
            page.get_by_label("Tag or namespace").fill("team:several:below")
        page.get_by_role("button", name=act, exact=True).click()
        page.get_by_role("button", name="Undo").wait_for()
        assert all(map(done, now())), act
        page.get_by_role("button", name="Undo").click()
        page.get_by_text("Taken back.").wait_for()
        assert now() == before, act
        row(page, "several-5").wait_for()


def test_one_that_changed_meanwhile_is_named_and_the_others_are_done(
    page: Page, console_server: ConsoleServer
) -> None:
    made = [
        store(console_server, f"n {number}", key=f"one-{number}", namespace="team:one") for number in range(3)
    ]
    page.goto(f"{console_server.url}memories?namespace=team:one")
    page.get_by_label("Select all").check()
    console_server.ask("update_memory", memory_id=made[1], content="somebody else's")
    page.get_by_role("button", name="Forget").click()
    alert = page.get_by_role("alert").filter(has_text="n 1")
    alert.wait_for()
    states = [read(console_server, each) for each in made]
    assert ["deleted_at" in each for each in states] == [True, False, True]
    assert states[1]["content"] == "somebody else's"
    page.get_by_role("button", name="Undo").click()
    page.get_by_text("Taken back.").wait_for()
    assert not any("deleted_at" in read(console_server, each) for each in made)
    page.get_by_label("Select all").check()
    page.get_by_label("Tag or namespace").fill("both")
    page.get_by_role("button", name="Add tag", exact=True).click()
    page.get_by_text("3 memories now have the tag “both”.").wait_for()
    console_server.ask("update_memory", memory_id=made[0], content="an agent's")
    console_server.ask("forget_memory", memory_id=made[2])
    page.get_by_role("button", name="Undo").click()
    page.get_by_text("1 of 3 taken back.").wait_for()
    kept, back, gone = (read(console_server, each) for each in made)
    assert (kept["content"], kept["tags"], back.get("tags")) == ("an agent's", ["both"], None)
    assert "deleted_at" in gone


@pytest.mark.promise("console.merging")
def test_what_was_done_with_several_is_said(page: Page, console_server: ConsoleServer) -> None:
    for name in ("first", "second", "third"):
        store(console_server, name, key=name, namespace="team:said")
    page.goto(f"{console_server.url}memories?namespace=team:said&order=oldest")
    page.get_by_label("Select all").check()
    page.get_by_role("button", name="Merge into the first").click()
    page.get_by_text("Merged: first stays, with all tags, and 2 others are hidden from agents.").wait_for()
    page.get_by_role("button", name="Undo").click()
    page.get_by_text("Taken back.").wait_for()
    page.get_by_label("Select all").check()
    page.get_by_role("button", name="Forget").click()
    page.get_by_text("3 memories forgotten: hidden from agents until restored.").wait_for()


def test_pairs_are_merged_or_kept_and_both_can_be_undone(page: Page, console_server: ConsoleServer) -> None:
    page.goto(f"{console_server.url}memories/duplicates?namespace=team:vault")
    pair = page.locator("article.pair")
    done = {"Keep both": "Both stay", "Keep the older one": "Merged: “"}
    for act, said in done.items():
        pair.get_by_role("button", name=act).click()
        page.get_by_text(said).wait_for()
        page.get_by_text("No pair on this page").wait_for()
        page.get_by_role("button", name="Undo").click()
        pair.wait_for()


def test_what_nobody_looked_at_is_reviewed(page: Page, console_server: ConsoleServer) -> None:
    page.goto(f"{console_server.url}memories/unreviewed")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="It is right").click()
    page.get_by_text("Reviewed.").wait_for()
    page.goto(f"{console_server.url}memories/unreviewed")
    page.get_by_text("Nothing awaits a decision here.").wait_for()
    assert "ran" not in page.title()
