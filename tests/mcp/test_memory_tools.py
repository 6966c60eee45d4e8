"""The memory tools over a connection: whom a call goes to, what it answers, and how it fails."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
from harness import PATIENCE, server_process

from greenroom.actors import Agent, Principal, open_greenroom
from greenroom.runtime import RuntimeClient
from greenroom.testing import McpClient, mcp_client

pytestmark = pytest.mark.promise("recall.tools")


class House:
    """One store, and clients of several people at it."""

    def __init__(self, runtime: RuntimeClient) -> None:
        self._runtime = runtime

    @asynccontextmanager
    async def client(
        self, agent: str = "planner", user: str = "alice", **more: Any
    ) -> AsyncIterator[McpClient]:
        who = Principal(agent_id=agent, user=user, **more)
        async with mcp_client(lambda _: Agent(self._runtime, who)) as client:
            await client.initialize()
            yield client


@asynccontextmanager
async def house(folder: Path) -> AsyncIterator[House]:
    async with open_greenroom(folder, embedder="none") as runtime:
        yield House(runtime)


def failed(answer: dict[str, Any], code: str, *words: str) -> None:
    assert (answer["success"], answer["code"]) == (False, code), answer
    assert all(word in answer["error"] for word in words), answer["error"]


async def test_a_memory_lives_its_life(tmp_path: Path) -> None:
    async with house(tmp_path) as at, at.client() as alice:
        metadata = {"tags": ["sea"], "importance": 0.8, "scope": "private", "mood": "calm"}
        first = await alice.call(
            "store_memory", content="the harbour opens at six", key="harbour", metadata=metadata
        )
        assert {"memory_id", "key", "version", "size_bytes", "compressed", "compression_ratio"} <= set(first)
        assert {"tokens", "tokens_saved"} <= set(first)
        assert (first["namespace"], first["version"]) == ("user:alice", 1)
        again = await alice.call(
            "store_memory", content="the harbour opens at five", key="harbour", expected_version=1
        )
        assert (again["memory_id"], again["version"]) == (first["memory_id"], 2)
        conflict = await alice.call("update_memory", key="harbour", content="never", expected_version=1)
        failed(conflict, "VERSION_CONFLICT")
        assert conflict["details"]["current_version"] == 2
        third = await alice.call(
            "update_memory", memory_id=first["memory_id"], metadata={"tags": ["sea", "time"]}
        )
        assert third["version"] == 3
        (memory,) = (await alice.call("retrieve_memory", key="harbour"))["memories"]
        assert memory["content"] == "the harbour opens at five"
        assert memory["tags"] == ["sea", "time"]
        rated = await alice.call("rate_memory", memory_id=first["memory_id"], rating=1, note="true")
        assert (rated["rating"], rated["ratings"]) == (1.0, 1)
        versions = await alice.call("list_memory_versions", memory_id=first["memory_id"])
        assert [each["version"] for each in versions["versions"]] == [1, 2, 3]
        statistics = await alice.call("memory_stats")
        assert (statistics["memories"], statistics["by_tag"]) == (1, {"sea": 1, "time": 1})
        gone = await alice.call("forget_memory", memory_id=first["memory_id"])
        assert gone["forgotten"] == 1
        assert (await alice.call("retrieve_memory", key="harbour"))["memories"] == []
        failed(await alice.call("update_memory", key="harbour", content="x"), "MEMORY_NOT_FOUND")


async def test_an_id_finds_its_memory_wherever_it_lies(tmp_path: Path) -> None:
    async with house(tmp_path) as at, at.client() as alice, at.client("other", "bob") as bob:
        for namespace in ("user:alice:a:b", "project:atlas", "team:crew", "agent:planner"):
            stored = await alice.call("store_memory", content="one", namespace=namespace)
            memory_id = stored["memory_id"]
            updated = await alice.call("update_memory", memory_id=memory_id, content="two")
            assert (updated["namespace"], updated["version"]) == (namespace, 2)
            assert (await alice.call("rate_memory", memory_id=memory_id, rating=-1))["rating"] == -1
            theirs = await bob.call("list_memory_versions", memory_id=memory_id)
            if namespace in {"project:atlas", "team:crew"}:
                assert theirs["count"] == 2
            else:
                failed(theirs, "MEMORY_NOT_FOUND")
            assert (await alice.call("forget_memory", memory_id=memory_id))["forgotten"] == 1


async def test_what_may_not_be_seen_answers_like_what_is_not_there(tmp_path: Path) -> None:
    nowhere = "00000000-0000-8000-8000-000000000000"
    async with (
        house(tmp_path) as at,
        at.client("other", "bob", projects=frozenset({"secret"})) as bob,
        at.client(projects=frozenset()) as alice,
    ):
        ids = [
            (await bob.call("store_memory", content="hush", key="hush", **more))["memory_id"]
            for more in (
                {},
                {"namespace": "project:secret"},
                {"namespace": "agent:other"},
                {"namespace": "team:crew", "metadata": {"scope": "private"}},
            )
        ]
        for tool, arguments in (
            ("update_memory", {"content": "x"}),
            ("rate_memory", {"rating": 1}),
            ("forget_memory", {}),
            ("list_memory_versions", {}),
        ):
            unknown = await alice.call(tool, memory_id=nowhere, **arguments)
            for memory_id in ids:
                answer = await alice.call(tool, memory_id=memory_id, **arguments)
                told = json.dumps(answer).replace(memory_id, nowhere)
                assert json.loads(told) == unknown, tool
        for seen, unseen in (
            ("user:bob", "user:nobody"),
            ("project:secret", "project:unheard"),
            ("agent:other", "agent:nobody"),
            ("team:crew", "team:nobody"),
        ):
            for tool, more in (
                ("list_memories", {}),
                ("memory_stats", {}),
                ("list_memory_versions", {"key": "hush"}),
                ("rate_memory", {"key": "hush", "rating": 1}),
                ("update_memory", {"key": "hush", "content": "x"}),
                ("forget_memory", {"key": "hush"}),
                ("forget_memory", {"filters": {}}),
                ("store_memory", {"key": "hush", "content": "x", "expected_version": 1}),
            ):
                one = await alice.call(tool, namespace=seen, **more)
                other = await alice.call(tool, namespace=unseen, **more)
                assert json.loads(json.dumps(one).replace(seen, unseen)) == other, (tool, seen)
        assert (await bob.call("retrieve_memory", key="hush"))["memories"][0]["content"] == "hush"


@pytest.mark.parametrize(
    ("tool", "arguments", "words"),
    [
        ("memory_search", {"query": 5}, ("query", "a string", "5")),
        ("memory_search", {"query": "x", "limit": 101}, ("limit", "100", "101")),
        ("memory_search", {"query": "x", "limit": True}, ("limit", "true")),
        ("memory_search", {"query": "x", "mode": "fuzzy"}, ("mode", "semantic", "fuzzy")),
        ("memory_search", {"query": "x", "tags": 5}, ("tags", "5")),
        ("memory_search", {"query": "x", "tags": [1]}, ("tags", "1")),
        ("memory_search", {"query": "x", "namespace": "user:"}, ("namespace", "segments")),
        ("memory_search", {"query": "x", "namespace": ":"}, ("namespace", "segments")),
        ("memory_search", {"query": "x", "namespace": "a:" * 8 + "a"}, ("namespace", "segments")),
        ("memory_search", {"query": "x", "max_tokens": 0}, ("max_tokens", "1", "0")),
        ("memory_search", {"query": "x", "quality_boost": 2}, ("quality_boost", "1", "2")),
        ("memory_search", {"query": "x" * 10_001}, ("query", "10,000", "10,001")),
        ("memory_search", {"query": "x", "n_results": 5}, ("n_results", "unknown")),
        ("memory_search", {"query": "x", "user_id": "bob"}, ("user_id", "unknown")),
        ("memory_search", {}, ("query", "required", "tags")),
        ("memory_search", {"query": "x", "time_expr": "flurble"}, ("time_expr", "flurble", "yesterday")),
        ("memory_search", {"query": "x", "before": "soon"}, ("before", "soon", "2026-01-31")),
        ("memory_search", {"query": "x", "timezone": "Mars"}, ("timezone", "Mars", "Europe/Berlin")),
        ("retrieve_memory", {"query": "x", "filters": []}, ("filters", "[]")),
        ("retrieve_memory", {"query": "x", "filters": {"tag": "x"}}, ("filters", "tag")),
        (
            "retrieve_memory",
            {"query": "x", "filters": {"min_importance": 2}},
            ("filters.min_importance", "2"),
        ),
        ("recall_context", {}, ("task", "required")),
        ("recall_context", {"task": "x", "max_tokens": 10**7}, ("max_tokens", "1,000,000")),
        ("store_memory", {}, ("content", "required")),
        ("store_memory", {"content": "x", "value": 1}, ("value", "not both")),
        ("store_memory", {"content": "x", "key": "a/b"}, ("key", "a/b")),
        ("store_memory", {"content": "x", "metadata": []}, ("metadata", "[]")),
        ("store_memory", {"content": "x", "metadata": {"importance": 2}}, ("metadata.importance", "2")),
        ("store_memory", {"content": "x", "metadata": {"expiry": "2001-01-01"}}, ("expiry", "past")),
        ("store_memory", {"content": "x", "namespace": "user"}, ("namespace", "2 to 8 segments")),
        ("update_memory", {"content": "x"}, ("memory_id", "key")),
        ("update_memory", {"memory_id": "x", "content": "x"}, ("memory_id", "as answers have it")),
        ("forget_memory", {}, ("memory_id", "filters")),
        ("rate_memory", {"key": "k", "rating": 5}, ("rating", "1", "5")),
        ("list_memories", {"cursor": "x"}, ("cursor", "start again")),
        ("list_memories", {"cursor": "x" * 500}, ("cursor", "start again")),
        ("list_memories", {"limit": 0}, ("limit", "1", "0")),
        ("list_memory_versions", {}, ("memory_id", "key")),
    ],
    ids=str,
)
async def test_a_wrong_argument_is_named(
    tmp_path: Path, tool: str, arguments: dict[str, Any], words: tuple[str, ...]
) -> None:
    async with house(tmp_path) as at, at.client() as alice:
        failed(await alice.call(tool, **arguments), "VALIDATION_ERROR", *words)
        for plain in ("memory_stats", "list_memories"):
            assert (await alice.call(plain))["success"]


async def test_nobody_writes_into_anothers_namespace(tmp_path: Path) -> None:
    async with house(tmp_path) as at, at.client(projects=frozenset({"atlas"})) as alice:
        for namespace in ("user:bob", "agent:other", "project:secret", "user:alice2:x"):
            failed(await alice.call("store_memory", content="x", namespace=namespace), "PERMISSION_DENIED")
        assert (await alice.call("store_memory", content="x", namespace="project:atlas:x"))["success"]


async def test_lists_go_on_where_a_budget_ended(tmp_path: Path) -> None:
    async with house(tmp_path) as at, at.client() as alice:
        for n in range(9):
            await alice.call("store_memory", key=f"k{n}", content=f"{n} " + "x" * (4_000 if n == 4 else 200))
        seen: list[str] = []
        named: list[str] = []
        cursor, pages = None, 0
        while True:
            page = await alice.call("list_memories", cursor=cursor, max_tokens=400)
            assert page["tokens"] <= 400
            assert page["left_out"] >= 0
            seen += [memory["key"] for memory in page["memories"]]
            named += [each["key"] for each in page.get("over_budget", ())]
            pages += 1
            if (cursor := page["next_cursor"]) is None:
                break
        assert seen == [f"k{n}" for n in (8, 7, 6, 5, 3, 2, 1, 0)]
        assert named == ["k4"]  # it is larger than the whole budget
        assert pages == 3
        failed(await alice.call("list_memories", cursor=page["next_cursor"] or "AAAA"), "VALIDATION_ERROR")
        first = await alice.call("list_memories", limit=2)
        other = {"cursor": first["next_cursor"], "filters": {"tags": ["a"]}}
        failed(await alice.call("list_memories", **other), "VALIDATION_ERROR", "cursor")
        keys = await alice.call("list_memory", max_tokens=1)
        assert "left_out" in keys
        assert "left_out" not in await alice.call("list_memory")


@pytest.mark.promise("recall.budget")
async def test_every_list_goes_on_behind_the_cut(tmp_path: Path) -> None:
    async with house(tmp_path) as at, at.client() as alice:
        for n in range(7):
            await alice.call("create_session", purpose=f"plan {n}", session_id=f"s{n}")
            await alice.call("store_memory", key="k", content=f"version {n}")
            await alice.call("set_memory", key=f"k{n}", value=n)
        for tool, container, member, arguments, wanted in (
            ("list_sessions", "sessions", "session_id", {}, [f"s{n}" for n in (6, 5, 4, 3, 2, 1, 0)]),
            ("list_memory_versions", "versions", "version", {"key": "k"}, [1, 2, 3, 4, 5, 6, 7]),
            ("list_memory", "entries", "key", {}, [f"k{n}" for n in (6, 5, 4, 3, 2, 1, 0)]),
        ):
            seen: list[Any] = []
            cursor, pages = None, 0
            while True:
                page = await alice.call(tool, cursor=cursor, max_tokens=200, **arguments)
                assert page["count"] == len(page[container])
                seen += [each[member] for each in page[container]]
                pages += 1
                if (cursor := page["next_cursor"]) is None:
                    break
                assert page["left_out"] > 0
            assert seen == wanted
            assert pages > 1
            whole = await alice.call(tool, **arguments)
            assert "left_out" not in whole
            assert [each[member] for each in whole[container]] == wanted


@pytest.mark.promise("recall.budget")
async def test_what_is_read_of_a_session_fits_into_a_budget(tmp_path: Path) -> None:
    async with house(tmp_path) as at, at.client() as alice:
        session = (await alice.call("create_session", purpose="plan"))["session_id"]
        for n in range(12):
            await alice.call("add_message", session_id=session, content=f"harbour {n} " + "x" * 200)
        times = {"start_time": "2020-01-01T00:00:00Z", "end_time": "2999-01-01T00:00:00Z"}
        for tool, container, arguments in (
            ("get_messages", "messages", {}),
            ("search_context", "results", {"query": "harbour", "limit": 12}),
            ("search_by_sender", "messages", {"sender": "planner"}),
            ("search_by_timerange", "messages", times),
        ):
            whole = await alice.call(tool, session_id=session, **arguments)
            assert "left_out" not in whole
            cut = await alice.call(tool, session_id=session, max_tokens=600, **arguments)
            kept = cut[container]
            assert 0 < len(kept) < 12
            assert kept == whole[container][: len(kept)]
            assert cut["left_out"] == 12 - len(kept)
            assert sum(len(json.dumps(each)) for each in kept) / 4 <= 600 * 1.1
            assert cut.get("truncated", True) is True
        seen: list[str] = []
        cursor = None
        while True:
            page = await alice.call("get_messages", session_id=session, max_tokens=500, cursor=cursor)
            seen += [message["content"].split()[1] for message in page["messages"]]
            if (cursor := page["next_cursor"]) is None:
                break
        assert seen == [str(n) for n in range(12)]
        nothing = await alice.call("get_messages", session_id=session, max_tokens=1, limit=1)
        assert (nothing["messages"], nothing["left_out"]) == ([], 1)
        (named,) = nothing["over_budget"]
        assert named["tokens"] > 1
        alone = await alice.call(
            "get_messages", session_id=session, since_id=named["message_id"] - 1, limit=1
        )
        assert alone["messages"][0]["message_id"] == named["message_id"]
        assert nothing["next_cursor"] is not None


async def test_calls_take_effect_in_the_order_sent(tmp_path: Path) -> None:
    """Also those whose actor is looked up by an id, and searches, which no actor's mailbox holds in order."""
    async with house(tmp_path) as at, at.client() as alice:
        stored = await alice.call("store_memory", content="harbour 0", namespace="project:atlas")
        memory_id = stored["memory_id"]
        sent = []
        for n in range(1, 21):
            arguments: dict[str, Any] = {"memory_id": memory_id, "content": f"harbour {n}"}
            if n % 2:
                arguments["namespace"] = "project:atlas"
            sent.append(await alice.send_call("update_memory", arguments))
        answers = {}
        for _ in sent:
            answer = await alice.receive()
            answers[answer["id"]] = json.loads(answer["result"]["content"][0]["text"])["version"]
        assert [answers[number] for number in sent] == list(range(2, 22))
        first = await alice.send_call("store_memory", {"content": "lighthouse", "namespace": "team:new"})
        second = await alice.send_call("memory_search", {"query": "lighthouse", "namespace": "team:new"})
        both = {}
        for _ in range(2):
            answer = await alice.receive()
            both[answer["id"]] = json.loads(answer["result"]["content"][0]["text"])
        assert both[first]["success"]
        assert both[second]["total"] == 1


