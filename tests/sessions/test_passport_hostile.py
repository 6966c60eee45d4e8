"""Passports that somebody made or sent who means no good, and what is left of them: nothing."""

from __future__ import annotations

import json
import secrets
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from support.agents import begin, keep, refused, say

from greenroom.actors import (
    Agent,
    CreateApiKey,
    CreateSession,
    DecisionMade,
    ExportMemories,
    ExportSession,
    GetSession,
    ListMemories,
    MigrateSession,
    PassportOptions,
    Principal,
    Quota,
    RecordContext,
    RestoreSession,
    SessionContext,
    StartSession,
    StoreMemory,
    open_greenroom,
)
from greenroom.actors.core.auth.grants import Credential, Grant, KeyLimits
from greenroom.actors.core.base.zstd import load_zstd
from greenroom.actors.sessions.passports import envelope
from greenroom.actors.sessions.passports.claims import CLAIM, PASSPORT, _encode

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from support.agents import Enter

pytestmark = pytest.mark.slow

UNSIGNED: dict[str, Any] = {
    "greenroom_passport": 3,
    "version": 3,
    "passport_id": "0" * 32,
    "session_id": "s",
    "exported_at": "2026-01-01T00:00:00Z",
    "exported_by": {"tool": None, "agent_id": "a", "agent_type": None, "user": None},
    "exported_by_tool": None,
    "expires_at": "2027-01-01T00:00:00Z",
    "one_time": False,
    "audience": [],
    "project_id": None,
    "workspace_path": None,
    "context": None,
    "metadata": {},
    "content": {"encoding": "zstd", "size": 1, "sha256": None, "encryption": None},
    "compressed_context": "",
    "compression_ratio": 0,
    "signature": {"algorithm": "ed25519", "key": "x", "value": "y"},
}


@pytest.mark.parametrize("document", [b"\xff\xfe", b"", b"[]", b'{"a":"\\ud800"}'])
async def test_a_short_text_that_is_no_passport_is_refused(enter: Enter, document: bytes) -> None:
    text = PASSPORT + _encode(load_zstd().compress(document))
    async with enter() as at:
        with refused("PASSPORT_INVALID"):
            await at.agent("alice").ask(RestoreSession(passport=text))


@pytest.mark.promise("passport.bombs")
async def test_a_context_that_is_too_long_is_refused_by_its_name(enter: Enter) -> None:
    searched = {"query": "q", "tool": "t", "at": "2026-01-01T00:00:00Z"}
    many: dict[str, Any] = {"context": {"recent_searches": [searched] * 101}}
    async with enter(embedder="none") as at:
        with refused("PASSPORT_INVALID", field="passport") as caught:
            await at.agent("a").ask(RestoreSession(passport=json.dumps(UNSIGNED | many)))
        assert "<= 100 - at `$.context.recent_searches`" in caught.value.sentence


