"""The map in a real browser: drawn, moved and searched, by pointer and keys; what agents wrote stays text."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.browser import check_layouts, confirm

if TYPE_CHECKING:
    from playwright.sync_api import Page
    from support.browser import ConsoleServer

pytestmark = pytest.mark.slow

HOSTILE = "<img src=x onerror=alert(1)><script>alert(1)</script> \u202e{{7*7}}"
CORNER = "canvas => [...canvas.getContext('2d').getImageData(2, 2, 1, 1).data].join()"
COLOURS = """canvas => {
    const found = new Set();
    const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
    for (let at = 0; at < data.length; at += 4) found.add(data[at] << 16 | data[at + 1] << 8 | data[at + 2]);
    return found.size;
}"""
PICTURE = "canvas => canvas.toDataURL()"
NEARNESS = "canvas => canvas.__zoom.k"  # where d3 keeps it
LIVE = {"namespace": "project:live", "scope": "public"}


@pytest.fixture(scope="module", autouse=True)
def seeds(console_server: ConsoleServer) -> None:
    console_server.ask("create_session", session_id="release", purpose="Plan the release")
    old = console_server.ask("store_memory", content="Mondays.", key="monday")["memory_id"]
    console_server.ask("store_memory", content="Tuesdays.", key="tuesday", supersedes=old)
    console_server.ask("store_memory", content="It is late.", key="late", conversation_id="release")
    console_server.ask("store_memory", content=HOSTILE, conversation_id="release")


def opened(page: Page, server: ConsoleServer, query: str = "") -> Page:
    """Open the map, without motion, and wait until it is drawn."""
    page.emulate_media(reduced_motion="reduce")
    page.goto(f"{server.url}map{query}")
    page.locator("section[data-ready]").wait_for()
    settle(page)
    return page


def settle(page: Page) -> None:
    """Wait until what was asked for is drawn."""
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def look_again(page: Page) -> None:
    """Have the page fetched again at once, as when somebody comes back to it."""
    page.evaluate("() => document.dispatchEvent(new Event('visibilitychange'))")


def test_the_map_fits_and_is_accessible(page: Page, console_server: ConsoleServer) -> None:
    opened(page, console_server)
    check_layouts(page, "map")


def test_nodes_are_drawn_in_the_colours_of_the_theme(page: Page, console_server: ConsoleServer) -> None:
    page.emulate_media(color_scheme="light")
    opened(page, console_server)
    canvas = page.get_by_role("img", name="Map of 4 memories")
    assert canvas.evaluate(COLOURS) > 10
    light = canvas.evaluate(CORNER)
    page.get_by_role("button", name="Theme").click()
    settle(page)
    assert canvas.evaluate(CORNER) != light
    legend = page.get_by_role("list", name="Legend")
    assert legend.get_by_role("listitem").all_text_contents() == ["semantic 4", "session 1"]


def test_keys_move_and_select_and_lead_to_the_list(page: Page, console_server: ConsoleServer) -> None:
    opened(page, console_server)
    canvas = page.get_by_role("img", name="Map of")
    canvas.focus()
    before = canvas.evaluate(PICTURE)
    for key in ("ArrowLeft", "+", "-", "+"):
        page.keyboard.press(key)
        settle(page)
        after = canvas.evaluate(PICTURE)
        assert after != before, key
        before = after
    page.get_by_label("Search in the map").fill("TUES")
    page.get_by_text("1 found").wait_for()
    page.keyboard.press("Enter")
    selected = page.get_by_role("status", name="Selected")
    selected.get_by_role("heading", name="Tuesdays.").wait_for()
    linked = selected.get_by_role("list", name="Linked to")
    assert "supersedes" in (linked.text_content() or "")
    linked.get_by_role("button", name="Mondays.").click()
    selected.get_by_role("heading", name="Mondays.").wait_for()
    canvas.focus()
    page.keyboard.press("Escape")
    selected.get_by_text("Nothing is selected.").wait_for()
    canvas.focus()
    for _ in range(6):  # the buttons and the legend, then the search
        page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "map-find"
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    name = page.evaluate("document.activeElement.textContent")
    selected.get_by_role("heading", name=name).wait_for()


def test_a_click_selects_what_is_there(page: Page, console_server: ConsoleServer) -> None:
    opened(page, console_server)
    page.get_by_label("Search in the map").fill("release")
    page.keyboard.press("Enter")
    selected = page.get_by_role("status", name="Selected")
    selected.get_by_role("heading", name="Plan the release").wait_for()
    assert (selected.get_by_role("link", name="Open").get_attribute("href") or "").endswith(
        "sessions?id=release"
    )
    canvas = page.get_by_role("img", name="Map of")
    canvas.focus()
    page.keyboard.press("Escape")
    selected.get_by_text("Nothing is selected.").wait_for()
    settle(page)
    canvas.click()  # in the middle of it, where the search has brought the node
    selected.get_by_role("heading", name="Plan the release").wait_for()


def test_what_agents_write_stays_text(page: Page, console_server: ConsoleServer) -> None:
    page.on("dialog", lambda dialog: pytest.fail(dialog.message))
    opened(page, console_server, "?colour=namespace")
    page.get_by_label("Search in the map").fill("<img")
    page.keyboard.press("Enter")
    selected = page.get_by_role("status", name="Selected")
    selected.get_by_role("heading", name="<img src=x onerror=alert(1)>").wait_for()
    assert page.locator("main img, main script").count() == 0


def test_a_plane_without_vectors_says_so(page: Page, console_server: ConsoleServer) -> None:
    opened(page, console_server, "?kind=plane")
    assert page.get_by_text("no memory here has a vector yet").is_visible()


def test_a_map_seen_as_another_agent_is_drawn_as_that_one(page: Page, console_server: ConsoleServer) -> None:
    public = {"namespace": "project:open", "scope": "public"}
    console_server.ask("store_memory", content="For all.", key="public", **public)
    page.goto(f"{console_server.url}?as=someone&as_user=else")
    confirm(page, console_server.code(page))
    page.get_by_text("You see what someone may read").wait_for()
    with page.expect_request("**/memory_map?as=someone&as_user=else"):
        opened(page, console_server, "?as=someone&as_user=else")
    assert page.get_by_role("img", name="Map of 1 memory;").is_visible()


@pytest.mark.promise("console.map-changes")
def test_an_open_map_follows_what_changes_and_loses_nothing(
    page: Page, console_server: ConsoleServer
) -> None:
    ask = console_server.ask
    page.emulate_media(reduced_motion="reduce")
    page.goto(f"{console_server.url}map?namespace=project:live")
    page.get_by_text("There are no memories here.").wait_for()
    assert not page.locator("section[data-map]").is_visible()
    kept = ask("store_memory", content="Stays.", key="kept", **LIVE)["memory_id"]
    gone = ask("store_memory", content="Goes.", key="gone", **LIVE)["memory_id"]
    look_again(page)
    canvas = page.get_by_role("img", name="Map of 2 memories")
    canvas.wait_for()
    page.get_by_label("Search in the map").fill("stays")
    page.keyboard.press("Enter")
    selected = page.get_by_role("status", name="Selected")
    selected.get_by_role("heading", name="Stays.").wait_for()
    canvas.focus()
    page.keyboard.press("+")
    settle(page)
    near = canvas.evaluate(NEARNESS)
    assert near > 4
    ask("store_memory", content="Comes.", key="new", conversation_id="talk", **LIVE)
    ask("forget_memory", memory_id=gone)
    ask("update_memory", memory_id=kept, kind="episodic")
    look_again(page)
    told = page.get_by_role("status", name="Changes")
    told.get_by_text("New: 1 memory, 1 conversation. Gone: 1 memory. Changed: 1 memory.").wait_for()
    page.get_by_role("img", name="Map of 2 memories; sessions, conversations and entities: 1").wait_for()
    selected.get_by_role("heading", name="Stays.").wait_for()
    selected.get_by_text("episodic").wait_for()
    assert page.evaluate("document.activeElement.localName") == "canvas"
    assert canvas.evaluate(NEARNESS) == near
    assert page.get_by_label("Search in the map").input_value() == "stays"
    told.get_by_role("button", name="Show what is new").click()
    page.get_by_role("list", name="Legend").get_by_text("conversation").wait_for()
    largest = page.locator(".map-largest").get_by_role("button", name="Comes.")
    largest.focus()
    ask("update_memory", key="new", content="Comes again.", tags=["other"], namespace=LIVE["namespace"])
    ask("forget_memory", memory_id=kept)
    look_again(page)
    selected.get_by_text("What was selected is gone.").wait_for()
    assert page.evaluate("document.activeElement.textContent") == "Comes again."
    ask("forget_memory", key="new", namespace=LIVE["namespace"])  # of which the page hears
    page.get_by_text("There are no memories here.").wait_for()
    assert page.locator("canvas").count() == 0


def test_keys_go_from_node_to_node_and_the_address_names_it(
    page: Page, console_server: ConsoleServer
) -> None:
    opened(page, console_server)
    page.get_by_role("img", name="Map of").focus()
    selected = page.get_by_role("status", name="Selected")
    legend = page.get_by_role("list", name="Legend").get_by_role("button", name="semantic")
    before = page.get_by_role("img", name="Map of").evaluate(PICTURE)
    legend.click()
    assert legend.get_attribute("aria-pressed") == "true"
    settle(page)
    assert page.get_by_role("img", name="Map of").evaluate(PICTURE) != before
    page.get_by_role("img", name="Map of").focus()
    seen = set()
    for way in ("Right", "Down", "Left", "Left", "Up", "Up", "Right", "Down"):
        page.keyboard.press(f"Shift+Arrow{way}")
        seen |= set(selected.get_by_role("heading").all_text_contents())
    assert len(seen) > 1
    assert "Plan the release" not in seen, "it is no memory, and these alone are shown"
    name = selected.get_by_role("heading").text_content() or ""
    page.wait_for_url("**#node=*")
    page.reload()
    selected.get_by_role("heading", name=name).wait_for()
    page.goto(
        f"{console_server.url}map#node=memory%3Anone"
    )  # at once: before the selection reaches the address
    page.get_by_text("is not on this map").wait_for()
    page.reload()
    page.get_by_text("is not on this map").wait_for()
    page.get_by_role("img", name="Map of").focus()
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "map-find"


def test_a_memory_leads_to_where_it_lies_on_the_map(page: Page, console_server: ConsoleServer) -> None:
    page.goto(f"{console_server.url}map?order=newest")
    page.get_by_role("rowheader").get_by_role("link", name="late").click()
    page.get_by_role("link", name="On the map").click()
    selected = page.get_by_role("status", name="Selected")
    selected.get_by_role("heading", name="late").wait_for()
