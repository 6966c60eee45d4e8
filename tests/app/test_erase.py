"""Erasing a person: nothing of them is found afterwards, and nothing of others is missing."""

from __future__ import annotations

import datetime as dt
import signal
import subprocess
import sys
import zlib
from contextlib import closing
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
import trio
import trio.testing
from harness import PATIENCE

from greenroom.actors import (
    PROGRESS_CALLBACK,
    REQUESTS,
    Agent,
    AnswerHook,
    ChannelValue,
    CheckpointService,
    CheckpointValue,
    CheckpointWrite,
    HookEvent,
    Principal,
    PutCheckpoint,
    PutWrites,
    ReadResource,
    TakeHookEvent,
    Turn,
    finish_erasing,
    open_greenroom,
)
from greenroom.actors.core.audit.query import CheckAudit, ReadAuditLog
from greenroom.actors.core.auth.grants import user_tag
from greenroom.actors.sessions.passports.requests import KeepLink, passport_address
from greenroom.actors.sessions.requests.requests import AppendEvent
from greenroom.actors.sessions.requests.session_context import NoteContext, NotedSearch
from greenroom.runtime import (
    ACTORS,
    INDEXES,
    META,
    Address,
    Encryption,
    Refusal,
    Secret,
    Store,
    WriteBatch,
    backup,
    older_stores,
    restore,
)
from greenroom.runtime.journal.chain import NO_LINK, JournalKeys, entry, size_of
from greenroom.testing import VirtualClock

if TYPE_CHECKING:
    from pathlib import Path

    from trio.testing import MockClock

    from greenroom.runtime import RuntimeClient

MARK = "wyvern"
"""In all that is hers, and in her names."""
HERS = Principal(agent_id="wyvern-coder", user="wyvern")
HIS = Principal(agent_id="reviewer", user="bob")
ROOT = Principal(agent_id="root")
KEY = Encryption(lambda: b"\x07" * 32, required=True)
PACKED = msgspec.json.encode("of a wyvern that is long enough to be packed " * 400).decode().strip('"')


def options(folder: Path, encryption: Encryption | None = None) -> dict[str, Any]:
    return {"encryption": encryption, "secrets": folder.parent / "secrets"}


async def ask(runtime: RuntimeClient, who: Principal, tool: str, **arguments: Any) -> Any:
    return await Agent(runtime, who).ask(REQUESTS[tool](**arguments))


def json(text: str) -> msgspec.Raw:
    return msgspec.Raw(text.encode())


