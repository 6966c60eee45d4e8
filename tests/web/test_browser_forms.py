"""The console on a phone and without a script: menus, filters, forms, and pages of what was written."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.browser import check_accessible, check_layouts, logged_in, profile_of

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page
    from support.browser import ConsoleServer

pytestmark = pytest.mark.slow

PHONE = {"width": 390, "height": 844}
WRITTEN = """# Deploy

Read [the runbook](https://wiki.example/run) first; `make` does the rest.

1. build
2. tag

| step | minutes | who has to know of it, and what they do when it fails on a Friday afternoon |
|------|--------:|---|
| build | 4 | averyveryverylongwordthatdoesnotfitintothecellofatableonaphone |

```sh
make all && ./smoke --area checkout --with-a-long-option-that-does-not-fit --and-another-one
```

> said
"""


@pytest.fixture(scope="module", autouse=True)
def seeds(console_server: ConsoleServer) -> None:
    console_server.ask("create_session", session_id="release", purpose="plan the release")
    console_server.ask("add_message", session_id="release", content=WRITTEN)
    console_server.ask("store_memory", content=WRITTEN, key="deploy", tags=["code"])


def memory_id(server: ConsoleServer) -> str:
    return str(server.ask("browse_memories")["memories"][-1]["memory_id"])


def test_pages_of_what_was_written_and_forms_fit_and_are_accessible(
    page: Page, console_server: ConsoleServer
) -> None:
    written = f"memories/{memory_id(console_server)}"
    paths = ("memories/new", written, f"{written}?raw=1", "sessions/release", "sessions/release/context")
    for path in (*paths, "people/console"):
        page.goto(console_server.url + path)
        page.locator("main h1").wait_for()
        check_layouts(page, path.replace("/", "-").replace("?", "-"))


def test_a_phone_adds_a_memory_and_notes_a_decision_without_a_script(
    chromium: Browser, console_server: ConsoleServer
) -> None:
    with profile_of(chromium, viewport=PHONE, java_script_enabled=False) as profile:
        page = logged_in(profile, console_server)
        page.get_by_role("button", name="Menu").click()
        page.get_by_role("link", name="Memories", exact=True).first.click()
        page.get_by_role("link", name="Add a memory").click()
        page.get_by_label("What should agents know?").fill("The hull is **oak**.")
        page.get_by_role("button", name="Add it").click()
        page.get_by_role("heading", level=1, name="The hull is oak.").wait_for()
        page.goto(f"{console_server.url}sessions/release")
        page.get_by_role("link", name="Note a decision").click()
        page.get_by_label("What was decided?").fill("We release on Thursday")
        page.get_by_label("Why?").fill("nobody is away")
        page.get_by_role("button", name="Note the decision").click()
        page.locator("#c-decisions ~ ul").get_by_text("We release on Thursday").wait_for()
        assert page.get_by_text("nobody is away", exact=True).is_visible()


def test_on_a_phone_navigation_and_filters_take_little_room_until_they_are_wanted(
    chromium: Browser, console_server: ConsoleServer
) -> None:
    with profile_of(chromium, viewport=PHONE, java_script_enabled=False) as profile:
        page = logged_in(profile, console_server)
        for path in ("memories", "sessions", "audit", "told", "map", "search"):
            page.goto(console_server.url + path)
            bar = page.locator("header.bar").bounding_box()
            assert bar is not None
            assert bar["height"] < 60, path
            assert not page.get_by_role("navigation", name="Views").is_visible()
            filters = page.locator("form.filters").first.bounding_box()
            assert filters is not None
            assert filters["height"] < 110, path
        page.goto(f"{console_server.url}memories?type=semantic")
        page.get_by_role("button", name="Filters 1").click()
        page.get_by_label("Age", exact=True).select_option("today")
        page.get_by_role("button", name="Filter", exact=True).click()
        page.wait_for_url("**/memories?*age=day*")


def test_open_menus_and_filters_are_accessible(chromium: Browser, console_server: ConsoleServer) -> None:
    with profile_of(chromium, viewport=PHONE) as profile:
        page = logged_in(profile, console_server)
        page.goto(f"{console_server.url}memories")
        page.get_by_role("button", name="Filters").click()
        check_accessible(page)
        page.keyboard.press("Escape")
        page.get_by_role("button", name="Menu").click()
        check_accessible(page)
        page.keyboard.press("Escape")
        assert not page.get_by_role("navigation", name="Views").is_visible()


def test_scopes_of_a_key_are_chosen_by_boxes(page: Page, console_server: ConsoleServer) -> None:
    page.goto(f"{console_server.url}people")
    page.get_by_text("Make a key").click()
    page.get_by_label("Name", exact=True).fill("two scopes")
    page.get_by_label("*:read").uncheck()
    page.get_by_label("memory:read").check()
    page.get_by_label("sessions:read").check()
    page.get_by_role("button", name="Make it").click()
    page.locator("#confirmation").fill(console_server.code(page))
    page.get_by_role("button", name="Confirm").click()
    page.get_by_text("The key, which is shown only once").wait_for()
    made = console_server.ask("list_api_keys")["keys"]
    assert [each["scopes"] for each in made if each["name"] == "two scopes"] == [
        ["memory:read", "sessions:read"]
    ]


CROSSING = """() => [...document.querySelectorAll(".list tbody [data-label] *")].filter((each) => {
  const beginsAt = each.closest("[data-label]").getBoundingClientRect().left + 100;
  const box = each.getBoundingClientRect();
  return box.width && each.checkVisibility({ visibilityProperty: true }) && box.left < beginsAt;
}).map((each) => each.outerHTML)"""


def test_on_a_phone_nothing_of_a_cell_stands_below_its_label(
    chromium: Browser, console_server: ConsoleServer
) -> None:
    with profile_of(chromium, viewport=PHONE) as profile:
        page = logged_in(profile, console_server)
        console_server.ask("create_api_key", name="a key", scopes=["*:read"], user="ann", agent="hers")
        for path in ("people", f"memories/{memory_id(console_server)}", "audit", ""):
            page.goto(console_server.url + path)
            page.locator("main .list tbody tr").first.wait_for()
            assert page.evaluate(CROSSING) == [], path
