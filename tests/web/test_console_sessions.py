"""The console's sessions without a browser: the list, and what is said, kept and handed over in one."""

from __future__ import annotations

import json as plain_json
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest
from support.agents import begin, json, say
from support.console import looker
from support.keyed import create_key, premises
from support.passports import HOME, member

from greenroom.actors import (
    AddMessage,
    CreateSession,
    EndSession,
    FindSessions,
    MigrateSession,
    ReadTranscript,
    RecordContext,
    StartSession,
    UpdateSession,
)

if TYPE_CHECKING:
    from support.agents import Enter, House
    from support.console import Shown

HOSTILE = '"><script>alert(1)</script><img src=x onerror=alert(1)>\u202e{{7*7}}javascript:alert(1)'


def ids_of(page: Shown) -> list[str]:
    """Return the ids of the sessions in a list."""
    return [(each["id"] or "").removeprefix("s-") for each in page.named("tr") if "id" in each]


def messages_of(page: Shown) -> list[str]:
    """Return the ids of the messages on a page."""
    return [each["data-message"] or "" for each in page.named("li") if "data-message" in each]


async def several(at: House) -> None:
    """Begin sessions that differ in everything that can be filtered by."""
    alice, bob = at.agent("alice", user="owner"), at.agent("bob", user="owner")
    for agent, session in (
        (alice, CreateSession(session_id="s0", purpose="Plan the Release", project_id="apollo")),
        (alice, CreateSession(session_id="s1", purpose="review", project_id="gemini")),
        (bob, CreateSession(session_id="s2", purpose="release notes")),
    ):
        await agent.ask(session)
        at.tick()
    await bob.ask(EndSession(session_id="s2"))
    at.tick()
    zed = member(at.runtime, "zed", user="owner")
    await zed.ask(StartSession(workspace_path=HOME, purpose="in zed", new=True))


