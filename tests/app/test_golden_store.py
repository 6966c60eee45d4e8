"""Stores that version 0.1.0 wrote and left by dying: each opens, is upgraded and answers as it did."""

from __future__ import annotations

import json
import tarfile
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import trio
from data.make_store import KINDS, PEOPLE, Clock, door_to
from harness import PATIENCE
from support.archives import unpack
from support.briefings import lines_of
from support.commands import run
from support.embedding import WAITS, Settled
from support.exchanges import export
from support.formats import NEW, format_in
from trio.testing import wait_all_tasks_blocked

from greenroom.actors import (
    Agent,
    BrowseMemories,
    ForgetMemory,
    GetEmbedding,
    InspectMemory,
    KeyRefusedError,
    MemoryFilters,
    PassportOptions,
    RecallContext,
    RestoreMemory,
    UpdateMemory,
    VerifyMemories,
    encrypt_greenroom,
    open_greenroom,
    open_key_cache,
)
from greenroom.actors.core.audit.query import CheckAudit
from greenroom.runtime import Encryption, InlineCommitter, key_source
from greenroom.testing import McpClient, mcp_client

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from greenroom.runtime import SharedRuntime

pytestmark = pytest.mark.slow

STORES = Path(__file__).parent.parent / "data" / "store-0.1.0.tar.xz"

EVERY = MemoryFilters(superseded=True)
DAY = 86_400
TIMERS = 4
"""So many fire in each store: sweeps of memories, an export and a passport to forget."""


