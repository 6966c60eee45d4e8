"""Over a key its agent is the author of whatever a caller writes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from support.api import browser, posted
from support.commands import run_on_store
from support.console import looker
from support.exchanges import QUIET, export, line, text
from support.keyed import bearer, create_key, premises
from support.passports import begun, member, signer_of, text_of

from greenroom.actors import (
    Agent,
    EraseUser,
    ExportMemories,
    ExportSession,
    GetMessages,
    ImportMemories,
    ListMemories,
    ListVersions,
    MemoryFilters,
    MemorySearch,
    MemoryStats,
    MergeMemories,
    Principal,
    ReadResource,
    RecallContext,
    RestoreSession,
    RetrieveMemory,
    StoreMemory,
    UpdateMemory,
)
from greenroom.transports.mcp.tools.aliases import ALIASES

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from support.agents import Enter, House
    from support.keyed import Premises
    from support.passports import Opens

    from greenroom.actors import ApiKeyMade

    Call = Callable[..., Awaitable[Any]]

pytestmark = pytest.mark.promise("exchange.authorship")

PROJECT = "project:p1"
SCOPES = frozenset({"memory:*", "sessions:*"})
RELEASE = line(
    "release", "the release goes straight to production", namespace=PROJECT, created_by="anna", tags=["r"]
)


def keyed(agent: str, user: str | None = "bob", scopes: frozenset[str] = SCOPES) -> Principal:
    """Return an agent that came by a key."""
    return Principal(agent_id=agent, user=user, projects=frozenset({"p1"}), scopes=scopes, key_id="k" + agent)


BOBB = keyed("bobb")
ANNA = keyed("anna", "ann")
ADMIN = Principal(agent_id="root", user="owner", scopes=frozenset({"memory:*", "admin"}), key_id="kroot")
OWNER = Principal(agent_id="local", user="owner")


async def bring(at: House, who: Principal, *lines: dict[str, Any], **options: Any) -> dict[str, int]:
    """Import lines with the tool; return what came of them."""
    done = await Agent(at.runtime, who).ask(ImportMemories(source=text(*lines), **options))
    return done.counts


async def read(at: House, who: Principal, namespace: str = PROJECT, **filters: Any) -> dict[str, Any]:
    """Return what an agent is shown in a listing, as it travels, by key."""
    found = await Agent(at.runtime, who).ask(
        ListMemories(namespace=namespace, filters=MemoryFilters(**filters))
    )
    return {each.key: msgspec.to_builtins(each) for each in found.memories}


async def history(at: House, who: Principal, key: str) -> list[tuple[str | None, Any]]:
    found = await Agent(at.runtime, who).ask(ListVersions(key=key, namespace=PROJECT))
    shown = msgspec.to_builtins(found.versions)
    return [(each["author"], each.get("imported")) for each in shown]


async def text_of_export(at: House, who: Principal, namespace: str = PROJECT) -> str:
    agent = Agent(at.runtime, who)
    exported = await agent.ask(ExportMemories(namespace=namespace))
    found: Any = await agent.ask(ReadResource(uri=exported.uri))
    said: str = found.text
    return said


# -- over every door ---------------------------------------------------------------


async def by_rest(here: Premises, key: ApiKeyMade) -> Call:
    guest = await here.guest()

    async def call(tool: str, **arguments: Any) -> Any:
        return (await posted(guest, tool, arguments, bearer(key))).json()

    return call


async def by_browser(here: Premises, key: ApiKeyMade) -> Call:
    page = await browser(here, key)

    async def call(tool: str, **arguments: Any) -> Any:
        return (await page.confirmed(tool, **arguments)).json()

    return call


async def by_websocket(here: Premises, key: ApiKeyMade) -> Call:
    peer = await here.websocket(key)

    async def call(tool: str, **arguments: Any) -> Any:
        await peer.request("tools/call", {"name": tool, "arguments": arguments})
        return (await peer.receive())["result"]["structuredContent"]

    return call


async def by_http(here: Premises, key: ApiKeyMade) -> Call:
    guest = await here.session(key)

    async def call(tool: str, **arguments: Any) -> Any:
        await guest.request("tools/call", {"name": tool, "arguments": arguments}, **bearer(key))
        return (await guest.answer()).json()["result"]["structuredContent"]

    return call


OLDER = [alias.name for alias in ALIASES if alias.successor == "import_memories"]


@pytest.mark.parametrize("door", [by_rest, by_browser, by_websocket, by_http])
async def test_over_a_key_the_author_is_the_keys_agent_at_every_door(enter: Enter, door: Any) -> None:
    async with enter(**QUIET) as at, premises(at) as here:
        bobs = await create_key(at, "memory:*", agent="bobb", user="bob", projects=["p1"])
        await here.settled()
        call = await door(here, bobs)
        names = ["import_memories"] if door in {by_rest, by_browser} else ["import_memories", *OLDER]
        for name in names:
            done = await call(name, source=json.dumps({**RELEASE, "key": name}))
            assert done["counts"] == {"created": 1}, done
        kept = await call(
            "store_memory", content="signed off by me", key="stored", namespace=PROJECT, author="anna"
        )
        assert kept["success"], kept
        found = await call("memory_search", query="release production signed", namespace=PROJECT)
        assert {
            each["key"]: (each["author"], each["imported"]) for each in found["memories"]
        } == dict.fromkeys([*names, "stored"], ("bobb", {"created_by": "anna"}))
        for author, count in (("anna", 0), ("bobb", len(names) + 1)):
            filters = {"author": author}
            searched = await call("memory_search", query="release", author=author, namespace=PROJECT)
            listed = await call("list_memories", namespace=PROJECT, filters=filters)
            exact = await call("memory_search", query="the", mode="exact", author=author, namespace=PROJECT)
            written = await call("export_memories", namespace=PROJECT, filters=filters)
            assert bool(searched["memories"]) == bool(exact["memories"]) == (count > 0)
            assert (listed["count"], written["count"]) == (count, count)
        statistics = await call("memory_stats", namespace=PROJECT)
        assert "anna" not in json.dumps(statistics)


async def test_no_ranking_signal_takes_the_sources_author_for_the_author(enter: Enter) -> None:
    """Who is named in a question most often said themselves what is looked for."""
    async with enter(**QUIET) as at:
        talk = {"namespace": PROJECT, "conversation_id": "c"}
        await bring(at, BOBB, line("a", "we meet in the harbour", created_by="Zorro", position=0, **talk))
        await bring(at, OWNER, line("b", "we meet in the harbour", created_by="Diego", position=1, **talk))
        debugs = {}
        for name in ("Zorro", "Diego"):
            found = await Agent(at.runtime, OWNER).ask(
                MemorySearch(query=f"where did {name} meet", namespace=PROJECT, include_debug=True)
            )
            assert not isinstance(found.debug, msgspec.UnsetType)
            ids = {each.key: each.memory_id for each in found.memories}
            debugs[name] = {key: found.debug.scores[each].get("author", 0) for key, each in ids.items()}
        alone = await Agent(at.runtime, OWNER).ask(MemorySearch(query="Zorro", namespace=PROJECT))
        written = await Agent(at.runtime, OWNER).ask(MemorySearch(query="Diego", namespace=PROJECT))
    assert not any(debugs["Zorro"].values())
    assert debugs["Diego"]["b"] > 0 == debugs["Diego"].get("a", 0)
    assert "a" not in [each.key for each in alone.memories]
    assert [each.key for each in written.memories][:1] == ["b"]


# -- who keeps authors as given ----------------------------------------------------


@pytest.mark.parametrize("who", [ADMIN, OWNER, Principal(agent_id="r", user="o", key_id="all")])
async def test_an_administrator_and_who_needs_no_key_keep_authors_as_given(
    enter: Enter, who: Principal
) -> None:
    async with enter(**QUIET) as at:
        await bring(at, who, RELEASE, line("own", namespace=PROJECT))
        await Agent(at.runtime, who).ask(StoreMemory(content="x", key="s", namespace=PROJECT, author="anna"))
        shown = await read(at, who)
    assert {key: (each["author"], each.get("imported")) for key, each in shown.items()} == {
        "release": ("anna", None),
        "own": (who.agent_id, None),
        "s": ("anna", None),
    }


async def test_who_names_itself_or_names_no_author_has_no_other_source(enter: Enter) -> None:
    async with enter(**QUIET) as at:
        await bring(at, BOBB, {**RELEASE, "created_by": "bobb"}, line("plain", namespace=PROJECT))
        await Agent(at.runtime, BOBB).ask(StoreMemory(content="x", key="s", namespace=PROJECT, author="bobb"))
        shown = await read(at, BOBB)
    assert {(each["author"], each.get("imported")) for each in shown.values()} == {("bobb", None)}
    assert len(shown) == 3


# -- there and back ----------------------------------------------------------------


@pytest.mark.promise("exchange.round-trip")
@pytest.mark.parametrize("on_conflict", ["skip", "overwrite", "version"])
async def test_an_export_restores_author_and_source_for_an_administrator_and_nests_nothing(
    open_at: Opens, on_conflict: Any
) -> None:
    async with open_at("one") as at, open_at("two") as there:
        await bring(at, BOBB, RELEASE, line("own", namespace=PROJECT), on_conflict=on_conflict)
        first = await export(at.runtime, OWNER, PROJECT)
        assert [(each["created_by"], each.get("imported")) for each in first] == [
            ("bobb", {"created_by": "anna"}),
            ("bobb", None),
        ]
        for _ in range(2):
            await bring(there, OWNER, *first, on_conflict=on_conflict)
            assert await export(there.runtime, OWNER, PROJECT) == first
        # What bobb brings back himself is as it was, and another one's name takes the place of his alone.
        again = await bring(at, BOBB, *first, on_conflict=on_conflict)
        assert again == ({"skipped": 2} if on_conflict == "skip" else {"unchanged": 2})
        assert await export(at.runtime, OWNER, PROJECT) == first
        await bring(there, ANNA, *({**each, "key": each["key"] + "2"} for each in first))
        second = (await export(there.runtime, OWNER, PROJECT))[2:]
        assert [(each["created_by"], each.get("imported")) for each in second] == [
            ("anna", None),  # she is who the source names first
            ("anna", {"created_by": "bobb"}),
        ]


@pytest.mark.quick
@pytest.mark.promise("exchange.round-trip")
async def test_what_the_tool_exports_imports_over_the_same_key_as_what_it_was(open_at: Opens) -> None:
    async with open_at("one") as at, open_at("two") as there:
        await bring(at, BOBB, RELEASE)
        said = await text_of_export(at, BOBB)
        await bring(there, BOBB, json.loads(said))
        assert await text_of_export(there, BOBB) == said


@pytest.mark.parametrize("source", ["anna", {"created_by": ""}, {"created_by": "a", "by": "b"}, {}, 7, []])
async def test_a_source_that_is_none_is_refused_and_nothing_is_imported(enter: Enter, source: Any) -> None:
    async with enter(**QUIET) as at, premises(at) as here:
        key = await create_key(at, "memory:*", agent="bobb", user="bob", projects=["p1"])
        await here.settled()
        call = await by_rest(here, key)
        answer = await call("import_memories", source=json.dumps({**RELEASE, "imported": source}))
        assert answer["code"] == "VALIDATION_ERROR"
        assert answer["details"]["problems"][0]["field"].startswith("imported")
        assert not await read(at, OWNER)


# -- what is there already -----------------------------------------------------------


@pytest.mark.promise("exchange.conflict")
@pytest.mark.parametrize("on_conflict", ["overwrite", "version"])
async def test_an_import_changes_no_author_of_what_another_agent_wrote(
    enter: Enter, on_conflict: Any
) -> None:
    """Of one user, whose agents write the same memories."""
    annas = keyed("anna")
    async with enter(**QUIET) as at:
        await Agent(at.runtime, annas).ask(
            StoreMemory(content="it waits for review", key="release", namespace=PROJECT)
        )
        given = {**RELEASE, "created_by": "carl"}
        counts = await bring(at, BOBB, given, on_conflict=on_conflict)
        assert counts == ({"overwritten": 1} if on_conflict == "overwrite" else {"versioned": 1})
        shown, versions = await read(at, annas), await history(at, annas, "release")
        assert shown["release"]["updated_by"] == "bobb"
        if on_conflict == "version":
            assert (shown["release"]["author"], shown["release"].get("imported")) == ("anna", None)
            assert versions == [("anna", None), ("bobb", {"created_by": "carl"})]
        else:  # nothing of hers is left in it
            assert (shown["release"]["author"], shown["release"]["imported"]) == (
                "bobb",
                {"created_by": "carl"},
            )
            assert versions == [("bobb", {"created_by": "carl"})]
        assert await bring(at, BOBB, given, on_conflict=on_conflict) == {"unchanged": 1}
        assert await history(at, annas, "release") == versions


@pytest.mark.parametrize("on_conflict", ["overwrite", "version"])
async def test_what_another_agent_wrote_and_the_source_says_so_is_there_already(
    enter: Enter, on_conflict: Any
) -> None:
    annas = keyed("anna")
    async with enter(**QUIET) as at:
        await bring(at, annas, RELEASE)
        assert await bring(at, BOBB, RELEASE, on_conflict=on_conflict) == {"unchanged": 1}
        assert (await read(at, annas))["release"]["author"] == "anna"


async def test_a_later_version_leaves_author_and_source_as_they_are(enter: Enter) -> None:
    async with enter(**QUIET) as at:
        await bring(at, BOBB, RELEASE)
        agent = Agent(at.runtime, keyed("other"))
        await agent.ask(UpdateMemory(key="release", namespace=PROJECT, tags=["new"]))
        await agent.ask(StoreMemory(key="release", namespace=PROJECT, content="not yet", author="zoe"))
        shown = (await read(at, BOBB))["release"]
        assert (shown["author"], shown["imported"]) == ("bobb", {"created_by": "anna"})
        assert shown["updated_by"] == "other"
        assert await history(at, BOBB, "release") == [
            ("bobb", {"created_by": "anna"}),
            ("other", None),
            ("other", {"created_by": "zoe"}),
        ]
        assert (await Agent(at.runtime, BOBB).ask(MemoryStats(namespace=PROJECT))).by_author == {"bobb": 1}


# -- passports -------------------------------------------------------------------------


def at_work(here: House, agent: str, user: str, **passports: Any) -> Agent:
    """Return an agent that came by a key, whose server trusts some signers."""
    return member(
        here.runtime, agent, user=user, projects=frozenset({"p1"}), scopes=SCOPES, key_id="k", **passports
    )


async def passport(anna: Agent) -> str:
    """Return a passport of a session in which an agent stored a project's memory."""
    await begun(anna, "hello")
    await anna.ask(StoreMemory(content="signed off", key="release", namespace=PROJECT))
    return await text_of(anna, await anna.ask(ExportSession(include_memories=True)))