async def test_a_search_that_is_cancelled_is_not_answered_and_costs_nobody_else(tmp_path: Path) -> None:
    async with house(tmp_path) as at, at.client() as alice:
        for n in range(30):
            await alice.call("store_memory", content=f"harbour {n}", namespace=f"team:t{n}")
        search = await alice.send_call("memory_search", {"query": "harbour"})
        await alice.send({"method": "notifications/cancelled", "params": {"requestId": search}})
        statistics = await alice.send_call("memory_stats", {})
        answer = await alice.receive()
        assert answer["id"] in {search, statistics}
        if answer["id"] == search:  # it was over before it was taken back
            answer = await alice.receive()
        assert answer["id"] == statistics
        assert (await alice.call("memory_search", query="harbour"))["total"] == 30


async def test_a_repeat_is_answered_as_the_first_was(tmp_path: Path) -> None:
    async with house(tmp_path) as at, at.client() as alice:
        stored = [await alice.call("store_memory", content="x", idempotency_key="once") for _ in range(2)]
        assert stored[0] == stored[1]
        conflict = await alice.call("store_memory", content="y", idempotency_key="once")
        failed(conflict, "IDEMPOTENCY_CONFLICT")
        memory_id = stored[0]["memory_id"]
        for content in ("z", "z"):
            answer = await alice.call(
                "update_memory", memory_id=memory_id, content=content, idempotency_key="again"
            )
            assert answer["version"] == 2


