"""The ledger of what was told: recalls beside hooks, bounded, without texts, for its user alone."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest
import trio
from support.agents import refused
from support.console import looker
from support.hook_events import PROJECT, Client, fill
from support.keyed import create_key, premises

from greenroom.actors import (
    EraseUser,
    ExplainSearch,
    ForgetMemory,
    ListTold,
    MemorySearch,
    RecallContext,
    RetrieveMemory,
    StoreMemory,
    UpdateMemory,
)
from greenroom.actors.sessions.requests import injection_log

if TYPE_CHECKING:
    from support.agents import Enter, House

    from greenroom.actors import MemoriesTold

HOSTILE = '"><script>alert(1)</script><img src=x onerror=alert(1)>\u202e{{7*7}}'


async def told(client: Client, **asked: object) -> MemoriesTold:
    found: MemoriesTold = await client.agent.ask(ListTold(**asked))  # type: ignore[arg-type]
    return found


async def test_a_recall_is_told_with_its_reasons(enter: Enter) -> None:
    async with enter(embedder="none") as at:
        ann = Client(at)
        await fill(ann)
        made = await ann.knows("The mascot of the team is a red fox", key="fox")
        answer = await ann.agent.ask(RecallContext(task="which fox is the mascot", max_tokens=100))
        page = await told(ann)
        (row,) = page.told
        assert (row.source, row.agent, row.query) == ("recall", "claude-code", "which fox is the mascot")
        assert [each.memory_id for each in row.memories] == [each.memory_id for each in answer.memories]
        assert row.tokens == answer.tokens
        assert sum(row.left_out.values()) == answer.left_out > 0
        first = row.memories[0]
        assert (first.memory_id, first.version) == (made, 1)
        assert first.score == answer.memories[0].score
        assert first.signals["words"] > 0
        assert first.now is not None
        assert first.now.key == "fox"


async def test_a_recall_from_few_leaves_out_what_is_weak_beside_the_best(enter: Enter) -> None:
    async with enter(embedder="none") as at:
        ann = Client(at)
        fox = await ann.knows("The mascot of the team is a red fox called Vermilion", key="fox")
        for number in range(12):
            await ann.knows(f"The team eats at noon in room {number}", key=f"n{number}")
        task = "which red fox called Vermilion is the mascot of the team"
        answer = await ann.agent.ask(RecallContext(task=task))
        assert (answer.count, answer.left_out, answer.memories[0].memory_id) == (5, 0, fox)
        (row,) = (await told(ann)).told
        assert row.left_out == {"it is weak beside the best": 8}
        everything = await ann.agent.ask(RecallContext(task=task, kind="semantic"))
        assert everything.count == 13, "a filter says what is wanted"
        given = {each.memory_id for each in answer.memories}
        weak = next(each.memory_id for each in everything.memories if each.memory_id not in given)
        said = await ann.agent.ask(ExplainSearch(query=task, memory_id=weak))
        why = next(each for each in said.memory if each.mode == "recall")
        assert why.place is None
        assert why.reasons[0].startswith("it is weak beside the best: a chance of 0.0")
        for number in range(12, 60):
            await ann.knows(f"The team eats at noon in room {number}", key=f"n{number}")
        many = await ann.agent.ask(RecallContext(task=task, max_tokens=10_000))
        assert many.count == 61, "of many nothing is weak"


async def test_searches_are_not_told(enter: Enter) -> None:
    async with enter(embedder="none") as at:
        ann = Client(at)
        await ann.knows("The mascot is a fox")
        assert (await ann.agent.ask(MemorySearch(query="fox"))).total == 1
        assert (await ann.agent.ask(RetrieveMemory(query="fox"))).total == 1
        assert (await told(ann)).total == 0


async def test_what_a_hook_gave_says_what_it_left_out(enter: Enter) -> None:
    async with enter(embedder="none") as at:
        ann = Client(at)
        await fill(ann)
        await ann.knows("The mascot of the team is a red fox", key="fox")
        assert "red fox" in await ann.asks("tell me about the red fox that is the mascot of the team")
        assert "red fox" not in await ann.asks("and now the red fox that is the mascot of the team, please")
        await ann.starts()
        page = await told(ann, source="user-prompt")
        assert page.total == len(page.told) == 1
        row = page.told[0]
        assert row.least is not None
        assert row.memories[0].score is not None
        assert row.memories[0].score >= row.least
        assert row.left_out.keys() <= {"it is too weak", "there was no room for it"}


async def test_rows_are_filtered_and_paged(enter: Enter) -> None:
    async with enter(embedder="none") as at:
        ann, other = Client(at), Client(at, agent="codex")
        fox = await ann.knows("The mascot is a red fox")
        for _ in range(5):
            await ann.agent.ask(RecallContext(task="red fox"))
        owl = await other.knows("The logo is an owl", namespace="user:ann:owls")
        await other.agent.ask(RecallContext(task="owl", namespace="user:ann:owls"))
        first = await told(ann, limit=4)
        assert (first.total, len(first.told)) == (6, 4)
        rest = await told(ann, limit=4, cursor=first.next_cursor)
        numbers = [row.number for row in (*first.told, *rest.told)]
        assert numbers == sorted(numbers, reverse=True)
        assert rest.next_cursor is None
        assert len(numbers) == 6
        assert (await told(ann, memory_id=fox)).total == 5
        assert [row.agent for row in (await told(ann, memory_id=owl)).told] == ["codex"]
        assert (await told(ann, agent="codex")).total == 1
        assert (await told(ann, number=numbers[2])).told[0].number == numbers[2]
        with refused("VALIDATION_ERROR"):
            await told(ann, agent="codex", cursor=first.next_cursor)


@pytest.mark.promise("console.told")
async def test_the_ledger_has_no_texts_of_memories(enter: Enter) -> None:
    async with enter(embedder="none") as at:
        ann = Client(at)
        await fill(ann)
        made = await ann.knows("The secret mascot is a vermilion fox", key="vermilion-key")
        await ann.agent.ask(RecallContext(task="secret mascot fox", max_tokens=100))
        assert "vermilion" in await ann.asks("tell me which fox is the secret mascot")
        assert "vermilion-key" in repr(await ann.given())
        await ann.agent.ask(UpdateMemory(memory_id=made, content="The mascot is an owl"))
        (recalled,) = (await told(ann, source="recall")).told
        now = recalled.memories[0].now
        assert now is not None
        assert (recalled.memories[0].version, now.version) == (1, 2)
        await ann.agent.ask(ForgetMemory(memory_id=made))
        page = await told(ann)
        assert page.total == 2
        for row in page.told:
            assert (row.memories[0].memory_id, row.memories[0].now) == (made, None)
            assert "vermilion" not in repr(row)
        assert "vermilion" not in repr(await ann.given())


@pytest.mark.promise("console.told")
async def test_only_the_user_whose_agents_were_told_sees_it(enter: Enter) -> None:
    async with enter(embedder="none") as at:
        ann, bob = Client(at), Client(at, user="bob")
        shared = StoreMemory(namespace="project:p", content="The mascot is a fox", scope="shared")
        await ann.agent.ask(shared)
        await ann.knows("My own fox")
        await ann.agent.ask(RecallContext(task="fox"))
        assert (await told(ann)).total == 1
        assert (await told(bob)).total == 0
        narrow = Client(at, scopes=frozenset({"sessions:read"}))
        with refused("PERMISSION_DENIED"):
            await told(narrow)


async def test_what_was_told_in_a_project_is_shown_to_its_members_alone(enter: Enter) -> None:
    async with enter(embedder="none") as at:
        ann = Client(at)
        await ann.knows("The mascot of the team is a red fox", key="fox")
        assert "red fox" in await ann.asks("tell me about the red fox that is the mascot of the team")
        for projects, count in ((frozenset({"other"}), 0), (frozenset({PROJECT}), 1), (None, 1)):
            page = await told(Client(at, agent="codex", projects=projects))
            assert (len(page.told), page.total) == (count, count)


async def test_no_more_than_the_newest_are_kept(enter: Enter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(injection_log, "MOST_GIVEN", 10)
    async with enter(embedder="none") as at:
        ann = Client(at)
        await ann.knows("The mascot is a fox")
        for number in range(25):
            await ann.agent.ask(RecallContext(task=f"fox {number}"))
        page = await told(ann)
        assert page.total == 10
        assert page.told[0].query == "fox 24"


async def test_secrets_in_a_task_are_left_out(enter: Enter) -> None:
    async with enter(embedder="none") as at:
        ann = Client(at)
        await ann.knows("The mascot is a fox")
        token = "ghp_" + "".join(random.Random(7).choices("abcDEF0123456789", k=36))  # noqa: S311 - none of ours
        await ann.agent.ask(RecallContext(task=f"fox {token}"))
        (row,) = (await told(ann)).told
        assert token not in row.query
        assert row.query.startswith("fox")


async def test_recalls_are_written_together_and_a_crash_loses_those_that_wait(enter: Enter) -> None:
    async with enter(embedder="none") as at:
        ann = Client(at)
        await ann.knows("The mascot is a fox")
        await ann.agent.ask(RecallContext(task="fox one"))
        at.tick(11)
        await trio.sleep(120)
        await ann.agent.ask(RecallContext(task="fox two"))
    async with enter(embedder="none") as at:
        assert [row.query for row in (await told(Client(at))).told] == ["fox one"]


async def erased(at: House, user: str) -> dict[str, int]:
    answer = await at.agent("root").ask(EraseUser(user=user, confirm=True))
    return answer.counts


@pytest.mark.promise("console.told")
async def test_erasing_a_person_takes_what_was_told(enter: Enter) -> None:
    async with enter(embedder="none") as at:
        ann, bob = Client(at), Client(at, user="bob", agent="bobs")
        await bob.agent.ask(StoreMemory(content="The fox of Bob", scope="shared"))
        await ann.knows("The fox of Ann")
        await ann.agent.ask(RecallContext(task="fox"))
        await bob.agent.ask(RecallContext(task="fox"))
        seen = {each.namespace for row in (await told(ann)).told for each in row.memories}
        assert seen == {"user:ann", "user:bob"}
        counts = await erased(at, "bob")
        assert (counts["given"], counts["told"]) == (1, 1)
        seen = {each.namespace for row in (await told(ann)).told for each in row.memories}
        assert seen == {"user:ann"}
        assert (await told(bob)).total == 0


@pytest.mark.slow
async def test_pages_show_what_was_told(enter: Enter) -> None:
    async with enter(embedder="none") as at, premises(at) as here:
        owner = Client(at, user="owner")
        made = await owner.knows(f"The mascot is a red fox {HOSTILE}", key="fox")
        await owner.agent.ask(RecallContext(task=f"red fox {HOSTILE}"))
        await owner.asks("tell me about the red fox that is the mascot", session=f"s{HOSTILE}")
        visitor = await looker(here)
        page = await visitor.look("/told")
        page.check_inert()
        rows = [link for link in page.links if link.startswith("./told/")]
        assert len(rows) == 2, page.text
        for link in rows:
            one = await visitor.look(link.removeprefix("."))
            one.check_inert()
            assert one.headings[0] == "Injection"
            assert f"../memories/{made}" in one.links
            assert f"../told?memory={made}" in one.links
            assert {"words", "score"} <= {each.get("aria-label") for each in one.named("meter")}
        assert len([x for x in (await visitor.look("/told?source=recall")).links if "told/" in x]) == 1
        assert "No injection matches" in (await visitor.look("/told?agent=nobody")).text
        for wrong in ("/told/999", "/told/abc", "/told/%3Cscript%3E", "/told/" + "9" * 40):
            page = await visitor.look(wrong)
            assert (page.status, page.headings[0]) == (404, "Not found"), wrong
        for wrong in ("source=x", "memory=x", "cursor=x"):
            page = await visitor.look(f"/told?{wrong}")
            assert page.status == 422, wrong
            page.check_inert()
        key = await create_key(at, "memory:read", agent="bot", user="bob")
        await here.settled()
        assert "No injection matches" in (await (await looker(here, key)).look("/told")).text


async def test_who_is_seen_as_another_sees_what_that_one_was_told(enter: Enter) -> None:
    async with enter(embedder="none") as at, premises(at) as here:
        ann = Client(at)
        made = await ann.knows("The mascot is a red fox", key="fox")
        await ann.agent.ask(RecallContext(task="red fox"))
        await here.settled()
        visitor = await looker(here)
        seen = "as=claude-code&as_user=ann"
        await visitor.see_as(seen)
        page = await visitor.look(f"/told?{seen}")
        (one,) = (link for link in page.links if link.startswith("./told/"))
        page = await visitor.look(one.removeprefix("."))
        assert any(link.startswith(f"../memories/{made}?as=") for link in page.links), page.links