async def test_the_list_is_filtered_by_what_is_in_its_url(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        await several(at)
        guest = await looker(here)
        everything = ids_of(await guest.look("/sessions"))
        assert len(everything) == 4
        assert everything[1:] == ["s2", "s1", "s0"]
        for query, wanted in {
            "q=RELEASE": ["s2", "s0"],
            "agent=alice": ["s1", "s0"],
            "project=apollo": ["s0"],
            "status=terminated": ["s2"],
            "q=release&status=created": ["s0"],
            "tool=zed": everything[:1],
            "agent=nobody": [],
        }.items():
            page = await guest.look(f"/sessions?{query}")
            assert (page.status, ids_of(page)) == (200, wanted), query
        assert "No session fits these filters." in (await guest.look("/sessions?agent=nobody")).text
        assert (await guest.look("/sessions?status=nonsense")).status == 422


@pytest.mark.slow
async def test_pages_of_the_list_have_every_session_once(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        alice = at.agent("alice", user="owner")
        for number in range(120):
            await alice.ask(CreateSession(session_id=f"s{number}", purpose=f"even {number % 2 == 0}"))
            at.tick()
        guest = await looker(here)
        path, found = "/sessions?q=even+true", list[str]()
        while path:
            page = await guest.look(path)
            found += ids_of(page)
            nexts = [each["href"] or "" for each in page.named("a") if each.get("rel") == "next"]
            path = nexts[0].removeprefix(".") if nexts else ""
        assert found == [f"s{number}" for number in range(118, -2, -2)]
        assert "60 in all" in (await guest.look("/sessions?q=even+true")).text


async def test_a_search_that_finds_little_goes_on_where_it_stopped(
    enter: Enter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("greenroom.actors.sessions.handlers.find_sessions.MOST_SCANNED", 7)
    async with enter() as at:
        alice = at.agent("alice")
        for number in range(40):
            await alice.ask(CreateSession(session_id=f"s{number}", purpose="rare" if number == 3 else "p"))
            at.tick()
        found, cursor, pages = list[str](), None, 0
        while pages == 0 or cursor is not None:
            page = await alice.ask(FindSessions(text="rare", cursor=cursor))
            found += [each.session.session_id for each in page.sessions]
            cursor, pages = page.next_cursor, pages + 1
        assert found == ["s3"]
        assert 5 < pages < 9


@pytest.mark.slow
@pytest.mark.promise("console.inert")
async def test_whatever_agents_write_into_a_session_stays_text(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        agent = at.agent("bot", user="owner")
        hostile = json(plain_json.dumps({HOSTILE: HOSTILE}))
        await agent.ask(
            CreateSession(
                session_id="s",
                purpose=HOSTILE,
                app_name=HOSTILE,
                project_id=HOSTILE,
                metadata=hostile,
                initial_state=hostile,
            )
        )
        first = (await agent.ask(AddMessage(session_id="s", content=HOSTILE))).message_id
        await agent.ask(
            AddMessage(
                session_id="s",
                content=HOSTILE * 20 + "x" * 5_000,
                message_type=HOSTILE[:50],
                metadata=hostile,
                parent_message_id=first,
            )
        )
        line = HOSTILE[:90]
        await agent.ask(
            RecordContext(
                session_id="s",
                files_accessed=[{"path": line, "note": line}],  # type: ignore[list-item]
                recent_searches=[line],
                decisions=[{"what": line, "why": line}],  # type: ignore[list-item]
                workflow_state={"task": line, "step": line, "next": [line], "blockers": [line]},  # type: ignore[arg-type]
            )
        )
        await agent.ask(MigrateSession(session_id="s", to_tool=line, note=line))
        guest = await looker(here)
        for path in (
            "/sessions",
            "/sessions/s",
            "/sessions/s?order=threads",
            "/sessions/s/context",
            f"/sessions/s/context?tool={quote(line)}",
            "/sessions/s/passports",
            "/sessions/s/history",
            "/sessions?q=%22%3E%3Cscript%3Ealert(1)%3C/script%3E",
        ):
            page = await guest.look(path)
            page.check_inert()
            assert page.status == 200, path
            assert not page.named("img")[1:], path
            assert "49" not in page.text.split(), path
            assert "<script>alert(1)</script>" in page.answer.body.decode().replace("&lt;", "<").replace(
                "&gt;", ">"
            ), path


@pytest.mark.slow
async def test_agents_names_are_links_that_lead_nowhere_else(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        agent = at.agent("bot", user="owner")
        for name in ("javascript:alert(1)", "//evil.example", "a?b=c&d#e", "../../../x"):
            await agent.ask(CreateSession(purpose=name, project_id=name))
            await agent.ask(StartSession(workspace_path=name, purpose=name, new=True))
        page = await (await looker(here)).look("/sessions")
        page.check_inert()
        assert all(link.startswith(("./", "?")) or link == "#main" for link in page.links), page.links


@pytest.mark.promise("console.sessions")
async def test_what_others_said_for_themselves_is_not_shown_nor_counted(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        alice = await begin(at)
        await say(alice, "s", "everybody hears this")
        secret = (await say(alice, "s", "a secret of alice", visibility="private"))[0]
        await say(alice, "s", "planners only", visibility="agent_only")
        await alice.ask(AddMessage(session_id="s", content="an answer to a secret", parent_message_id=secret))
        guest = await looker(here)
        for path in (
            "/sessions/s",
            "/sessions/s?order=threads",
            f"/sessions/s?message={secret}",
            f"/sessions/s?from={secret}",
            f"/sessions/s?reply={secret}",
            "/sessions/s/context",
            "/sessions/s/history",
        ):
            body = (await guest.look(path)).answer.body.decode()
            assert "a secret of alice" not in body, path
            assert "planners only" not in body, path
        page = await guest.look("/sessions/s")
        assert "2 messages" in page.text
        assert "answers" not in page.text
        key = await create_key(at, "*:read", agent="alice", agent_type="planner", user="owner")
        await here.settled()
        mine = await (await looker(here, key)).look("/sessions/s")
        assert "a secret of alice" in mine.text
        assert "4 messages" in mine.text
        assert not mine.named("textarea")


@pytest.mark.slow
async def test_sessions_of_other_projects_are_nowhere(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        await begin(at, project_id="apollo")
        key = await create_key(at, "*:read", user="ann", projects=["gemini"])
        await here.settled()
        guest = await looker(here, key)
        assert ids_of(await guest.look("/sessions")) == []
        for path in ("/sessions/s", "/sessions/s/context", "/sessions/s/history", "/sessions/s/passports"):
            page = await guest.look(path)
            assert page.status == 404, path
            there = await guest.look(
                path.replace("/s", "/nothing", 2).replace("/nothingessions", "/sessions")
            )
            assert page.text.replace("'s'", "") == there.text.replace("'nothing'", ""), path


@pytest.mark.slow
@pytest.mark.promise("console.sessions")
async def test_older_messages_are_paged_to_the_first(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        alice = await begin(at)
        ids = [str(each) for each in await say(alice, "s", *(f"m{number}" for number in range(250)))]
        guest = await looker(here)
        page = await guest.look("/sessions/s")
        assert messages_of(page) == ids[150:]
        assert page.named("ol")[0].get("data-grows", "absent") is None
        found = messages_of(page)
        while earlier := [each["href"] or "" for each in page.named("a") if each.get("rel") == "prev"]:
            page = await guest.look(f"/sessions/{earlier[0].partition('sessions/')[2]}")
            assert "data-grows" not in page.named("ol")[0]
            found = messages_of(page) + found
        assert found == ids
        later = await guest.look(f"/sessions/s?from={ids[200]}")
        assert messages_of(later) == ids[200:]
        assert messages_of(await guest.look(f"/sessions/s?message={ids[7]}")) == [ids[7]]
        assert messages_of(await guest.look("/sessions/s?from=nonsense")) == ids[150:]


@pytest.mark.slow
async def test_answers_stand_below_what_they_answer(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        alice = await begin(at)
        first, second = await say(alice, "s", "first", "second")
        third = (await say(alice, "s", "to the first", parent_message_id=first))[0]
        fourth = (await say(alice, "s", "to the third", parent_message_id=third))[0]
        guest = await looker(here)
        by_time = await guest.look("/sessions/s")
        assert messages_of(by_time) == [str(each) for each in (first, second, third, fourth)]
        assert "answers alice : first" in by_time.text
        nested = await guest.look("/sessions/s?order=threads")
        assert messages_of(nested) == [str(each) for each in (first, third, fourth, second)]
        classes = [each["class"] or "" for each in nested.named("li") if "data-message" in each]
        assert [each.split()[1] for each in classes] == ["depth-0", "depth-1", "depth-2", "depth-0"]
        await say(alice, "s", *map(str, range(120)))
        await say(alice, "s", "a late answer", parent_message_id=second)
        assert "answers alice : second" in (await guest.look("/sessions/s")).text


@pytest.mark.slow
async def test_long_messages_are_folded_and_the_longest_cut(enter: Enter) -> None:
    async with enter(content_limit=1_000_000) as at, premises(at) as here:
        alice = await begin(at)
        await say(alice, "s", "short", "y" * 5_000, "start " + "z" * 900_000)
        guest = await looker(here)
        page = await guest.look("/sessions/s")
        folded = [each for each in page.named("details") if each.get("class") == "long"]
        assert len(folded) == 2
        assert len(page.answer.body) < 60_000
        whole = next(link for link in page.links if "message=" in link)
        alone = await guest.look(f"/sessions/{whole.partition('sessions/')[2]}")
        assert "z" * 900_000 in alone.text


async def test_a_session_shows_what_it_keeps_and_what_a_client_is_given(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        console = at.agent("bot", user="owner")
        await console.ask(CreateSession(session_id="s", purpose="p"))
        await say(console, "s", *("word " * 100 for _ in range(30)))
        await console.ask(
            RecordContext(
                session_id="s",
                files_accessed=[{"path": "src/main.py"}],  # type: ignore[list-item]
                decisions=[{"what": "use LMDB", "why": "one file"}],  # type: ignore[list-item]
                workflow_state={"task": "the release", "next": ["tag it"]},  # type: ignore[arg-type]
            )
        )
        page = await (await looker(here)).look("/sessions/s/context")
        for text in (
            "use LMDB",
            "one file",
            "the release",
            "tag it",
            "src/main.py",
            "The summary for a new client",
        ):
            assert text in page.text
        cells = page.text.partition("About so many tokens")[2].split()
        assert "Newest, as they are" in page.text
        assert cells[4].isdigit()
        assert int(cells[5].replace(",", "")) > 1_000


@pytest.mark.slow
async def test_what_can_be_done_is_offered_to_who_may(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        alice = await begin(at)
        guest, reader = await looker(here), await looker(here, read_only=True)

        async def offered(who: Any, path: str = "/sessions/s") -> set[str]:
            return {
                each["data-request"]
                for each in (await who.look(path)).named("form")
                if "data-request" in each
            }

        assert await offered(guest) == {"add_message", "end_session", "update_session"}
        assert await offered(guest, "/sessions/s/context") >= {"record_context"}
        assert await offered(guest, "/sessions/s/passports") >= {"export_session"}
        assert await offered(reader) == set()
        await alice.ask(EndSession(session_id="s"))
        assert await offered(guest) == {"reopen_session"}
        await alice.ask(UpdateSession(session_id="s", status="archived"))
        assert await offered(guest) == set()


@pytest.mark.slow
async def test_strange_addresses_are_refused_with_a_sentence(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        await begin(at)
        guest = await looker(here)
        for path, status in {
            "/sessions/nothing": 404,
            "/sessions/s/nonsense": 404,
            "/sessions/s/context/more": 404,
            "/sessions/%3Cscript%3E": 422,
            f"/sessions/{'x' * 300}": 422,
            "/sessions?cursor=nonsense": 422,
            "/sessions/s?before=1": 200,
            f"/sessions/s?from={10**15}": 200,
            f"/sessions/s?from={'9' * 16}": 422,
        }.items():
            page = await guest.look(path)
            assert page.status == status, (path, page.text)
            page.check_inert()


async def test_a_transcript_is_asked_from_one_side(enter: Enter) -> None:
    async with enter() as at:
        alice = await begin(at)
        ids = await say(alice, "s", "a", "b", "c")
        page = await alice.ask(ReadTranscript(session_id="s", start=ids[1], limit=1))
        assert [each.content for each in page.messages] == ["b"]
        assert (page.has_older, page.has_newer) == (True, True)
        assert [(each.sender, each.messages) for each in page.writers] == [("alice", 3)]
        with pytest.raises(Exception, match="not both"):
            await alice.ask(ReadTranscript(session_id="s", start=1, before=2))


@pytest.mark.slow
async def test_a_session_is_seen_as_another_agent_sees_it(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        alice = await begin(at)
        await say(alice, "s", "a secret of alice", visibility="private")
        await say(alice, "s", "planners only", visibility="agent_only")
        guest = await looker(here)
        for seen_as in ("as=alice", "as=alice&as_type=planner"):
            await guest.see_as(seen_as)
        page = await guest.look("/sessions/s?as=alice&as_type=")
        assert "You see what alice may read" in page.text
        assert "a secret of alice" in page.text
        assert "planners only" not in page.text
        assert not [each for each in page.named("form") if "data-request" in each]
        inside = [link for link in page.links if "sessions/s" in link]
        assert inside
        assert all("as=alice" in link for link in inside)
        page = await guest.look("/sessions/s?as=alice&as_type=planner")
        assert "planners only" in page.text
        for tab in ("context", "passports", "history"):
            seen = await guest.look(f"/sessions/s/{tab}?as=alice")
            assert (seen.status, "You see what alice may read" in seen.text) == (200, True)
        assert "as=alice" in next(
            link for link in (await guest.look("/sessions?as=alice&q=p")).links if "sessions/s" in link
        )
        key = await create_key(at, "*:read", user="ann")
        await here.settled()
        other = await looker(here, key)
        assert (await other.look("/sessions/s?as=alice")).status == 403
        assert "See it as another agent" not in (await other.look("/sessions/s")).text