@pytest.mark.promise("passport.authors")
async def test_over_a_key_a_passport_of_this_server_makes_no_words_another_agents(open_at: Opens) -> None:
    """The writer of the newest version of another's memory could export it as that one's."""
    async with open_at("one") as here:
        anna, bobb = at_work(here, "anna", "ann"), at_work(here, "bobb", "bob")
        await anna.ask(StoreMemory(content="it waits for review", key="release", namespace=PROJECT))
        await begun(bobb, "hello")
        await bobb.ask(StoreMemory(content="signed off", key="release", namespace=PROJECT))
        document = await text_of(bobb, await bobb.ask(ExportSession(include_memories=True)))
        await bobb.ask(RestoreSession(passport=document))
        shown = await export(here.runtime, bobb.principal, PROJECT)
    assert [(each["key"], each["created_by"], each.get("imported")) for each in shown] == [
        ("release", "anna", None),
        ("release~bob", "bobb", {"created_by": "anna"}),
    ]


@pytest.mark.quick
@pytest.mark.promise("passport.authors")
@pytest.mark.parametrize("shared", [None, b"s" * 32])
async def test_over_a_key_memories_of_a_passport_are_the_keys_and_messages_keep_senders(
    open_at: Opens, shared: bytes | None
) -> None:
    async with open_at("one") as here, open_at("two") as there:
        document = await passport(at_work(here, "anna", "ann", shared=shared))
        bobb = at_work(there, "bobb", "bob", trusted=(signer_of(here),), shared=shared)
        restored = await bobb.ask(RestoreSession(passport=document))
        shown = (await read(there, bobb.principal))["release"]
        said = await bobb.ask(GetMessages(session_id=restored.session_id))
    assert (shown["author"], shown["imported"]) == ("bobb", {"created_by": "anna"})
    assert [each.sender for each in said.messages] == ["anna"]