@pytest.mark.promise("passport.bombs")
@pytest.mark.parametrize(
    ("given", "code", "words"),
    [
        (PASSPORT + "A" * 4_300, "PASSPORT_TOO_LARGE", "4,296"),
        (CLAIM + "A" * 4_300, "PASSPORT_TOO_LARGE", "4,296"),
        (
            json.dumps({**UNSIGNED, **dict.fromkeys(map(str, range(99)), 0)}),
            "PASSPORT_INVALID",
            "field `0`",
        ),
        (json.dumps({**UNSIGNED, "metadata": [0] * 100_000}), "PASSPORT_TOO_LARGE", "16,384"),
        (json.dumps({**UNSIGNED, "greenroom_passport": 4, "x": {}}), "PASSPORT_INVALID", "its format is 4,"),
        (json.dumps({**UNSIGNED, "greenroom_passport": [[1]]}), "PASSPORT_INVALID", "its format is [[1]],"),
        (json.dumps({**UNSIGNED, "greenroom_passport": True}), "PASSPORT_INVALID", "its format is true,"),
        ('{"a":1}', "PASSPORT_INVALID", "not a passport of Greenroom"),
        ("[" * 100_000, "PASSPORT_INVALID", "it does not match the format"),
        ("7", "PASSPORT_INVALID", "it does not match the format"),
    ],
)
async def test_what_is_no_passport_is_refused_before_it_is_looked_into(
    enter: Enter, given: str, code: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(envelope, "check_json", lambda _raw: pytest.fail("objects were made of it"))
    async with enter(embedder="none") as at:
        with refused(code) as caught:
            await at.agent("a").ask(RestoreSession(passport=given))
        assert words in caught.value.sentence


async def test_what_nobody_signed_costs_little(enter: Enter) -> None:
    heavy = {**UNSIGNED, "metadata": {"a": [0] * envelope.MAX_METADATA_BYTES}}
    async with enter() as at:
        for given in (heavy, json.dumps(heavy)):
            with refused("PASSPORT_TOO_LARGE", limit=envelope.MAX_METADATA_BYTES):
                await at.agent("alice").ask(RestoreSession(passport=given))


async def test_a_server_that_takes_shorter_messages_keeps_nothing(tmp_path: Path) -> None:
    async with two_servers(tmp_path, content_limit=100) as (here, there):
        await here.ask(CreateSession(purpose="p", session_id="s"))
        await say(here, "s", "short", "x" * 5_000)
        await keep(here, "k", session_id="s")
        made = await here.ask(ExportSession(session_id="s", include_memories=True))
        assert (made.messages, made.memories) == (2, 1)
        with refused("VALIDATION_ERROR", field="content"):
            await there.ask(RestoreSession(passport=text_of(made)))
        with refused("SESSION_NOT_FOUND"):
            await there.ask(GetSession(session_id="s"))
        assert (await there.ask(ListMemories(namespace="agent:alice"))).memories == []


async def test_a_changed_byte_and_another_s_signature_are_refused_and_a_repeat_makes_no_second_session(
    tmp_path: Path,
) -> None:
    async with two_servers(tmp_path) as (here, there):
        await here.ask(CreateSession(purpose="p", session_id="s"))
        await say(here, "s", "to be kept")
        text = text_of(await here.ask(ExportSession(session_id="s", one_time=True)))
        document = json.loads(text)
        for name, value in (
            ("session_id", "t"),
            ("one_time", False),
            ("expires_at", "2030-01-01T00:00:00Z"),
            ("audience", ["user:mallory"]),
            ("passport_id", "0" * 32),
        ):
            with refused("PASSPORT_INVALID"):
                await there.ask(RestoreSession(passport={**document, name: value}))
        stranger = {**document["signature"], "key": "hmac:" + "0" * 16}
        with refused("PASSPORT_UNTRUSTED"):
            await there.ask(RestoreSession(passport={**document, "signature": stranger}))
        first = await there.ask(RestoreSession(passport={**document, "qr": "anything"}, idempotency_key="i"))
        again = await there.ask(RestoreSession(passport=text, idempotency_key="i"))
        assert (again.session_id, again.messages) == (first.session_id, 1)
        assert (await there.ask(RestoreSession(passport=text))).session_id == first.session_id


async def test_what_a_key_has_kept_as_a_passport_is_counted(tmp_path: Path) -> None:
    async with open_greenroom(tmp_path, embedder="none") as runtime:
        owner = Agent(runtime, Principal(agent_id="owner"))
        await owner.ask(CreateSession(purpose="p", session_id="s"))
        await say(owner, "s", *(secrets.token_hex(2_000) for _ in range(5)))
        made = await owner.ask(CreateApiKey(name="n", scopes=["*"], max_stored_bytes=40_000))
        grant = Grant(name="n", scopes=frozenset({"*"}), limits=KeyLimits(stored_bytes=40_000))
        shown = Credential(id=made.key.key_id, grant=grant, by_key=True, expires=0, holder=made.key.key_id)
        holder = Agent(runtime, Principal(agent_id="holder"), quota=Quota(shown))
        passport = text_of(await holder.ask(ExportSession(session_id="s")))
        with refused("QUOTA_EXCEEDED", unit="stored bytes"):
            for _ in range(5):
                await holder.ask(ExportSession(session_id="s"))
        with refused("QUOTA_EXCEEDED", unit="stored bytes"):
            await holder.ask(RestoreSession(passport=passport))


async def test_what_a_key_has_kept_as_an_export_of_memories_is_counted(tmp_path: Path) -> None:
    async with open_greenroom(tmp_path, embedder="none") as runtime:
        owner = Agent(runtime, Principal(agent_id="owner", user="ann"))
        for number in range(4):
            await owner.ask(StoreMemory(key=f"k{number}", content=secrets.token_hex(5_000)))
        made = await owner.ask(CreateApiKey(name="n", scopes=["*"], max_stored_bytes=100_000))
        grant = Grant(name="n", scopes=frozenset({"*"}), limits=KeyLimits(stored_bytes=100_000))
        shown = Credential(id=made.key.key_id, grant=grant, by_key=True, expires=0, holder=made.key.key_id)
        holder = Agent(runtime, Principal(agent_id="holder", user="ann"), quota=Quota(shown))
        first = await holder.ask(ExportMemories())
        assert (first.count, first.size_bytes > 40_000) == (4, True)
        await holder.ask(ExportMemories())
        with refused("QUOTA_EXCEEDED", unit="stored bytes"):
            await holder.ask(ExportMemories())
        assert (await owner.ask(ExportMemories())).count == 4  # who has no limit has none


async def test_who_may_only_write_reads_nothing_by_taking_a_session_up(enter: Enter) -> None:
    async with enter() as at:
        alice = await begin(at)
        await alice.ask(RecordContext(session_id="s", decisions=[DecisionMade(what="a plan")]))
        writer = at.agent("writer", scopes=frozenset({"sessions:write"}))
        restored = await writer.ask(RestoreSession(session_id="s"))
        started = await writer.ask(StartSession(restore_from="s"))
        handed = await writer.ask(MigrateSession(session_id="s", to_tool="zed"))
        assert restored.context == started.context == SessionContext()
        assert [restored.briefing, started.briefing, handed.briefing] == [""] * 3
        assert started.offered == (await writer.ask(StartSession())).offered == []
        assert "a plan" in (await at.agent("reader").ask(RestoreSession(session_id="s"))).briefing


def text_of(made: Any) -> str:
    return bytes(made.passport).decode()


@asynccontextmanager
async def two_servers(folder: Path, **options: Any) -> AsyncIterator[tuple[Agent, Agent]]:
    """Return an agent at each of two servers that share a secret; `options` are the second one's."""
    signed = PassportOptions(shared=b"sixteen bytes are")
    alice = Principal(agent_id="alice", user="ann")
    async with (
        open_greenroom(folder / "here", embedder="none") as here,
        open_greenroom(folder / "there", embedder="none", **options) as there,
    ):
        yield Agent(here, alice, passports=signed), Agent(there, alice, passports=signed)