async def live(runtime: RuntimeClient) -> None:
    """Leave something of every kind, hers and his."""
    await ask(runtime, ROOT, "create_api_key", name="wyvern's laptop", scopes=["memory:*"], user="wyvern")
    await ask(runtime, ROOT, "create_api_key", name="bob's", scopes=["*", "admin"], user="bob")
    for text in ("the wyvern likes tea", "the wyvern likes coffee"):
        await ask(runtime, HERS, "store_memory", key="wyvern-drink", content=text, tags=["wyvern-tag"])
    await ask(runtime, HERS, "store_memory", key="wyvern-packed", content=PACKED, compress=True)
    await ask(runtime, HERS, "store_memory", key="wyvern-gone", content="a wyvern that is forgotten")
    await ask(runtime, HERS, "forget_memory", key="wyvern-gone")
    await ask(runtime, HERS, "set_memory", key="wyvern-key", value=json('"wyvern value"'))
    for text in ("wyvern plans", "wyvern plans anew"):
        await ask(runtime, HERS, "store_memory", namespace="project:p", key="wyvern-plan", content=text)
    await ask(runtime, HIS, "store_memory", namespace="project:p", key="plan", content="plans for a bridge")
    await ask(runtime, HERS, "rate_memory", namespace="project:p", key="plan", rating=1.0, note="wyvern note")
    await ask(runtime, HIS, "store_memory", key="mine", content="what bob keeps")
    await ask(runtime, HERS, "import_memories", source='{"key": "wyvern-import", "content": "from a wyvern"}')
    await ask(runtime, HERS, "export_memories")
    await ask(runtime, HIS, "create_session", session_id="his", purpose="his work")
    await ask(runtime, HERS, "create_session", session_id="wyvern-work", purpose="wyvern's work",
              metadata=json('{"wyvern": 1}'), initial_state=json('{"wyvern": 2}'))  # fmt: skip
    for session in ("his", "wyvern-work"):
        for who in (HERS, HIS):
            said = "wyvern was here" if who is HERS else "bob was here"
            for visibility in ("public", "private"):
                await ask(
                    runtime, who, "add_message", session_id=session, content=said, visibility=visibility
                )
            decisions = [{"what": said}]
            asked: Any = msgspec.convert(
                {"session_id": session, "decisions": decisions, "recent_searches": [said]},
                REQUESTS["record_context"],
            )
            await Agent(runtime, who).ask(asked)
    event = AppendEvent(
        session_id="his",
        event_id="wyvern-event",
        event_type="message",
        actor="agent:wyvern-coder",
        content=json('{"text": "wyvern event"}'),
    )
    await runtime.ask(Address("session", "his"), event, principal=HERS)
    note = NoteContext(searches=[NotedSearch("wyvern alone", "memory_search", is_private=True)])
    await runtime.ask(Address("session", "his"), note, principal=HERS)
    told = {"event_id": "wyvern-aside", "actor": "agent:reviewer", "visibility": "private"}
    aside = msgspec.structs.replace(event, **told)  # a program may write for any agent
    await runtime.ask(Address("session", "his"), aside, principal=HERS)
    await ask(runtime, HERS, "export_session", session_id="his")
    for number, (who, name) in enumerate(((HERS, "wyvern"), (HIS, "bob"))):
        ended = HookEvent(
            id=f"{number:032x}",
            name="session-end",
            client="claude-code",
            session=f"{name}-talk",
            project=f"{name}-00000000",
            folder=f"/{name}",
            at=dt.datetime(2023, 11, 14, tzinfo=dt.UTC),
            turns=[Turn(role="user", text=f"Remember that {name} sleeps in the morning.")],
        )
        await runtime.query(TakeHookEvent(event=ended), principal=who)
        starts = msgspec.structs.replace(ended, name="session-start", session=f"{name}-next")
        assert name in (await runtime.query(AnswerHook(event=starts), principal=who)).context
    for who, name in ((HERS, "wyvern"), (HIS, "bob")):
        service = CheckpointService(runtime, who)
        kept = CheckpointValue("text", name.encode())
        write = CheckpointWrite(name, name, 0, name, kept)
        put = PutCheckpoint(
            thread_id=name,
            namespace=name,
            checkpoint_id=name,
            parent_id=None,
            checkpoint=kept,
            metadata=kept,
            run_id=name,
            versions={name: 1},
            values=[ChannelValue(name, kept)],
            deltas=[],
        )
        await service.put(put)
        writes = PutWrites(thread_id=name, namespace=name, checkpoint_id=name, writes=[write])
        await service.put_writes(writes)
    for digit, who in (("1", HERS), ("2", HIS)):
        await runtime.ask(passport_address(digit * 32), KeepLink(session_id="his"), principal=who)
    await ask(runtime, HERS, "memory_search", query="tea of the wyvern")
    changes = json('{"wyvern": "wyvern metadata"}')
    kept_answer = {"session_id": "wyvern-work", "metadata": changes, "idempotency_key": "once"}
    await ask(runtime, HERS, "update_session", **kept_answer)
    with pytest.raises(Refusal):
        await Agent(runtime, HIS).ask(ReadResource(uri="agent://wyvern-coder/memory"))
    await ask(runtime, HIS, "search_by_sender", session_id="his", sender="wyvern-coder")


async def his_view(runtime: RuntimeClient) -> bytes:
    """Return all that he sees and that is his, without what time changes."""
    messages = (await ask(runtime, HIS, "get_messages", session_id="his")).messages
    context = await ask(runtime, HIS, "get_session_context", session_id="his")
    found = [
        [each for each in messages if each.sender == "reviewer"],
        [each for each in context.context.decisions if MARK not in each.what],
        await ask(runtime, HIS, "get_memory", key="mine", namespace="user:bob"),
        await ask(runtime, HIS, "list_memory_versions", key="plan", namespace="project:p"),
        (await ask(runtime, ROOT, "list_api_keys")).keys[1],
        await CheckpointService(runtime, HIS).read("bob", "bob"),
    ]
    return msgspec.json.encode(found)