@pytest.mark.promise("passport.authors")
async def test_an_administrator_restores_the_authors_of_another_servers_passport(open_at: Opens) -> None:
    async with open_at("one") as here, open_at("two") as there:
        document = await passport(at_work(here, "anna", "ann"))
        root = member(there.runtime, "root", trusted=(signer_of(here),))
        await root.ask(RestoreSession(passport=document))
        shown = (await read(there, root.principal))["release"]
    assert (shown["author"], shown.get("imported")) == ("anna", None)


# -- shown to people ---------------------------------------------------------------------


async def test_pages_for_people_say_who_imported_and_what_the_source_says(enter: Enter) -> None:
    async with enter(**QUIET) as at, premises(at) as here:
        hostile = '<b>"anna"</b>'
        await bring(at, BOBB, RELEASE, {**RELEASE, "key": "hostile", "created_by": hostile})
        guest = await looker(here)
        listed = (await guest.look(f"/memories?namespace={PROJECT}")).text.replace(" ,", ",")
        assert "imported by bobb, says anna" in listed
        assert f"imported by bobb, says {hostile}" in listed
        one = (await read(at, OWNER))["release"]["memory_id"]
        page = await guest.look(f"/memories/{one}")
        assert "imported by bobb, says anna" in page.text.replace(" ,", ",")
        by_anna = await guest.look(f"/memories?namespace={PROJECT}&author=anna")
        assert "There are no memories here." in by_anna.text


