"""The console and what it asks, by people who mean no good: numbers that are none, made-up cursors, sizes."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from support.agents import begin
from support.console import looker
from support.corpora import document_of
from support.keyed import premises

from greenroom.actors import (
    API_REQUESTS,
    AddMessage,
    Agent,
    BrowseMemories,
    CreateSession,
    DefineEntities,
    EntityDeclaration,
    ForgetMemory,
    ListTold,
    MemoryFilters,
    MemorySearch,
    MigrateSession,
    Principal,
    PutDocument,
    RecallContext,
    RecordContext,
    SemanticSearch,
    StoreMemory,
    UpdateMemory,
    ask_corpus,
)
from greenroom.actors.core.replies import paging
from greenroom.runtime import Refusal
from greenroom.transports.web.console.views.table import ENTRIES

if TYPE_CHECKING:
    from support.agents import Enter, House

HUGE = 10**30
DIGITS = "9" * 5_000


@pytest.mark.slow
async def test_a_number_in_a_url_that_is_none_is_no_failure(
    enter: Enter, caplog: pytest.LogCaptureFixture
) -> None:
    async with enter(embedder="none") as at, premises(at) as here:
        await begin(at)
        owner = at.agent("bot", user="owner")
        memory = await owner.ask(StoreMemory(content="the hull is oak", key="hull"))
        await owner.ask(MemorySearch(query="hull"))  # what it loads in a thread, a test's clock waits not for
        await owner.ask(SemanticSearch(query="hull", corpus="*"))
        me = await looker(here)
        for number in (DIGITS, str(HUGE), "%C2%B2", "-1", "nan", "1e999", "%00"):
            for path in (
                f"memories/{memory.memory_id}?version={number}",
                f"search?q=hull&limit={number}",
                f"search?q=hull&in=documents&limit={number}",
                f"sessions/s?before={number}",
                f"sessions/s?from={number}",
                f"sessions/s?message={number}&reply={number}",
                f"told/{number}",
                f"people?from={number}",
            ):
                page = await me.look(f"/{path}")
                assert page.status in {200, 404}, path
                page.check_inert()
        assert not caplog.records


@pytest.mark.parametrize("name", ["inspect_memory", "restore_memory"])
async def test_a_version_that_cannot_be_does_not_set_a_namespace_aside(enter: Enter, name: str) -> None:
    async with enter(embedder="none") as at:
        owner = at.agent("bot", user="owner")
        memory = await owner.ask(StoreMemory(content="the hull is oak", key="hull"))
        for version in (2, 1 << 64, HUGE):
            with pytest.raises(Refusal, match="there is no memory"):
                await owner.ask(API_REQUESTS[name](memory_id=memory.memory_id, version=version))
        assert at.runtime.statistics().messages.failed == 0


def digest_of(name: str, **arguments: Any) -> str:
    asked = API_REQUESTS[name](**arguments)
    return blake2b(msgspec.json.encode(asked), digest_size=8).hexdigest()


LISTINGS = [
    ("browse_memories", 16, f"browse {digest_of('browse_memories', namespace='user:owner', limit=1)}"),
    ("list_memory_pairs", 8, "pairs user:owner duplicates"),
    ("list_memories", 8, None),
    ("list_memory", 8, "memory None None"),
    ("get_messages", 9, "messages s all"),
    ("list_told", 8, "told   None None None"),
]
ARGUMENTS: dict[str, dict[str, Any]] = {
    "browse_memories": {"namespace": "user:owner"},
    "list_memory_pairs": {"namespace": "user:owner", "kind": "duplicates"},
    "list_memories": {"namespace": "user:owner"},
    "get_messages": {"session_id": "s"},
}


@pytest.mark.parametrize(("name", "size", "binding"), LISTINGS, ids=[each[0] for each in LISTINGS])
async def test_a_cursor_that_somebody_made_up_does_not_set_an_actor_aside(
    enter: Enter, name: str, size: int, binding: str | None
) -> None:
    async with enter(embedder="none") as at:
        await begin(at)
        owner = at.agent("bot", user="owner")
        await owner.ask(StoreMemory(content="the hull is oak", key="hull"))
        if binding is None:
            empty = blake2b(msgspec.json.encode(MemoryFilters()), digest_size=8).hexdigest()
            binding = f"memories user:owner {empty}"

        async def page(position: bytes) -> Any:
            cursor = paging.encode(position, binding)
            return await owner.ask(API_REQUESTS[name](cursor=cursor, **ARGUMENTS.get(name, {})))

        for position in (b"\xff" * size, b"\x00" * (size - 1) + b"\x01", b">" + b"\xff" * (size - 1)):
            await page(position)  # it is bound as the listing binds its own
        for position in (b"", b"x", b"\xff" * (size + 1), b"\xff" * 100):
            with pytest.raises(Refusal, match="cursor: it is not one that this listing gave"):
                await page(position)
        assert at.runtime.statistics().messages.failed == 0


async def test_what_somebody_recalls_who_looks_on_is_not_told_to_the_agent(enter: Enter) -> None:
    async with enter(embedder="none") as at:
        scribe = at.agent("scribe", user="ann")
        await scribe.ask(StoreMemory(key="mast", content="the mast is painted"))
        looked = Agent(at.runtime, Principal(agent_id="scribe", user="ann", seen_by="root"))
        assert (await looked.ask(RecallContext(task="mast"))).count == 1
        assert (await scribe.ask(ListTold())).told == []
        await scribe.ask(RecallContext(task="mast painted"))
        assert [each.query for each in (await scribe.ask(ListTold())).told] == ["mast painted"]


MARKDOWN = """# <script>alert(1)</script> {{7*7}} \u202e