def contents(folder: Path, encryption: Encryption | None) -> bytes:
    """Return the bytes of all files, or of all that an encrypted store says."""
    files = b"".join(path.read_bytes() for path in folder.parent.rglob("*") if path.is_file())
    if encryption is None:
        return files
    with closing(Store(folder, encryption=encryption)) as store:
        rows = (row for table in (ACTORS, INDEXES, META) for row in store.scan(table, b""))
        return files + b"".join(key + record for key, record in rows)


@pytest.mark.promise("erase.nothing-is-left", "erase.others-keep-theirs")
@pytest.mark.parametrize("encryption", [None, KEY], ids=["plain", "encrypted"])
async def test_nothing_of_a_person_is_left_and_all_of_others(
    folder: Path, encryption: Encryption | None
) -> None:
    async with open_greenroom(folder, **options(folder, encryption)) as runtime:
        await live(runtime)
    # Under the rules of another language indexes are made anew, as segments.
    async with open_greenroom(folder, languages=["german"], **options(folder, encryption)) as runtime:
        await ask(runtime, HIS, "memory_search", query="plans")
        before = await his_view(runtime)
        assert encryption or zlib.compress(PACKED.encode())[:60] in contents(folder, None)
        counted = await ask(runtime, ROOT, "erase_user", user="wyvern")
        assert not counted.erased
        erased = await ask(runtime, ROOT, "erase_user", user="wyvern", confirm=True)
        assert erased.erased
        assert erased.counts == counted.counts
        assert erased.counts == {
            "api_keys": 1, "checkpoint_writes": 1, "checkpoints": 1, "exports": 1, "given": 1,
            "hook_events": 1, "hook_sessions": 2, "imports": 1,
            "memories": 7, "memory_versions": 9, "messages": 7, "messages_of_others": 2, "passport_links": 1,
            "passports": 1, "ratings": 1, "session_fields": 4, "session_notes": 4, "sessions": 2,
        }  # fmt: skip
        assert await his_view(runtime) == before
        assert MARK not in str(await ask(runtime, HIS, "get_messages", session_id="his"))
        assert MARK not in str((await ask(runtime, HIS, "memory_search", query="wyvern plans tea")).memories)
        listed = (await ask(runtime, HIS, "list_sessions")).sessions
        assert [(each.purpose, each.message_count) for each in listed] == [
            ("claude-code in bob-00000000", 1), ("his work", 2),
        ]  # fmt: skip
    assert encryption or MARK.encode() in contents(folder, None)
    info = finish_erasing(folder, **options(folder, encryption))
    assert info.redacted
    assert info.after < info.before
    left = contents(folder, encryption)
    assert MARK.encode() not in left
    assert zlib.compress(PACKED.encode())[:60] not in left
    assert b"session\0his\0ue" not in left, "the id of an event of hers"
    async with open_greenroom(folder, **options(folder, encryption)) as runtime:
        assert await his_view(runtime) == before
        checked = await runtime.query(CheckAudit())
        assert checked.report.findings == []
        assert checked.report.redacted == info.redacted
        records = (await runtime.query(ReadAuditLog(limit=10_000))).records
        assert MARK not in str(records)
        (done,) = (each for each in records if each.action == "erase_user" and each.details["confirm"])
        assert done.details == {"confirm": True, **erased.counts}
        assert done.agent == "root"


@pytest.mark.promise("erase.again")
async def test_whoever_is_erased_already_is_erased_again_without_any_change(folder: Path) -> None:
    async with open_greenroom(folder, **options(folder)) as runtime:
        await live(runtime)
        await ask(runtime, ROOT, "erase_user", user="wyvern", confirm=True)
        before = await his_view(runtime)
        again = await ask(runtime, ROOT, "erase_user", user="wyvern", confirm=True)
        assert again.counts == {}
        assert await his_view(runtime) == before
    finish_erasing(folder, **options(folder))
    finish_erasing(folder, **options(folder))
    assert MARK.encode() not in contents(folder, None)


