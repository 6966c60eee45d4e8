"""Import and export as tools over MCP: progress, a link that can be read, and errors that name the line."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from harness import greenroom
from support.exchanges import line, text

from greenroom.actors import Agent, CreateApiKey, ImportMemories, MemorySearch, Principal, open_greenroom
from greenroom.runtime import Refusal
from greenroom.testing import MODERN_META, McpClient

SOURCE = text(
    *(line(f"k{n}", f"the {n}th lighthouse", created_at="2024-05-01T00:00:00Z") for n in range(500))
)


async def asked(
    client: McpClient, tool: str, arguments: dict[str, Any], **meta: Any
) -> tuple[list[Any], Any]:
    """Return the notifications that a call brought, and its result."""
    number = await client.send_call(tool, arguments, **meta)
    notices = []
    while (message := await client.receive()).get("id") != number:
        notices.append(message)
    return notices, message["result"]


@pytest.mark.promise("exchange.import-tool")
@pytest.mark.parametrize("era", ["handshake", "modern"])
async def test_an_import_tells_how_far_it_is_and_what_came_of_it(tmp_path: Path, era: str) -> None:
    async with greenroom(tmp_path, "planner") as client:
        if era == "modern":
            client.meta = MODERN_META
        else:
            await client.initialize()
        notices, result = await asked(client, "import_memories", {"source": SOURCE}, progressToken="p1")
        _, quiet = await asked(client, "import_memories", {"source": SOURCE, "on_conflict": "version"})
    told = [notice["params"] for notice in notices]
    assert {notice["method"] for notice in notices} == {"notifications/progress"}
    assert {each["progressToken"] for each in told} == {"p1"}
    steps = [each["progress"] for each in told]
    assert steps == sorted(set(steps))
    assert told[-1]["progress"] == told[-1]["total"]
    assert told[-1]["message"] == "importing: 500 of 500"
    answer = result["structuredContent"]
    assert answer == json.loads(result["content"][0]["text"])
    assert (answer["lines"], answer["counts"]) == (500, {"created": 500})
    assert (answer["namespaces"], answer["dry_run"]) == ({"user:user": 500}, False)
    assert quiet["structuredContent"]["counts"] == {"unchanged": 500}


@pytest.mark.slow
@pytest.mark.promise("exchange.import-tool")
async def test_a_dry_run_writes_nothing(tmp_path: Path) -> None:
    async with greenroom(tmp_path, "planner") as client:
        await client.initialize()
        dry = await client.call("import_memories", source=SOURCE, dry_run=True, namespace="project:atlas")
        stats = await client.call("memory_stats", namespace="project:atlas")
        done = await client.call("import_memories", source=SOURCE, namespace="project:atlas")
    assert (dry["dry_run"], dry["counts"]) == (True, {"created": 500})
    assert stats["memories"] == 0
    assert done["counts"] == {"created": 500}


@pytest.mark.promise("exchange.import-tool")
@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"source": text(line("a"), line("b", importance=7))}, "nothing was imported: line 2: importance: "),
        ({"source": text(line("a", namespace="user:bob"))}, "line 1: namespace: you may not write"),
        ({"source": "nonsense"}, "line 1: this is not JSON"),
        ({"source": text(line("a")), "namespace": "here"}, "namespace: it takes 2 to 8 segments"),
        ({"source": text(line("a")), "on_conflict": "merge"}, "on_conflict: it takes 'skip', 'overwrite' or"),
        ({"source": ""}, "source: it takes a string of 1 to"),
        ({}, "source: it is required"),
    ],
)
async def test_what_cannot_be_imported_is_an_error_that_says_why(
    tmp_path: Path, arguments: dict[str, Any], sentence: str
) -> None:
    async with greenroom(tmp_path, "planner") as client:
        await client.initialize()
        answer = await client.call("import_memories", **arguments)
        stats = await client.call("memory_stats")
    assert (answer["success"], answer["code"]) in {(False, "VALIDATION_ERROR"), (False, "PERMISSION_DENIED")}
    assert sentence in answer["error"]
    assert stats["memories"] == 0


@pytest.mark.promise("exchange.export-tool")
@pytest.mark.parametrize("era", ["handshake", "modern"])
async def test_an_export_links_to_a_resource_that_can_be_imported(tmp_path: Path, era: str) -> None:
    async with greenroom(tmp_path, "planner") as client:
        if era == "modern":
            client.meta = MODERN_META
        else:
            await client.initialize()
        await client.call("import_memories", source=SOURCE)
        notices, result = await asked(client, "export_memories", {"namespace": "user:user"}, progressToken=7)
        said, link = result["content"]
        answer = json.loads(said["text"])
        (read,) = (await client.request("resources/read", {"uri": link["uri"]}))["result"]["contents"]
        again = await client.call("import_memories", source=read["text"], on_conflict="overwrite")
        wrong = await client.request("resources/read", {"uri": "greenroom://export/" + "0" * 32})
    assert answer == result["structuredContent"]
    assert link == {
        "type": "resource_link",
        "uri": answer["uri"],
        "name": "memories.jsonl",
        "mimeType": "application/jsonl",
        "size": answer["size_bytes"],
    }
    assert (read["uri"], read["mimeType"]) == (link["uri"], "application/jsonl")
    data = read["text"].encode()
    assert (answer["count"], answer["digest"]) == (500, sha256(data).hexdigest())
    assert notices[-1]["params"]["message"] == "500 memories"
    assert again["counts"] == {"unchanged": 500}
    assert "there is no resource" in wrong["error"]["message"]


@pytest.mark.promise("exchange.export-tool")
@pytest.mark.slow
async def test_every_part_of_a_large_export_fits_into_a_frame(tmp_path: Path) -> None:
    """Also of what becomes twice as long in a message, and twice again."""
    async with greenroom(tmp_path, "planner") as client:
        await client.initialize()
        for n in range(3):
            source = text(*(line(f"k{n}.{m}", '"\\' * 50_000) for m in range(9)))
            await client.call("import_memories", source=source)
        _, result = await asked(client, "export_memories", {})
        said, *links = result["content"]
        count = 0
        for link in links:
            read = await client.request("resources/read", {"uri": link["uri"]})
            assert len(json.dumps(read, separators=(",", ":"))) < 8 << 20
            count += len(read["result"]["contents"][0]["text"].splitlines())
    answer = json.loads(said["text"])
    assert answer == result["structuredContent"]
    assert [link["uri"] for link in links] == [part["uri"] for part in answer["parts"]]
    assert [link["name"] for link in links] == ["memories.jsonl", "memories2.jsonl"]
    assert count == answer["count"] == 27


async def test_the_older_names_do_the_same(tmp_path: Path) -> None:
    async with greenroom(tmp_path, "planner") as client:
        await client.initialize()
        done = await client.call("omn_import_memories", source=text(line("a")))
        _, result = await asked(client, "omn_export_memories", {"format": "json"})
    assert done["counts"] == {"created": 1}
    assert result["content"][1]["mimeType"] == "application/json"
    assert "export_memories" in json.dumps(result["_meta"])


@pytest.mark.promise("exchange.import-tool", "limits.quotas")
async def test_an_import_into_more_namespaces_than_a_key_may_begin_names_the_lines(tmp_path: Path) -> None:
    """Nothing of it is imported, and what fits is when it comes alone."""
    source = [line(f"k{n}", "x", namespace=f"team:n{n // 2}") for n in range(6)]
    async with open_greenroom(tmp_path, embedder="none") as runtime:
        administrator = Agent(runtime, Principal(agent_id="root", user="owner", scopes=frozenset({"admin"})))
        made = await administrator.ask(CreateApiKey(name="n", scopes=["*"], max_namespaces=2))
        holder = Principal(agent_id="bot", user="ann", key_id=made.key.key_id)
        with pytest.raises(Refusal) as caught:
            await Agent(runtime, holder).ask(ImportMemories(source=text(*source)))
        problems: Any = caught.value.details["problems"]
        assert [(each["place"], each["field"]) for each in problems] == [("line 5", "namespace")]
        assert "may have 2 namespaces and has had 0, and this takes 3 more" in problems[0]["sentence"]
        other = Agent(runtime, Principal(agent_id="other", user="bob"))
        assert (await other.ask(MemorySearch(query="x"))).total == 0
        for _ in range(2):  # the same again is counted once
            done = await Agent(runtime, holder).ask(ImportMemories(source=text(*source[:4])))
            assert done.lines == 4
        assert (await other.ask(ImportMemories(source=text(*source)))).lines == 6