@pytest.fixture(params=KINDS)
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The folder of one golden store."""
    with tarfile.open(STORES) as archive:
        unpack(archive, tmp_path)
    folder: Path = tmp_path / request.param
    return folder


class House:
    """The agents of the golden store at a server of this version."""

    def __init__(self, runtime: SharedRuntime, clock: Clock, clients: dict[str, McpClient]) -> None:
        self.runtime = runtime
        self.clock = clock
        self.clients = clients

    async def call(self, call: dict[str, Any]) -> dict[str, Any]:
        """Return what is answered to a call of the transcript now."""
        client = self.clients[call["agent"]]
        if "uri" in call:
            result: dict[str, Any] = (await client.request("resources/read", {"uri": call["uri"]}))["result"]
            return result
        return await client.call(call["tool"], **call["arguments"])


def transcript_of(home: Path) -> dict[str, Any]:
    transcript: dict[str, Any] = json.loads((home / "transcript.json").read_text())
    return transcript


@asynccontextmanager
async def reopened(home: Path, later: int = 1, **options: Any) -> AsyncIterator[House]:
    """Open the store so many seconds after the process died that wrote it."""
    clock = Clock(transcript_of(home)["ended"] + later * 1_000_000)
    own: dict[str, Any] = {"embedder": "none", "secrets": home / "secrets", "clock": clock}
    if (home / "key").exists():
        own["encryption"] = Encryption(key_source(f"file:{home / 'key'}"), required=True)
    async with AsyncExitStack() as stack:
        runtime = await stack.enter_async_context(open_greenroom(home / "store", **own | options))
        clients = {}
        for name, who in PEOPLE.items():
            agent = Agent(runtime, who, client=name, passports=PassportOptions())
            clients[name] = await stack.enter_async_context(mcp_client(door_to(agent)))
            await clients[name].initialize(name)
        yield House(runtime, clock, clients)


RENAMED = {"files": "files_accessed", "searches": "recent_searches", "workflow": "workflow_state"}
"""Fields of answers that have another name since."""
DROPPED = {
    "id",
    "message_count",
    "performance_note",
    "relevance_score",
    "session_scoped",
    "total_found",
    "visible_message_count",
}
"""Fields that answers have no more, since others say the same."""
EMPTY: tuple[Any, ...] = (None, [])
"""Values that hits do not say any more."""
WITHIN = {"memory_passport": "claim"}
"""Fields that are an object since, with what they were as this member."""
ANEW = {"query_time_ms", "score", "instructions"}
"""Fields that are computed for each answer."""
FORGOTTEN = {"record_context"}
"""Tools whose arguments have other names since, so that a repeat is not told from another request."""


def differences(old: Any, new: Any, where: str = "") -> list[str]:
    """Return where an answer of today lacks what was answered then; what it says besides is new."""
    if isinstance(old, dict) and isinstance(new, dict):
        return [each for name in old for each in _field_differences(old[name], new, name, where)]
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        pairs = enumerate(zip(old, new, strict=True))
        return [each for n, (was, now) in pairs for each in differences(was, now, f"{where}[{n}]")]
    if isinstance(old, str) and isinstance(new, dict):  # a passport that was its claim alone
        return differences(old, new.get("claim"), f"{where}.claim")
    if where.endswith(".briefing") and old != new:  # today's has more, between delimiters
        missing = [line for line in old.splitlines() if line not in lines_of(new)]
        return [f"{where}: {missing} is missing"] if missing else []
    if isinstance(old, str) and old.startswith("{") and old != new:  # the text of a resource
        return differences(json.loads(old), json.loads(new), where)
    return [] if old == new else [f"{where}: {old!r} is {new!r} now"]


def _field_differences(old: Any, new: dict[str, Any], name: str, where: str) -> list[str]:
    now = name if name in new else RENAMED.get(name, name)
    if now not in new:
        return [] if name in DROPPED or old in EMPTY else [f"{where}.{name} is gone"]
    value = new[now][WITHIN[name]] if name in WITHIN and old is not None else new[now]
    return [] if name in ANEW else differences(old, value, f"{where}.{name}")


@pytest.mark.promise("store.versions", "memory.upgrade")
async def test_everything_that_was_read_is_read_as_it_was(home: Path) -> None:
    async with reopened(home, embedder="static", queries=WAITS) as house:
        await house.runtime.query(Settled())
        for call in transcript_of(home)["reads"]:
            if call.get("tool") != "get_audit_log":
                assert differences(call["answer"], await house.call(call)) == [], call
        asked = [RecallContext(task="maps in a box", unreviewed=each) for each in (False, True)]
        seen = [await house.runtime.query(each, principal=PEOPLE["planner"]) for each in asked]
        assert [each.count > 0 for each in seen] == [True, False], "all of it counts as looked at"


@pytest.mark.promise("store.versions", "store.upgrade-told")
async def test_how_to_go_back_to_the_older_program_is_told_once(
    home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(2):
        async with reopened(home):
            assert format_in(home / "store") == NEW
        [said] = [each for each in caplog.messages if "becomes format" in each]
        assert "to go back, `greenroom restore` a backup of before" in said


@pytest.mark.promise("store.versions", "runtime.exactly-once")
async def test_repeats_get_the_answers_that_were_given(home: Path) -> None:
    async with reopened(home) as house:
        for call in transcript_of(home)["writes"]:
            if "idempotency_key" in call["arguments"] and call["tool"] not in FORGOTTEN:
                assert differences(call["answer"], await house.call(call)) == [], call


@pytest.mark.promise("store.versions")
async def test_the_audit_log_goes_on_behind_its_older_records(home: Path) -> None:
    [asked] = [call for call in transcript_of(home)["reads"] if call.get("tool") == "get_audit_log"]
    async with reopened(home) as house:
        then, now = asked["answer"]["records"], (await house.call(asked))["records"]
        assert differences(then, now[-len(then) :]) == []
        checked = await house.runtime.query(CheckAudit())
        assert (checked.report.findings, checked.breaks) == ([], [])


@pytest.mark.promise("store.versions", "keys.store")
async def test_keys_open_what_they_opened(home: Path) -> None:
    lasting, rotated, ended = [
        call["answer"]
        for call in transcript_of(home)["writes"]
        if call["tool"] in {"create_api_key", "rotate_api_key"}
    ]
    async with reopened(home) as house, open_key_cache(house.runtime, clock=house.clock) as ring:
        assert ring.required
        for each in (lasting, rotated):
            assert ring.authenticate(each["api_key"]).key_id == each["key"]["key_id"]
        with pytest.raises(KeyRefusedError):
            ring.authenticate(ended["api_key"])


@pytest.mark.promise("store.versions")
async def test_passports_and_claims_are_still_taken(home: Path) -> None:
    answers = {call["tool"]: call["answer"] for call in transcript_of(home)["writes"]}
    async with reopened(home) as house:
        planner = house.clients["planner"]
        restored = await planner.call(
            "restore_session", passport=answers["migrate_session"]["claim"], tool_id="zed"
        )
        assert (restored["tool"], restored["original_tool"]) == ("zed", "cursor")
        exported = answers["export_session"]
        first = await planner.call("restore_session", passport=exported["claim"], tool_id="kiro")
        assert first["original_session_id"] == exported["session_id"]
        again = await planner.call("restore_session", passport=exported["claim"], tool_id="kiro")
        assert again["session_id"] == first["session_id"]  # for whoever took it, for a day
        other = next(client for name, client in house.clients.items() if name != "planner")
        refused = await other.call("restore_session", passport=exported["claim"], tool_id="kiro")
        assert refused["success"] is False


@pytest.mark.quick
@pytest.mark.promise("store.versions", "exchange.atomic", "exchange.resumed", "runtime.tells")
async def test_an_import_that_was_killed_goes_on(home: Path) -> None:
    source = transcript_of(home)["source"]
    keys = sorted(json.loads(line)["key"] for line in source.splitlines())
    async with reopened(home) as house:
        if home.name == "staged":
            assert await imported_keys(house) == []
            done = await house.clients["planner"].call("import_memories", source=source)
            assert done["counts"] == {"created": len(keys)}
        assert await imported_keys(house) == keys  # an export waits for what was decided


async def imported_keys(house: House) -> list[str]:
    lines = await export(house.runtime, PEOPLE["planner"])
    return sorted(line["key"] for line in lines if line["namespace"].startswith("team:"))


@pytest.mark.promise("store.versions", "runtime.timers")
async def test_what_became_due_meanwhile_is_done(home: Path) -> None:
    async with reopened(home, later=40 * DAY, committer=InlineCommitter()) as house:
        messages = house.runtime.statistics().messages
        with trio.fail_after(PATIENCE):
            while messages.timers_fired + messages.dead_letters < TIMERS:
                await wait_all_tasks_blocked(0.001)
                messages = house.runtime.statistics().messages
        assert (messages.dead_letters, messages.failed) == (0, 0)
        planner = house.clients["planner"]
        assert (await planner.call("get_memory", key="brief"))["code"] == "MEMORY_NOT_FOUND"
        assert (await planner.call("get_memory", key="plan"))["value"] == {"day": 2}


@pytest.mark.promise("store.versions", "memory.verify", "embedding.change")
async def test_vectors_of_an_older_space_are_made_anew_once(home: Path) -> None:
    async with reopened(home, embedder="static") as house:
        await house.clients["planner"].call("memory_search", query="plan")  # as does any search
        with trio.fail_after(PATIENCE):
            while (embedding := await house.runtime.query(GetEmbedding())).texts_waiting:
                await wait_all_tasks_blocked(0.001)
        assert embedding.embedded
    async with reopened(home, embedder="static") as house:
        assert (await house.runtime.query(VerifyMemories())).problems == []
        assert (await house.runtime.query(GetEmbedding())).texts_waiting == 0


@pytest.mark.promise("store.versions", "store.damage")
def test_verify_finds_nothing_to_mend(home: Path) -> None:
    command = ["verify", "--json", "--data", str(home / "store"), "--secrets", str(home / "secrets")]
    if (home / "key").exists():
        command += ["--encryption-key", f"file:{home / 'key'}"]
    for _ in range(2):  # as it was left, and as the first look left it
        said = run(home, *command)
        assert said.returncode == 0, said.stderr
        assert json.loads(said.stdout)["index"]["problems"] == []


@pytest.mark.parametrize("forgets", [True, False])
async def test_what_an_older_program_superseded_is_superseded_again_when_it_is_restored(
    home: Path, *, forgets: bool
) -> None:
    async with reopened(home) as house:
        planner = Agent(house.runtime, PEOPLE["planner"])
        page = await planner.ask(BrowseMemories(filters=EVERY))
        ids = {each.key: each.memory_id for each in page.memories}
        newer = ids["newer"]
        change: Any = UpdateMemory(memory_id=newer, supersedes=ids["kept0"])
        await planner.ask(ForgetMemory(memory_id=newer) if forgets else change)
        await planner.ask(RestoreMemory(memory_id=newer, version=1))
        shown = await planner.ask(InspectMemory(memory_id=newer))
        assert shown.memory.supersedes == ids["home"]


@pytest.mark.promise("secrets.marks-keys")
async def test_keys_from_before_keys_had_marks_are_known_by_the_first_secret(home: Path) -> None:
    async def statuses(later: int, place: str, *, new: bool, **more: Any) -> list[str]:
        async with reopened(home, later, secrets=home / place, new_secret=new, **more) as house:
            listed = await house.clients["root"].call("list_api_keys")
            return [each["status"] for each in listed["keys"]]

    before = await statuses(1, "secrets", new=False)
    assert "active" in before
    unusable = ["unusable" if each == "active" else each for each in before]
    assert await statuses(2, "others", new=True) == unusable
    assert await statuses(3, "others", new=False) == unusable
    assert await statuses(4, "secrets", new=True) == unusable  # the former one is not taken up again
    if not (home / "key").exists():  # a store that is rewritten knows it as well
        sealed = Encryption(lambda: bytes(32), required=True)
        assert await statuses(5, "others", new=True) == unusable
        await trio.to_thread.run_sync(encrypt_greenroom, home / "store", sealed)
        assert await statuses(6, "others", new=False, encryption=sealed) == unusable