@pytest.mark.quick
@pytest.mark.promise("erase.exactly-one")
@pytest.mark.parametrize(
    "name",
    ["*", "wyver", "wyvern ", "WYVERN", "wyv\u0435rn", "w*", "user:wyvern", "wyvern:x", "../wyvern"],
)
async def test_a_name_is_no_pattern_and_no_other_spelling(folder: Path, name: str) -> None:
    async with open_greenroom(folder, **options(folder)) as runtime:
        await live(runtime)
        erased = await ask(runtime, ROOT, "erase_user", user=name, confirm=True)
        assert erased.counts == {}
        assert erased.agents == []
        assert (await ask(runtime, ROOT, "erase_user", user="wyvern")).counts["memories"] == 7


async def test_an_agent_whose_id_ends_with_the_users_own_digits_is_theirs(folder: Path) -> None:
    desk = Principal(agent_id=f"desk.{user_tag('wyvern')}")
    other = Principal(agent_id=f"desk.{user_tag('wyver')}")
    async with open_greenroom(folder, **options(folder)) as runtime:
        for agent in (desk, other):
            await ask(runtime, agent, "set_memory", key="k", value=json("1"))
        erased = await ask(runtime, ROOT, "erase_user", user="wyvern", confirm=True)
        assert erased.counts == {"memories": 1, "memory_versions": 1}
        assert (await ask(runtime, other, "list_memory")).count == 1


async def test_more_memories_than_fit_a_commit_are_erased_and_counted(folder: Path) -> None:
    lines = "\n".join(f'{{"key": "wyvern-{number}", "content": "{number}"}}' for number in range(1_100))
    async with open_greenroom(folder, embedder="none", **options(folder)) as runtime:
        await ask(runtime, HERS, "import_memories", source=lines)
        erased = await ask(runtime, ROOT, "erase_user", user="wyvern", confirm=True)
        assert erased.counts["memories"] == 1_100
        assert (await ask(runtime, HERS, "list_memories")).count == 0
    finish_erasing(folder, **options(folder))
    assert MARK.encode() not in contents(folder, None)


async def test_lines_of_an_import_that_was_never_decided_are_erased(folder: Path) -> None:
    def leave(_done: float, _total: float, words: str) -> None:
        if words.startswith("importing"):
            raise LeftError

    line = '{"key": "wyvern-line", "content": "staged by the wyvern"}'
    async with open_greenroom(folder, **options(folder)) as runtime:
        token = PROGRESS_CALLBACK.set(leave)
        for namespace in ("user:wyvern", "project:p"):
            with pytest.raises(LeftError):
                await ask(runtime, HERS, "import_memories", source=line, namespace=namespace)
        PROGRESS_CALLBACK.reset(token)
        erased = await ask(runtime, ROOT, "erase_user", user="wyvern", confirm=True)
        assert erased.counts["imports"] == 2
    finish_erasing(folder, **options(folder))
    assert MARK.encode() not in contents(folder, None)


async def test_who_listens_to_a_session_hears_that_messages_are_gone(folder: Path) -> None:
    async with open_greenroom(folder, **options(folder)) as runtime:
        await live(runtime)
        with Agent(runtime, HIS).subscriber() as subscriber:
            subscriber.add("session://his")
            await ask(runtime, ROOT, "erase_user", user="wyvern", confirm=True)
            with trio.fail_after(PATIENCE):
                assert await subscriber.next() == "session://his"


async def test_a_key_of_a_person_opens_nothing_also_in_a_backup_that_is_restored(folder: Path) -> None:
    async with open_greenroom(folder, **options(folder)) as runtime:
        await live(runtime)
    backup(folder, folder.parent / "copy")
    async with open_greenroom(folder, **options(folder)) as runtime:
        await ask(runtime, ROOT, "erase_user", user="wyvern", confirm=True)
        assert [each.status for each in (await ask(runtime, ROOT, "list_api_keys")).keys] == [
            "revoked",
            "active",
        ]
    restore(folder.parent / "copy", folder, secrets=folder.parent / "secrets")
    async with open_greenroom(folder, **options(folder)) as runtime:
        keys = (await ask(runtime, ROOT, "list_api_keys")).keys
        assert [(each.user, each.status) for each in keys] == [("wyvern", "revoked"), ("bob", "active")]


