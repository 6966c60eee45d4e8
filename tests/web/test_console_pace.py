"""What the console costs others: pages are made in slices, in turns, and once for tabs that show the same."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
import trio
import trio.testing
from support.agents import begin, say
from support.console import Looker, Shown, looker
from support.keyed import create_key, premises

from greenroom.actors import StoreMemory
from greenroom.transports.web.console.page_cache import MOST_CACHED, PASSES, PageCache, Turns

if TYPE_CHECKING:
    from support.agents import Enter
    from support.https import Answer

SESSION = "/sessions/s"


# -- slices ------------------------------------------------------------------------------------------


@pytest.mark.promise("console.pace")
async def test_pages_take_turns_and_leave_the_event_loop_to_others_between() -> None:
    turns, passed = Turns(0.0), 0  # each part is a slice
    made: list[tuple[str, int]] = []
    whole: dict[str, str] = {}

    async def others() -> None:
        nonlocal passed
        while True:
            passed += 1
            await trio.lowlevel.checkpoint()

    def parts(name: str) -> Iterator[str]:
        for number in range(5):
            made.append((name, passed))
            yield f"{name}{number} "

    async def page(name: str) -> None:
        whole[name] = await turns.join(parts(name))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(others)
        async with trio.open_nursery() as pages:
            for name in "abc":
                pages.start_soon(page, name)
        nursery.cancel_scope.cancel()
    assert whole == {name: " ".join(f"{name}{number}" for number in range(5)) + " " for name in "abc"}
    passes = [at for _, at in made]
    assert min(after - before for before, after in pairwise(passes)) >= PASSES
    assert {name for name, _ in made[:3]} == set("abc"), "one waits until another is whole"


async def test_a_page_that_is_given_up_keeps_no_other_from_being_made() -> None:
    turns = Turns(0.0)

    def endless() -> Iterator[str]:
        while True:
            yield "x"

    def failing() -> Iterator[str]:
        yield "x"
        raise ValueError("no such value")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(turns.join, endless())
        with pytest.raises(ValueError, match="no such value"):
            await turns.join(failing())
        assert await turns.join(["whole"]) == "whole"
        nursery.cancel_scope.cancel()
    assert await turns.join([]) == ""


# -- tags --------------------------------------------------------------------------------------------


async def known(guest: Looker, path: str, written: str = "{}") -> Answer:
    """Return the answer to who has a page already; when a minute ends there is a new one, had then."""
    for _ in range(2):
        tag = (await guest.again(path)).headers["etag"]
        answer = await guest.again(path, written.format(tag))
        if answer.status == 304:
            break
    return answer


@pytest.mark.promise("console.pace")
async def test_what_a_browser_has_is_sent_again_when_it_changed_and_not_before(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        alice = await begin(at)
        await say(alice, "s", "first")
        guest = await looker(here)
        shown = await guest.again(SESSION)
        tag = shown.headers["etag"]
        assert shown.status == 200
        for written in ("{}", "W/{}"):  # as a proxy that packs pages writes it
            same = await known(guest, SESSION, written)
            assert (same.status, same.body) == (304, b"")
            assert same.headers["etag"].startswith('"')
            assert same.headers["cache-control"] == "no-store"
            assert "script-src 'self';" in same.headers["content-security-policy"]
        assert (await guest.again(f"{SESSION}?order=threads", tag)).status == 200
        await say(alice, "s", "second")
        changed = await guest.again(SESSION, tag)
        assert (changed.status, changed.headers["etag"] == tag) == (200, False)
        assert "second" in Shown(changed).text
        assert {row.outcome for row in here.meter.snapshot(with_idle=False)} == {"ok"}
        assert (await guest.again("/sessions/nowhere", tag)).status == 404


@pytest.mark.promise("console.policy")
async def test_nobody_is_answered_with_the_page_of_somebody_else(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        await at.agent("bot", user="ann").ask(StoreMemory(content="of ann", key="hers"))
        ann = await create_key(at, "memory:read", "sessions:read", agent="bot", user="ann")
        less = await create_key(at, "memory:read", agent="bot", user="ann")
        bob = await create_key(at, "memory:read", "sessions:read", agent="bot", user="bob")
        await here.settled()
        guests = [
            await looker(here),
            await looker(here),
            *[await looker(here, key) for key in (ann, less, bob)],
        ]
        for guest in guests[:2]:
            await guest.see_as("as=bot")
        for path in ("/memories", "/memories?as=bot"):
            tags = set[str]()
            for guest in guests:
                page = await guest.again(path)
                if page.status != 200:
                    continue  # who may not see as another agent
                token = Shown(page).named("main")[0]["data-csrf"]
                assert token == guest.token, "it is the page of another browser"
                assert ("hers" in Shown(page).text) == (path == "/memories" and guest in guests[2:4])
                for tag in tags:
                    assert (await guest.again(path, tag)).status == 200
                tags.add(page.headers["etag"])
                assert (await known(guest, path)).status == 304
            assert len(tags) >= 2


# -- pages that are kept -----------------------------------------------------------------------------


@pytest.mark.usefixtures("autojump_clock")
async def test_several_who_want_the_same_page_have_it_made_once() -> None:
    kept, made = PageCache(lambda: 60.0), list[str]()

    async def make(name: str) -> bytes:
        made.append(name)
        await trio.sleep(1)
        return name.encode()

    async def want(tag: str, name: str) -> None:
        assert await kept.page(tag, partial(make, name)) == tag.encode()

    with trio.fail_after(10):
        async with trio.open_nursery() as nursery:
            for tag in ("a", "b", "a", "a", "b"):
                nursery.start_soon(want, tag, tag)
    assert sorted(made) == ["a", "b"]
    await want("a", "never made")
    assert sorted(made) == ["a", "b"]


async def test_who_gives_up_a_page_or_fails_to_make_it_leaves_it_to_the_next() -> None:
    kept, made = PageCache(lambda: 60.0), list[str]()

    async def never() -> bytes:
        made.append("never")
        await trio.sleep_forever()
        raise AssertionError

    async def fail() -> bytes:
        made.append("fail")
        raise ValueError("no such value")

    async def make() -> bytes:
        made.append("made")
        return b"page"

    with trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(kept.page, "a", never)
            await trio.testing.wait_all_tasks_blocked()
            scope.cancel()
    with pytest.raises(ValueError, match="no such value"):
        await kept.page("a", fail)
    assert await kept.page("a", make) == b"page"
    assert made == ["never", "fail", "made"]


async def test_pages_are_kept_for_a_minute_and_within_their_bytes() -> None:
    now, made = [119.0], list[bytes]()
    kept = PageCache(lambda: now[0])

    async def make(page: bytes) -> bytes:
        made.append(page)
        return page

    first = kept.tag("who", "where", read=[b"reply"])
    assert first == kept.tag("who", "where", read=[b"reply"])
    assert first != kept.tag("whom", "where", read=[b"reply"])
    assert first != kept.tag("who", "where", read=[b"re", b"ply"])
    assert first != kept.tag("who", read=[b"where", b"reply"])
    assert first != PageCache(lambda: 119.0).tag("who", "where", read=[b"reply"]), "it can be guessed"
    await kept.page(first, partial(make, b"page"))
    now[0] = 120.0
    assert first != kept.tag("who", "where", read=[b"reply"]), "what was 5 min ago is 6 min ago"
    await kept.page(first, partial(make, b"page again"))
    assert made == [b"page", b"page again"], "it is kept beyond its minute"

    made.clear()
    large, half = b"x" * (MOST_CACHED // 8 + 1), b"x" * (MOST_CACHED // 8)
    for _ in range(2):
        await kept.page("large", partial(make, large))
    assert made == [large, large]
    made.clear()
    for tag in "abcdefgh":
        await kept.page(tag, partial(make, half))
    await kept.page(first, partial(make, b"page once more"))  # went first, as it came first
    await kept.page("h", partial(make, half))
    assert len(made) == 9
