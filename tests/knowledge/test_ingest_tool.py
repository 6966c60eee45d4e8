"""The tool `ingest_documents`: whose files it reads, texts that are sent, and how far it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from zipfile import ZipFile

import msgspec
import pytest
from harness import greenroom, server_process

from greenroom.actors import (
    Agent,
    GetFullContent,
    IngestDocuments,
    Principal,
    Reach,
    SemanticSearch,
    open_greenroom,
)
from greenroom.testing import McpClient, mcp_client


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = (tmp_path / "docs").resolve()
    folder.mkdir()
    (folder / "a.md").write_text("# Boats\n\nthey lie at anchor\n")
    (folder / ".env").write_text("KEY=1\n")
    return folder


async def shake_hands(client: McpClient, *, roots: bool) -> None:
    greeting = {
        "protocolVersion": "2025-11-25",
        "capabilities": {"roots": {}} if roots else {},
        "clientInfo": {"name": "claude-code", "version": "1"},
    }
    await client.request("initialize", greeting)
    await client.send({"method": "notifications/initialized"})


async def answered(client: McpClient, roots: list[Path], *paths: Path) -> dict[str, Any]:
    """Return the answer of a call during which the client is asked for its roots."""
    await client.send_call("ingest_documents", {"paths": list(map(str, paths)), "corpus": "docs"})
    asked = await client.receive()
    assert asked["method"] == "roots/list"
    uris = [{"uri": folder.as_uri()} for folder in roots]
    await client.send({"id": asked["id"], "result": {"roots": uris}})
    return said(await client.receive())


def said(answer: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.json.decode(answer["result"]["content"][0]["text"])
    return found


@pytest.mark.promise("documents.tool-roots")
async def test_over_standard_input_files_in_the_client_s_folders_are_read(tmp_path: Path, docs: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    async with server_process(tmp_path, "--embedder", "none") as server:
        await shake_hands(server.client, roots=True)
        done = await answered(server.client, [docs], docs)
        assert (done["added"], done["complete"]) == (1, True)
        assert done["named"] == [{"path": f"{docs}/.env", "reason": "it may hold secrets"}]
        for folder in (tmp_path / "elsewhere", docs / "..", tmp_path / "store"):
            denied = await answered(server.client, [docs], folder)
            assert denied["code"] == "PERMISSION_DENIED"
        whole = await answered(server.client, [Path("/"), Path.home()], docs)
        assert whole["code"] == "PERMISSION_DENIED"
        own = await answered(server.client, [tmp_path / "store"], tmp_path / "store")
        assert "belongs to Greenroom" in own["error"]
        found = await server.client.call("semantic_search", query="anchor", corpus="docs")
        assert found["results"][0]["source_file"] == f"{docs}/a.md"


@pytest.mark.promise("documents.tool-roots")
async def test_folders_that_the_operator_allows_are_read_without_asking(tmp_path: Path, docs: Path) -> None:
    async with server_process(tmp_path, "--embedder", "none", "--documents", str(docs)) as server:
        await shake_hands(server.client, roots=False)
        assert (await server.client.call("ingest_documents", paths=[str(docs)]))["added"] == 1
        denied = await server.client.send_call("ingest_documents", {"paths": [str(tmp_path)]})
        answer = await server.client.receive()
        assert (answer["id"], said(answer)["code"]) == (denied, "PERMISSION_DENIED")


@pytest.mark.quick
@pytest.mark.promise("documents.tool-roots")
async def test_whose_folders_count_for_nothing_reads_nothing(tmp_path: Path, docs: Path) -> None:
    async with greenroom(tmp_path / "store") as client:
        await shake_hands(client, roots=True)
        assert (await answered(client, [docs], docs))["code"] == "PERMISSION_DENIED"


@pytest.mark.parametrize(
    "path", ["/etc/passwd", "../a.md", "a/../b.md", "..", "a\nb", "C:\\x\0", "\\\\host\\x", "", "a/."]
)
async def test_a_text_is_called_by_no_path_of_the_machine(tmp_path: Path, path: str) -> None:
    async with greenroom(tmp_path) as client:
        await client.initialize()
        call = await client.send_call("ingest_documents", {"texts": [{"path": path, "text": "x"}]})
        answer = await client.receive()
        assert (answer["id"], said(answer)["code"]) == (call, "VALIDATION_ERROR")


async def test_texts_or_paths_and_not_both(tmp_path: Path, docs: Path) -> None:
    async with greenroom(tmp_path / "store") as client:
        await client.initialize()
        for arguments in ({}, {"paths": [str(docs)], "texts": [{"path": "a.md", "text": "x"}]}):
            await client.send_call("ingest_documents", arguments)
            answer = await client.receive()
            assert "one of them" in said(answer)["error"]


@pytest.mark.quick
@pytest.mark.promise("documents.removed")
async def test_what_was_sent_is_removed_by_its_name(tmp_path: Path) -> None:
    async with greenroom(tmp_path) as client:
        await client.initialize()
        await client.send_call("ingest_documents", {"remove": ["a.md"], "corpus": "docs"})
        assert said(await client.receive())["code"] == "CORPUS_NOT_FOUND"
        sent = [
            {"path": f"{name}.md", "text": f"the {name} of it"} for name in ("beginning", "middle", "end")
        ]
        await client.call("ingest_documents", texts=sent, corpus="docs")
        done = await client.call("ingest_documents", remove=["middle.md", "unknown.md"], corpus="docs")
        assert (done["added"], done["removed"], done["complete"]) == (0, 1, True)
        again = [{"path": "end.md", "text": "the end of all"}, {"path": "new.md", "text": "x"}]
        gone = ["end.md", "beginning.md"]
        done = await client.call("ingest_documents", texts=again, remove=gone, corpus="docs")
        assert (done["added"], done["changed"], done["removed"]) == (1, 1, 1)
        found = await client.call("semantic_search", query="beginning middle end", corpus="docs")
        assert {each["source_file"] for each in found["results"]} == {"end.md", "new.md"}


async def test_what_has_no_lines_is_cited_by_its_file(tmp_path: Path, docs: Path) -> None:
    word = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    with ZipFile(docs / "plan.docx", "w") as archive:
        archive.writestr("word/document.xml", f'<p xmlns="{word}"><t>whales go south</t></p>')
        archive.writestr("word/media/whale.png", "")
    async with open_greenroom(tmp_path / "store", embedder="none") as runtime:
        ann = Agent(runtime, Principal(agent_id="a", user="ann"), reach=Reach(roots=[str(docs)]))
        done = await ann.ask(IngestDocuments(paths=[str(docs)]))
        (unread,) = [each for each in done.named if "plan.docx" in each.path]
        assert unread.path == f"{docs}/plan.docx, part word/media"
        assert (unread.reason, done.left_out[unread.reason]) == (
            "it is a part of a document, such as pictures or charts, that is not read",
            1,
        )
        found = await ann.ask(SemanticSearch(query="whales", top_k=1))
        read = await ann.ask(GetFullContent(chunk_ids=[found.results[0].chunk_id]))
        assert (read.chunks[0].citation, read.chunks[0].chunk_text) == (
            f"{docs}/plan.docx",
            "whales go south",
        )


@pytest.mark.quick
@pytest.mark.promise("documents.tool-progress")
async def test_who_asks_for_progress_hears_how_far_it_is(tmp_path: Path, docs: Path) -> None:
    for number in range(20):
        (docs / f"{number}.md").write_text(f"number {number}")
    async with open_greenroom(tmp_path / "store", embedder="none") as runtime:
        reach = Reach(roots=[str(docs)])

        def agent_for(name: str) -> Agent:
            return Agent(runtime, Principal(agent_id=name, user="ann"), reach=reach)

        async with mcp_client(agent_for) as client:
            await client.initialize()
            call = {"name": "ingest_documents", "arguments": {"paths": [str(docs)]}}
            await client.send_request("tools/call", {**call, "_meta": {"progressToken": "p"}})
            told = [await client.receive()]
            while "result" not in told[-1]:
                told.append(await client.receive())
            steps = [each["params"] for each in told[:-1]]
            assert {each["progressToken"] for each in steps} == {"p"}
            assert steps[-1]["total"] == 21
            assert steps[-1]["message"] == "21 of 21 files"
            assert said(told[-1])["added"] == 21