async def test_an_agent_of_several_people_is_left_unless_it_is_named(folder: Path) -> None:
    async with open_greenroom(folder, **options(folder)) as runtime:
        for user in ("ann", "bob"):
            await ask(runtime, Principal(agent_id="common", user=user), "store_memory", key="k", content=user)
        await ask(runtime, Principal(agent_id="common", user="ann"), "set_memory", key="s", value=json("1"))
        counted = await ask(runtime, ROOT, "erase_user", user="ann")
        assert (counted.agents, counted.shared_agents, counted.counts["memories"]) == ([], ["common"], 1)
        counted = await ask(runtime, ROOT, "erase_user", user="ann", agents=["common"])
        assert (counted.agents, counted.shared_agents, counted.counts["memories"]) == (["common"], [], 2)


@pytest.mark.promise("erase.others-keep-theirs")
async def test_an_agent_is_left_where_the_log_was_redacted(folder: Path) -> None:
    bob, ann = (Principal(agent_id="common", user=user) for user in ("bob", "ann"))
    async with open_greenroom(folder, **options(folder)) as runtime:
        await ask(runtime, bob, "set_memory", key="k", value=json("1"))
        await ask(runtime, ROOT, "erase_user", user="bob", confirm=True)
    finish_erasing(folder, **options(folder))
    async with open_greenroom(folder, **options(folder)) as runtime:
        await ask(runtime, ann, "set_memory", key="k2", value=json("2"))
        erased = await ask(runtime, ROOT, "erase_user", user="ann", confirm=True)
        assert (erased.agents, erased.shared_agents) == ([], ["common"])
        assert (await ask(runtime, bob, "list_memory")).count == 1


@pytest.mark.promise("erase.others-keep-theirs")
async def test_an_agent_is_left_where_old_records_of_the_log_went(
    folder: Path, autojump_clock: MockClock
) -> None:
    clock = VirtualClock()
    bob, ann = (Principal(agent_id="common", user=user) for user in ("bob", "ann"))
    async with open_greenroom(folder, **options(folder), clock=clock, embedder="none") as runtime:
        await ask(runtime, bob, "set_memory", key="k", value=json("1"))
        for number in range(2):
            clock.jump(60 * 24 * 60 * 60 * 1_000_000)
            autojump_clock.jump(24 * 60 * 60)  # so that the sweep comes
            await trio.testing.wait_all_tasks_blocked()
            await ask(runtime, ann, "set_memory", key=f"k{number}", value=json("2"))
        while {each.user for each in await records_of_common(runtime)} != {"ann"}:
            await trio.lowlevel.checkpoint()  # what the sweep removes is committed in a thread
        erased = await ask(runtime, ROOT, "erase_user", user="ann", confirm=True)
        assert (erased.agents, erased.shared_agents) == ([], ["common"])
        assert (await ask(runtime, bob, "list_memory")).count == 3


async def records_of_common(runtime: RuntimeClient) -> list[Any]:
    log = await ask(runtime, ROOT, "get_audit_log", agent="common")
    return list(log.records)


@pytest.mark.quick
@pytest.mark.promise("erase.admin")
async def test_only_who_administers_erases(folder: Path) -> None:
    async with open_greenroom(folder, **options(folder)) as runtime:
        await live(runtime)
        others = frozenset({"sessions:*", "memory:*", "audit:read"})
        for confirm in (False, True):
            with pytest.raises(Refusal) as refused:
                await ask(runtime, Principal(agent_id="reviewer", user="wyvern", scopes=others),
                          "erase_user", user="wyvern", confirm=confirm)  # fmt: skip
            assert refused.value.code == "PERMISSION_DENIED"
        assert (await ask(runtime, ROOT, "erase_user", user="wyvern")).counts["memories"] == 7


class LeftError(Exception):
    """Nobody waits any more."""