@pytest.mark.promise("recall.across")
async def test_an_attached_process_searches_as_the_owner_does(tmp_path: Path) -> None:
    async with server_process(tmp_path, "--user", "alice", "--embedder", "none") as owner:
        await owner.client.initialize()
        await owner.client.call("store_memory", content="the harbour opens at six", namespace="team:crew")
        stored = await owner.client.call("store_memory", content="the harbour of one's own")
        async with server_process(
            tmp_path, "--user", "alice", "--embedder", "none", "--timezone", "Asia/Tokyo"
        ) as attached:
            await attached.client.initialize()
            found = await attached.client.call(
                "memory_search", query="harbour", include_debug=True, time_expr="since 2020"
            )
            assert found["total"] == 2
            assert found["debug"]["time_window"]["timezone"] == "Asia/Tokyo"
            assert (await attached.client.call("recall_context", task="harbour"))["count"] == 2
            updated = await attached.client.call(
                "update_memory", memory_id=stored["memory_id"], content="the pier"
            )
            assert updated["version"] == 2
            with trio.fail_after(PATIENCE):
                for server in (owner, attached):
                    found = await server.client.call("retrieve_memory", query="pier")
                    assert [memory["content"] for memory in found["memories"]] == ["the pier"]


@pytest.mark.promise("embedding.first-search")
@pytest.mark.parametrize("tool", ["memory_search", "retrieve_memory", "recall_context"])
async def test_the_first_search_of_a_process_ranks_like_the_second(tmp_path: Path, tool: str) -> None:
    said = "where does the ship lie"
    search = {"task": said} if tool == "recall_context" else {"query": said}
    async with server_process(tmp_path, "--user", "alice") as server:
        await server.client.initialize()
        for content in ("the office is closed on Mondays", "the boat is moored at the harbour"):
            await server.client.call("store_memory", content=content)
    for _ in range(2):  # with vectors that are to be made yet, and with those that are there
        first: dict[str, Any] = {"partial": True}
        while "partial" in first:  # where no processor was free to load the model in time; the answer says so
            async with server_process(tmp_path, "--user", "alice") as server:
                await server.client.initialize()
                first, second = [await server.client.call(tool, **search) for _ in range(2)]
        assert first["memories"][0]["content"] == "the boat is moored at the harbour"
        assert first["memories"] == second["memories"]