async def test_a_recall_says_it_beside_the_author(enter: Enter) -> None:
    async with enter(**QUIET) as at:
        await bring(at, BOBB, RELEASE)
        found = await Agent(at.runtime, BOBB).ask(RecallContext(task="release", namespace=PROJECT))
    answers = msgspec.to_builtins(found.memories)
    assert [(each["author"], each["imported"]) for each in answers] == [("bobb", {"created_by": "anna"})]


@pytest.mark.parametrize("how", ["update", "merge", "import"])
async def test_what_another_agent_wrote_over_it_is_shown_as_changed_by_that_one(
    enter: Enter, how: str
) -> None:
    async with enter(**QUIET) as at:
        who = keyed("anna") if how == "import" else ANNA  # to another user's key a line is another memory
        anna, bobb = Agent(at.runtime, who), Agent(at.runtime, BOBB)
        stored = [
            await anna.ask(StoreMemory(content=f"the release is tested {each}", key=each, namespace=PROJECT))
            for each in ("first", "then")
        ]
        first, then = (each.memory_id for each in stored)
        word = "the release goes straight to production"
        if how == "update":
            await bobb.ask(UpdateMemory(memory_id=first, content=word))
        elif how == "merge":
            await bobb.ask(MergeMemories(memory_id=first, others=[then], content=word))
        else:
            named = line("first", word, namespace=PROJECT, created_by="anna")
            await bring(at, BOBB, named, on_conflict="version")
        searches: tuple[Any, ...] = (
            MemorySearch(query="release straight to production", namespace=PROJECT, author="anna"),
            RetrieveMemory(query="release straight to production", namespace=PROJECT),
            RecallContext(task="release straight to production", namespace=PROJECT),
        )
        for asked in searches:
            best = msgspec.to_builtins((await anna.ask(asked)).memories[0])
            assert (best["content"], best["author"], best.get("updated_by")) == (word, "anna", "bobb"), asked
        await anna.ask(UpdateMemory(memory_id=first, content="the release waits for a sign-off"))
        back = await anna.ask(RecallContext(task="release sign-off", namespace=PROJECT))
        assert "updated_by" not in msgspec.to_builtins(back.memories[0])