@pytest.mark.quick
@pytest.mark.promise("erase.again")
@pytest.mark.parametrize("step", range(0, 12, 3))
async def test_what_was_left_in_the_middle_is_gone_after_the_next_time(folder: Path, step: int) -> None:
    def leave(done: float, _total: float, _words: str) -> None:
        if done == step:
            raise LeftError

    async with open_greenroom(folder, **options(folder)) as runtime:
        await live(runtime)
        token = PROGRESS_CALLBACK.set(leave)
        with pytest.raises(LeftError):
            await ask(runtime, ROOT, "erase_user", user="wyvern", confirm=True)
        PROGRESS_CALLBACK.reset(token)
        await ask(runtime, ROOT, "erase_user", user="wyvern", confirm=True)
    finish_erasing(folder, **options(folder))
    assert MARK.encode() not in contents(folder, None)


async def deeds(folder: Path) -> list[str]:
    """Return what the audit log has of erasing, the newest first."""
    async with open_greenroom(folder, **options(folder)) as runtime:
        log = await ask(runtime, ROOT, "get_audit_log", limit=200)
        return [each.action for each in log.records if "eras" in each.action]


KILLED = """
import os, signal, sys, trio
from greenroom.actors import Agent, EraseUser, PROGRESS_CALLBACK, Principal, open_greenroom
async def main(folder, secrets, step):
    def kill(done, total, words):
        if done == step:
            os.kill(os.getpid(), signal.SIGKILL)
    async with open_greenroom(folder, secrets=secrets) as runtime:
        PROGRESS_CALLBACK.set(kill)
        await Agent(runtime, Principal(agent_id="root")).ask(EraseUser(user="wyvern", confirm=True))
trio.run(main, sys.argv[1], sys.argv[2], int(sys.argv[3]))
"""


@pytest.mark.slow
@pytest.mark.promise("erase.again")
def test_what_was_killed_in_the_middle_is_gone_after_the_next_time(folder: Path) -> None:
    async def begin() -> None:
        async with open_greenroom(folder, **options(folder)) as runtime:
            await live(runtime)

    async def go_on() -> None:
        async with open_greenroom(folder, **options(folder)) as runtime:
            await ask(runtime, ROOT, "erase_user", user="wyvern", confirm=True)

    trio.run(begin)
    for step in (2, 6):
        killed = subprocess.run(
            [sys.executable, "-c", KILLED, folder, folder.parent / "secrets", str(step)], check=False
        )
        assert killed.returncode == -signal.SIGKILL
    trio.run(go_on)
    finish_erasing(folder, **options(folder))
    assert MARK.encode() not in contents(folder, None)
    assert trio.run(deeds, folder) == ["erase_user", *["begin_erasing"] * 3]


async def test_somebody_elses_agent_of_that_name_stays_named(folder: Path) -> None:
    async with open_greenroom(folder, **options(folder)) as runtime:
        coder = Principal(agent_id="coder", user="bob")
        await ask(runtime, coder, "store_memory", namespace="project:p", key="plan", content="plans")
        await ask(runtime, ROOT, "erase_user", user="coder", confirm=True)
        versions = await ask(runtime, coder, "list_memory_versions", namespace="project:p", key="plan")
        assert [version.author for version in versions.versions] == ["coder"]
    finish_erasing(folder, **options(folder))
    async with open_greenroom(folder, **options(folder)) as runtime:
        log = await ask(runtime, ROOT, "get_audit_log", action="store_memory")
        assert [(each.agent, each.details["key"]) for each in log.records] == [("coder", "plan")]


async def test_no_key_of_theirs_divides_pages_of_others(folder: Path) -> None:
    async with open_greenroom(folder, **options(folder)):
        pass
    theirs, others = (
        [f"some\0one\0!{number}-{name}-{'x' * (100 + number % 37)}".encode() for number in range(500)]
        for name in (MARK, "bridge")
    )
    with closing(Store(folder)) as store:
        store.commit([WriteBatch(None, [(ACTORS, key, b"value") for key in sorted(theirs + others)])])
        store.commit([WriteBatch(None, [(ACTORS, key, None) for key in theirs])])
    finish_erasing(folder, **options(folder))
    assert MARK.encode() not in contents(folder, None)
    with closing(Store(folder)) as store:
        assert list(store.keys(ACTORS, b"some\0one\0")) == sorted(others)