[read this](javascript:alert(1)) [or this](https://evil.example/?q=secret "<b>") <https://evil.example>
![pixel](https://evil.example/pixel.png) <img src=x onerror=alert(1)> <a href=https://evil.example>here</a>

[ref]: https://evil.example/hidden "words that only agents read"

| <b onclick=alert(1)> | b |
|---|---|
| `<script>` | 2 | a cell too many |

```js" onclick="alert(1)
</code></pre><script>alert(1)</script>
```

- </div></main><form action=https://evil.example><button>Log in again</button></form>
- [x]: <iframe src=//evil.example>
"""
"""Markdown whose every line wants to be more than text."""


KINDS = ("markdown", "rst", "text", "html", "code")
OWNER = Principal(agent_id="bot", user="owner")


async def write_everywhere(at: House) -> tuple[str, str]:
    """Have an agent write `MARKDOWN` wherever something is shown formatted; return a memory and a session."""
    agent = at.agent("bot.0a87cfd733075854", user="owner")
    await agent.ask(CreateSession(session_id="s", purpose=MARKDOWN[:400]))
    said = await agent.ask(AddMessage(session_id="s", content=MARKDOWN))
    await agent.ask(AddMessage(session_id="s", content=MARKDOWN * 15, parent_message_id=said.message_id))
    decision = {"what": MARKDOWN[:400], "why": MARKDOWN[-400:]}
    await agent.ask(RecordContext(session_id="s", decisions=[decision]))  # type: ignore[list-item]
    await agent.ask(MigrateSession(session_id="s", to_tool="other", note=MARKDOWN[:400]))
    older = await agent.ask(StoreMemory(content=MARKDOWN, key="older", unreviewed=True))
    newer = await agent.ask(StoreMemory(content=f"{MARKDOWN} again", key="newer", unreviewed=True))
    gone = await agent.ask(StoreMemory(content=MARKDOWN, key="gone"))
    await agent.ask(ForgetMemory(memory_id=gone.memory_id))
    await agent.ask(UpdateMemory(memory_id=older.memory_id, content=f"{MARKDOWN} changed"))
    await agent.ask(RecallContext(task=MARKDOWN[:200]))
    await agent.ask(
        DefineEntities(entities=[EntityDeclaration(name="E", type="vendor", description=MARKDOWN)])
    )
    for kind in KINDS:
        document = msgspec.structs.replace(document_of(f"a.{kind}", [([], MARKDOWN)]), kind=kind)
        await ask_corpus(at.runtime, OWNER, PutDocument(corpus="docs", document=document), make=True)
    return newer.memory_id, older.memory_id


@pytest.mark.slow
@pytest.mark.promise("console.inert")
async def test_markdown_is_inert_on_every_page_and_no_word_of_it_is_hidden(enter: Enter) -> None:
    async with enter(embedder="none") as at, premises(at) as here:
        newer, older = await write_everywhere(at)
        me = await looker(here)
        documents = [f"knowledge/user:owner:docs?document=a.{kind}" for kind in KINDS]
        whole = [f"memories/{newer}", f"memories/{newer}?raw=1", f"memories/{older}?version=1", "sessions/s"]
        for path in (
            *whole,
            *documents,
            *(entry.name for entry in ENTRIES),
            "memories/duplicates",
            "memories/unreviewed",
            "memories/forgotten",
            "sessions/s?raw=1",
            "sessions/s?order=threads",
            "sessions/s/context",
            "sessions/s/history",
            "search?q=agents",
            "search?q=agents&in=documents",
            "search?q=agents&in=session&session=s",
            "told/0",
            "knowledge/user:owner:docs?q=agents",
            "knowledge/user:owner:docs?show=entities",
            "people/bot.0a87cfd733075854",
        ):
            page = await me.look(f"/{path}")
            page.check_inert()
            assert page.status == 200, path
            assert {
                (each.get("action") or "").rpartition("/")[2] for each in page.named("form")
            } <= OWN_FORMS, path
            if path in {*whole, *documents[:3]}:
                for said in ("words that only agents read", "a cell too many", "evil.example/pixel.png"):
                    assert said in page.text, (path, said)
        for document in documents[1:3]:
            text = (await me.look(f"/{document}")).text
            for typed in (
                "| `<script>` | 2 | a cell too many |",
                '```js" onclick="alert(1)',
                "- [x]: <iframe",
            ):
                assert typed in text, (document, typed)


OWN_FORMS = {
    "",
    "logout",
    "login",
    "context#decide",
    "audit",
    "map",
    "search",
    "knowledge",
    "user%3Aowner%3Adocs",
}
"""The ends of the addresses to which forms of ours go."""


@pytest.mark.slow
async def test_pages_of_the_largest_texts_tags_and_metadata_stay_small(enter: Enter) -> None:
    async with enter(embedder="none") as at, premises(at) as here:
        await begin(at)
        owner = at.agent("bot", user="owner")
        tags = [f"{number:04}{'<' * 96}" for number in range(9_000)]
        many = await owner.ask(StoreMemory(content="one that has many tags", key="many", tags=tags))
        given = msgspec.Raw(msgspec.json.encode({"numbers": [0] * 400_000}))
        more = await owner.ask(
            StoreMemory(content="one that has many tags too", key="more", tags=tags, metadata=given)
        )
        changed = msgspec.Raw(msgspec.json.encode({"numbers": [1] * 400_000}))
        await owner.ask(UpdateMemory(memory_id=more.memory_id, metadata=changed))
        long = await owner.ask(StoreMemory(content="<ab " * 250_000, key="long"))
        await owner.ask(UpdateMemory(memory_id=long.memory_id, content="<cd " * 250_000))
        metadata = msgspec.Raw(msgspec.json.encode({"numbers": [0] * 400_000}))
        for _ in range(8):
            await at.agent("alice", "planner").ask(
                AddMessage(session_id="s", content="<" * 9_999, metadata=metadata)
            )
        me = await looker(here)
        for path in (
            "memories",
            "memories/duplicates",
            f"memories/{long.memory_id}",
            f"memories/{long.memory_id}?version=1",
            f"memories/{more.memory_id}?version=1",
            "sessions/s",
        ):
            page = await me.look(f"/{path}")
            assert page.status == 200
            page.check_inert()
            assert len(page.answer.body) < (5_000_000 if more.memory_id in path else 600_000), path
        listed = (await owner.ask(BrowseMemories())).memories
        assert {each.key: len(each.tags) + each.more_tags for each in listed} == {
            "many": 9_000,
            "more": 9_000,
            "long": 0,
        }
        boxes = [each for each in (await me.look("/memories")).named("input") if each.get("name") == "memory"]
        assert [each["value"] for each in boxes if "data-tags" in each] == [long.memory_id]
        assert many.memory_id in {each["value"] for each in boxes}


async def test_a_namespace_of_somebody_elses_shows_the_way_to_the_others(enter: Enter) -> None:
    async with enter(embedder="none") as at, premises(at) as here:
        for namespace in ("team:one", "team:two"):
            await at.agent("bot", user="owner").ask(StoreMemory(content="the hull", namespace=namespace))
        page = await (await looker(here)).look("/memories?namespace=team:one")
        assert page.status == 200
        assert "./memories?namespace=team%3Atwo" in page.links


@pytest.mark.slow
async def test_a_large_value_is_whole_where_it_is_edited(enter: Enter) -> None:
    async with enter(embedder="none") as at, premises(at) as here:
        owner = at.agent("bot", user="owner")
        value = msgspec.Raw(msgspec.json.encode({"numbers": list(range(9_000)), "last": "z"}))
        memory = await owner.ask(StoreMemory(value=value, key="numbers"))
        page = await (await looker(here)).look(f"/memories/{memory.memory_id}?whole=1")
        assert page.text.count('8999 ], "last": "z" }') == 2  # it is shown, and can be edited