@pytest.mark.quick
@pytest.mark.promise("erase.others-keep-theirs")
async def test_an_erased_agent_is_named_by_no_source(enter: Enter) -> None:
    async with enter(**QUIET) as at:
        await bring(at, BOBB, {**RELEASE, "created_by": "wyvern"})
        await Agent(at.runtime, OWNER).ask(EraseUser(user="wyvern", confirm=True))
        shown = (await read(at, BOBB))["release"]
        assert (shown["author"], shown["imported"]) == ("bobb", {"created_by": "erased"})
        assert await history(at, BOBB, "release") == [("bobb", {"created_by": "erased"})]


@pytest.mark.slow
@pytest.mark.promise("exchange.round-trip")
def test_the_command_restores_authors_and_sources_of_an_export(tmp_path: Path) -> None:
    lines = [
        {**RELEASE, "namespace": "user:ann", "created_by": "bobb", "imported": {"created_by": "anna"}},
        line("by carl", namespace="user:ann", created_by="carl"),
    ]
    exported: list[str] = []
    for home in (tmp_path / "one", tmp_path / "two"):
        home.mkdir()
        source = home / "in.jsonl"
        source.write_text(exported[-1] if exported else text(*lines))
        for _ in range(2):
            done = run_on_store(home, "import", str(source), "--user", "ann", "--on-conflict", "version")
            assert done.returncode == 0, done.stderr
        exported.append(run_on_store(home, "export", "-", "--user", "ann").stdout)
    first, second = ([json.loads(each) for each in one.splitlines()] for one in exported)
    assert first == second
    assert [(each["created_by"], each.get("imported")) for each in first] == [
        ("bobb", {"created_by": "anna"}),
        ("carl", None),
    ]


@pytest.mark.slow
def test_a_review_says_it_too(tmp_path: Path) -> None:
    source = tmp_path / "in.jsonl"
    source.write_text(
        text(line("a", created_by="bobb", imported={"created_by": "an\x1bna"}, unreviewed=True))
    )
    assert run_on_store(tmp_path, "import", str(source), "--user", "ann").returncode == 0
    listed = run_on_store(tmp_path, "review", "list", "--user", "ann").stdout
    assert "imported by bobb, says an" in listed
    assert "\x1b" not in listed