@pytest.mark.promise("erase.audit")
async def test_a_redacted_log_still_tells_what_was_changed(folder: Path) -> None:
    async with open_greenroom(folder, **options(folder)) as runtime:
        await live(runtime)
        await ask(runtime, ROOT, "erase_user", user="wyvern", confirm=True)
    finish_erasing(folder, **options(folder))
    with closing(Store(folder)) as store:
        rows = dict(store.scan(INDEXES, b"!journal\0"))
        redacted = [key for key, record in rows.items() if msgspec.msgpack.decode(record[16:])[3:]]
    first, second = redacted[:2]
    await _changed(folder, first, rows[first][:16] + rows[second][16:])  # another redacted row's words
    forged = msgspec.msgpack.decode(rows[first][16:])
    forged[2][3] = "forgive"
    await _changed(folder, first, rows[first][:16] + msgspec.msgpack.encode(forged))
    forged = [*msgspec.msgpack.decode(rows[first][16:])[:4], b""]
    await _changed(folder, first, rows[first][:16] + msgspec.msgpack.encode(forged))


@pytest.mark.promise("erase.audit")
async def test_a_record_that_was_changed_before_is_told_after_it_was_redacted(folder: Path) -> None:
    async with open_greenroom(folder, **options(folder)) as runtime:
        await live(runtime)
        await ask(runtime, ROOT, "erase_user", user="wyvern", confirm=True)
    with closing(Store(folder)) as store:
        rows = store.scan(INDEXES, b"!journal\0")
        key, record = next(row for row in rows if MARK.encode() in row[1] and b"store_memory" in row[1])
    await _changed(folder, key, record.replace(b"store_memory", b"steal_memory"))
    finish_erasing(folder, **options(folder))
    assert MARK.encode() not in contents(folder, None)
    async with open_greenroom(folder, **options(folder)) as runtime:
        report = (await runtime.query(CheckAudit())).report
    assert [(each.what, each.first) for each in report.findings] == [("changed", int.from_bytes(key[-8:]))]


@pytest.mark.quick
@pytest.mark.promise("erase.audit")
def test_a_redacted_row_stands_at_its_place_alone_and_counts_as_long_as_it_was() -> None:
    keys = JournalKeys("deeds", Secret(bytes(32)))
    row = entry("deeds", 5, 1, "what was done, at length")[2]
    record = keys.make_link(NO_LINK, 1, row) + row
    once = keys.redact(NO_LINK, 1, record, "done")
    twice = keys.redact(NO_LINK, 1, once, "")
    assert [size_of(each) for each in (record, once, twice)] == [len(row)] * 3
    for each in (once, twice):
        assert keys.is_linked(NO_LINK, 1, each)
        assert not keys.is_linked(NO_LINK, 2, each)
        assert not keys.is_linked(b"\1" * 16, 1, each)
        assert not JournalKeys("others", Secret(bytes(32))).is_linked(NO_LINK, 1, each)


async def _changed(folder: Path, key: bytes, record: bytes) -> None:
    """Put a record in a row's place, and expect the check to tell of it and of nothing else."""
    with closing(Store(folder)) as store:
        store.commit([WriteBatch(None, [(INDEXES, key, record)])])
    async with open_greenroom(folder, **options(folder)) as runtime:
        report = (await runtime.query(CheckAudit())).report
    assert [(each.what, each.first) for each in report.findings] == [("changed", int.from_bytes(key[-8:]))]


async def test_copies_that_still_hold_it_are_named(folder: Path) -> None:
    async with open_greenroom(folder, **options(folder)) as runtime:
        await live(runtime)
    backup(folder, folder.parent / "copy")
    restore(folder.parent / "copy", folder, secrets=folder.parent / "secrets")
    finish_erasing(folder, **options(folder))
    assert older_stores(folder) == (folder / "greenroom.mdb.before-restore",)


async def test_copies_that_a_killed_command_left_are_removed(folder: Path) -> None:
    async with open_greenroom(folder, **options(folder)) as runtime:
        await ask(runtime, ROOT, "erase_user", user="wyvern", confirm=True)
    left = [folder / "greenroom.mdb.verifying", folder / "encrypting" / "greenroom.mdb"]
    for path in left:
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(MARK.encode())
    finish_erasing(folder, **options(folder))
    assert not any(path.exists() for path in left)
