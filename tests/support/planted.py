"""A store full of words that nobody is to find in its file."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING

import msgspec

from greenroom.actors import (
    AddMessage,
    Agent,
    ChannelValue,
    CheckpointService,
    CheckpointValue,
    CheckpointWrite,
    CreateSession,
    GetMemory,
    GetMessages,
    GetSession,
    ListMemory,
    ListSessions,
    MemorySearch,
    Principal,
    PutCheckpoint,
    PutWrites,
    RateMemory,
    SearchContext,
    SetMemory,
    StoreMemory,
    UpdateSession,
)
from greenroom.actors.sessions.requests.requests import AppendEvent
from greenroom.runtime import Address

if TYPE_CHECKING:
    from greenroom.runtime import RuntimeClient

SESSION = "planted-session"
WORDS = (
    *("session", "purpose", "app", "user", "project", "agent", "type", "login", "content", "message"),
    *("metadata", "state", "event", "actor", "key", "value", "note", "once", "author", "talk", "tag"),
    *("other", "agents", "private", "kind", "memory", "search"),
    *("thread", "namespace", "checkpointed", "channel", "task", "run"),
)
"""What follows ``planted`` in what is written by `live`."""

ALICE = Principal(
    agent_id="planted-agent",
    agent_type="planted-type",
    user="planted-login",
    projects=frozenset({"planted-project"}),
)
BOB = Principal(agent_id="planted-other", agent_type="planted-type", user="planted-user")


def json(text: str) -> msgspec.Raw:
    return msgspec.Raw(text.encode())


async def live(runtime: RuntimeClient) -> None:
    """Write something of every kind."""
    alice, bob = Agent(runtime, ALICE), Agent(runtime, BOB)
    made = CreateSession(
        session_id=SESSION,
        purpose="planted purpose",
        app_name="planted-app",
        user_id="planted-login",
        project_id="planted-project",
        metadata=json('{"planted-metadata": "planted metadata"}'),
        initial_state=json('{"planted-state": "planted state"}'),
        idempotency_key="planted-once",
    )
    await alice.ask(made)
    for visibility in ("public", "private", "agent_only"):
        await alice.ask(
            AddMessage(
                session_id=SESSION,
                content=f"planted content, seldom words, {visibility}",
                visibility=visibility,
                message_type="planted-message",
                metadata=json('{"planted": "planted metadata"}'),
                idempotency_key=f"planted-once-{visibility}",
            )
        )
    await runtime.ask(
        Address("session", SESSION),
        AppendEvent(
            session_id=SESSION,
            event_id="planted-event",
            event_type="message",
            actor="planted-actor",
            content=json('{"text": "planted content"}'),
        ),
        principal=ALICE,
    )
    state = json('{"planted-state": "planted value"}')
    await alice.ask(UpdateSession(session_id=SESSION, state=state, idempotency_key="planted-once"))
    other = CreateSession(
        session_id="planted-other-session", purpose="planted purpose", idempotency_key="planted-once"
    )
    await bob.ask(other)
    for session in (None, SESSION):
        await alice.ask(
            SetMemory(
                key="planted-key",
                value=json('"planted value"'),
                session_id=session,
                expires_in=86_400,
                metadata=json('{"planted": 1}'),
                idempotency_key=f"planted-once-{session}",
            )
        )
    checkpointed = CheckpointValue("planted", b"planted checkpointed")
    await CheckpointService(runtime, ALICE).put(
        PutCheckpoint(
            thread_id="planted-thread",
            namespace="planted-namespace",
            checkpoint_id="1",
            parent_id=None,
            checkpoint=checkpointed,
            metadata=checkpointed,
            run_id="planted-run",
            versions={"planted-channel": "planted"},
            values=[ChannelValue("planted-channel", checkpointed)],
            deltas=["planted-channel"],
        )
    )
    write = CheckpointWrite("planted-task", "planted-task", 0, "planted-channel", checkpointed)
    await CheckpointService(runtime, ALICE).put_writes(
        PutWrites(
            thread_id="planted-thread", namespace="planted-namespace", checkpoint_id="1", writes=[write]
        )
    )
    for number in range(40):
        stored = StoreMemory(
            content=f"planted memory {number}, plantedterm{number % 7}",
            key=f"planted-key-{number}",
            namespace="project:planted-project:planted-talk",
            metadata=json('{"tags": ["planted-tag"]}'),
            author="planted-author",
            conversation_id="planted-talk",
            idempotency_key=f"planted-once-{number}",
        )
        await alice.ask(stored)
    await alice.ask(
        RateMemory(
            key="planted-key-1",
            namespace="project:planted-project:planted-talk",
            rating=0.5,
            note="planted note",
        )
    )
    await look(runtime)


async def look(runtime: RuntimeClient) -> dict[str, object]:
    """Return what can be read of it, in ways that go by every kind of key; without times and ids."""
    alice, bob = Agent(runtime, ALICE), Agent(runtime, BOB)
    session = (await alice.ask(GetSession(session_id=SESSION))).session
    messages = (await alice.ask(GetMessages(session_id=SESSION))).messages
    entries = (await alice.ask(ListMemory(session_id="all"))).entries
    listed = [(await agent.ask(ListSessions())).sessions for agent in (alice, bob)]
    seldom = await alice.ask(SearchContext(session_id=SESSION, query="seldom"))
    found = await alice.ask(
        MemorySearch(query="plantedterm3 planted", mode="exact", namespace="project:planted-project")
    )
    return {
        "session": (session.purpose, session.metadata, session.state),
        "messages": [(each.content, each.visibility, each.metadata) for each in messages],
        "sessions": [[(each.session_id, each.message_count) for each in sessions] for sessions in listed],
        "entry": (await alice.ask(GetMemory(key="planted-key", session_id=SESSION))).value,
        "entries": [(each.key, each.scope, each.version) for each in entries],
        "in the session": len(seldom.results),
        "memories": sorted((each.key, str(each.content)) for each in found.memories),
    }


def guesses() -> list[bytes]:
    """Return what somebody would look for who knows how names are digested and guesses them."""
    names = [
        *(
            Address("session", SESSION),
            Address("memory", "project:planted-project"),
            Address("memory", "planted-agent"),
        ),
        Address("session", "planted-other-session"),
    ]
    digests = [blake2b(address.prefix(), digest_size=16).digest() for address in names]
    words = (
        *("planted-session", "planted-key", "planted-agent", "planted-event", "project:planted-project"),
        *("planted-talk", "planted-login", "planted-other", "planted-key-1", "planted-once"),
    )
    return digests + [
        blake2b(word.encode(), digest_size=size).digest() for size in (8, 16, 32) for word in words
    ]
