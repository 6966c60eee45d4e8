"""Who may see what, as values; and what every path through the actors makes of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.agents import FAR_AHEAD, LONG_AGO, house, json, refused, say, wire

from greenroom.actors import (
    AddMessage,
    Agent,
    CreateSession,
    GetMemory,
    GetMessages,
    GetSession,
    ListMemory,
    ListSessions,
    Principal,
    SearchBySender,
    SearchByTimerange,
    SearchContext,
    SessionService,
    SetMemory,
    UpdateSession,
    parse_request,
)
from greenroom.actors.core.auth import policy
from greenroom.actors.core.auth.namespaces import segment
from greenroom.runtime import Refusal
from greenroom.testing import VirtualClock

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.agents import Enter, House

FILTERS: tuple[policy.VisibilityFilter, ...] = ("all", "public", "private", "agent_only")

agent_ids = st.sampled_from(["a", "b", "type", "public", "planner"])
principals = st.builds(
    Principal, agent_id=agent_ids, agent_type=st.none() | st.sampled_from(["a", "planner", "public"])
)
visibilities = st.sampled_from(["public", "private", "agent_only"])


@pytest.mark.promise("sessions.visibility")
@given(sender=principals, reader=principals, visibility=visibilities)
def test_a_message_is_visible_by_the_written_rule_and_by_no_other(
    sender: Principal, reader: Principal, visibility: policy.Visibility
) -> None:
    by_the_rule = {
        "public": True,
        "private": sender.agent_id == reader.agent_id,
        "agent_only": (
            sender.agent_id == reader.agent_id
            if sender.agent_type is None
            else sender.agent_type == reader.agent_type
        ),
    }[visibility]
    assert policy.may_see_message(reader, policy.audience_of(sender, visibility)) == by_the_rule
    assert (policy.partition_of(sender, visibility) in policy.partitions(reader)) == by_the_rule


@pytest.mark.promise("sessions.visibility")
@given(reader=principals)
def test_a_filter_narrows_and_never_widens(reader: Principal) -> None:
    everything = policy.partitions(reader)
    parts = [policy.partitions(reader, wanted) for wanted in ("public", "private", "agent_only")]
    assert sorted(everything) == sorted(partition for part in parts for partition in part)
    assert {partition.audience for partition in everything} == set(policy.audiences(reader))


@pytest.mark.promise("sessions.unknown-filter")
@given(wanted=st.text().filter(lambda text: text not in FILTERS))
def test_an_unknown_filter_has_no_partitions(wanted: Any) -> None:
    with refused("VALIDATION_ERROR", field="visibility_filter"):
        policy.partitions(Principal(agent_id="a", agent_type="t"), wanted)


@pytest.mark.promise("sessions.project")
@pytest.mark.parametrize(
    ("projects", "project_id", "seen"),
    [
        (None, "x", True),
        (None, None, True),
        (frozenset(), None, True),
        (frozenset(), "x", False),
        (frozenset({"x"}), "x", True),
        (frozenset({"x"}), "y", False),
    ],
)
def test_a_project_is_for_its_members(
    projects: frozenset[str] | None,
    project_id: str | None,
    seen: bool,  # noqa: FBT001  pytest passes it by name
) -> None:
    assert policy.may_see_session(Principal(agent_id="a", projects=projects), project_id) is seen


NAMES = [
    *("ann", "Ann", "ANN", "ann ", "a:b", "a~3ab", "ann:notes", "user:ann", "*", "", ".", "a/b", "a,b"),
    *(
        "j\u00f6rg",
        "jo\u0308rg",
        "J\u00d6RG",
        "stra\u00dfe",
        "strasse",
        "\u212bke",
        "\u00c5ke",
        "x" * 128,
        "x" * 127,
    ),
]
names = st.sampled_from(NAMES) | st.text(min_size=1, max_size=128)
key_ids = st.sampled_from(["0123456789abcdef", "oauth:0123456789abcdef"])


@pytest.mark.promise("identity.own-project")
@given(
    owner=names.filter(bool),
    reader=st.none() | names.filter(bool),
    key_id=key_ids,
    of=st.sampled_from(["every", "none", "it"]),
    scopes=st.sampled_from([frozenset({"*"}), frozenset({"admin"}), frozenset({"sessions:*"})]),
)
def test_what_is_named_after_a_user_is_open_to_that_user_alone(
    owner: str, reader: str | None, key_id: str, of: str, scopes: frozenset[str]
) -> None:
    named = {policy.own_project(owner)}
    if "~" not in owner:
        named.add(f"user:{owner}")
    for project in named:
        projects = {"every": None, "none": frozenset[str](), "it": frozenset({project, "p"})}[of]
        who = Principal(agent_id="a", user=reader, key_id=key_id, projects=projects, scopes=scopes)
        is_own = owner == reader
        assert policy.may_see_session(who, project) is is_own
        assert policy.is_member(who, segment(project)) is is_own
        assert policy.may_see_corpora(who, f"project:{segment(project)}") is is_own
        assert policy.may_write_namespace(who, f"project:{segment(project)}:x") is is_own
        assert policy.may_hear(who, policy.ChangeLabel(policy.PUBLIC, project)) is is_own
        assert (project in (policy.memberships(who) or ())) == (is_own and of == "it")
        shared = policy.MemoryPartition("shared", owner, None, (segment(project),))
        assert policy.may_see_memory(who, shared) is is_own
        assert policy.may_see_session(who, project.replace("user:", "user:no-such-")) is False
        assert policy.may_see_session(who.sight, project) is is_own


@pytest.mark.promise("identity.own-project")
@given(one=names, other=names)
def test_no_two_users_have_a_project_in_common(one: str, other: str) -> None:
    shared = [
        {project for project in (policy.own_project(name), f"user:{name}") if owns(name, project)}
        for name in (one, other)
    ]
    assert one == other or not shared[0] & shared[1]


def owns(user: str, project: str) -> bool:
    who = Principal(agent_id="a", user=user, key_id="k", projects=frozenset())
    return policy.may_see_session(who, project)


@pytest.mark.promise("identity.cooperative")
@given(owner=names, reader=st.none() | names)
def test_without_a_key_it_is_a_project_as_any_other(owner: str, reader: str | None) -> None:
    for key_id in (None, "console:0123456789abcdef"):
        who = Principal(agent_id="a", user=reader, key_id=key_id)
        assert policy.may_see_session(who, policy.own_project(owner))
        bound = msgspec.structs.replace(who, projects=frozenset({"p"}))
        assert policy.may_see_session(bound, policy.own_project(owner)) is (owner == reader)


@pytest.mark.promise("identity.agent-id")
@pytest.mark.parametrize("name", ["", "a" * 101, "a b", "ä", "a\n", "../a", "a\0"])
def test_an_identity_of_another_alphabet_is_no_identity(name: str) -> None:
    with pytest.raises(ValueError, match="A-Za-z0-9"):
        Principal(agent_id=name)
    with pytest.raises(ValueError, match="A-Za-z0-9"):
        Principal(agent_id="a", agent_type=name)


@pytest.mark.promise("sessions.unknown-filter")
@pytest.mark.parametrize("wanted", ["", "ALL", "admin", "private ", "public' OR 1=1", "*"])
async def test_an_unknown_filter_gets_no_data(enter: Enter, wanted: Any) -> None:
    async with enter() as at:
        alice, bob = at.agent("alice"), at.agent("bob")
        await alice.ask(CreateSession(purpose="p", session_id="s"))
        await say(alice, "s", "mine alone", visibility="private")
        with refused("VALIDATION_ERROR", field="visibility_filter"):
            await bob.ask(GetMessages(session_id="s", visibility_filter=wanted))
        arguments = msgspec.json.encode({"session_id": "s", "visibility_filter": wanted})
        with refused("VALIDATION_ERROR", field="visibility_filter"):
            parse_request(GetMessages, arguments)
        with refused("VALIDATION_ERROR", field="search_scope"):
            await bob.ask(SearchContext(session_id="s", query="mine", search_scope=wanted))
        with refused("VALIDATION_ERROR", field="visibility"):
            await alice.ask(AddMessage(session_id="s", content="c", visibility=wanted))


async def everything_seen(agent: Agent, session_id: str) -> Iterator[set[str]]:
    """Return, for each path that reads messages, the contents that come out of it."""
    read = await agent.ask(GetSession(session_id=session_id))
    page = await agent.ask(GetMessages(session_id=session_id))
    halves = await agent.ask(GetMessages(session_id=session_id, limit=2))
    rest = await agent.ask(GetMessages(session_id=session_id, cursor=halves.next_cursor))
    offset = await agent.ask(GetMessages(session_id=session_id, offset=2))
    filtered = [
        await agent.ask(GetMessages(session_id=session_id, visibility_filter=wanted))
        for wanted in ("public", "private", "agent_only")
    ]
    found = await agent.ask(SearchContext(session_id=session_id, query="word", fuzzy_threshold=0, limit=100))
    senders = [
        await agent.ask(SearchBySender(session_id=session_id, sender=sender))
        for sender in ("alice", "anna", "bob", "carl")
    ]
    ranged = await agent.ask(
        SearchByTimerange(session_id=session_id, start_time=LONG_AGO, end_time=FAR_AHEAD)
    )
    session = await SessionService(agent._runtime, agent.principal).get_session(session_id)
    assert session is not None
    assert page.total == page.count == read.statistics.message_count
    assert read.statistics.unique_agents == len({message.sender for message in page.messages})
    return iter(
        [
            {message.content for message in read.messages},
            {message.content for message in page.messages},
            {message.content for message in halves.messages + rest.messages},
            {message.content for message in halves.messages + offset.messages},
            {message.content for part in filtered for message in part.messages},
            {hit.message.content for hit in found.results},
            {message.content for part in senders for message in part.messages},
            {message.content for message in ranged.messages},
            {event.content["text"] for event in session.events},
        ]
    )


@pytest.mark.promise("sessions.visibility")
async def test_every_path_shows_a_reader_the_same_messages(enter: Enter) -> None:
    async with enter() as at:
        alice, anna = at.agent("alice", "planner"), at.agent("anna", "planner")
        bob, carl = at.agent("bob"), at.agent("carl", "coder")
        await alice.ask(CreateSession(purpose="p", session_id="s"))
        for agent in (alice, anna, bob, carl):
            for visibility in ("public", "private", "agent_only"):
                content = f"word of {agent.principal.agent_id} {visibility}"
                await say(agent, "s", content, visibility=visibility)
                at.tick()
        public = {f"word of {name} public" for name in ("alice", "anna", "bob", "carl")}
        planners = {"word of alice agent_only", "word of anna agent_only"}
        for agent, own in (
            (alice, {"word of alice private"} | planners),
            (anna, {"word of anna private"} | planners),
            (bob, {"word of bob private", "word of bob agent_only"}),
            (carl, {"word of carl private", "word of carl agent_only"}),
        ):
            for seen in await everything_seen(agent, "s"):
                assert seen == public | own
        # The type is the identity's: whoever joins the planners reads what planners wrote.
        for seen in await everything_seen(at.agent("bob", "planner"), "s"):
            assert seen == public | planners | {"word of bob private", "word of bob agent_only"}


async def public_life(at: House, *, hidden: bool) -> None:
    """Let two sessions be worked in, with or without messages that bob may not see."""
    alice, bob = at.agent("alice", "planner"), at.agent("bob")
    for session_id in ("first", "second", "third"):
        await alice.ask(CreateSession(purpose="p", session_id=session_id))
        at.tick()
    for number in range(6):
        for session_id in ("first", "second"):
            if hidden:
                await say(alice, session_id, "word", visibility="private")
            at.tick(0.001)
            if hidden:
                await say(alice, session_id, "word", visibility="agent_only", metadata=json('{"a": "word"}'))
            at.tick(0.001)
            await say(bob if number % 2 else alice, session_id, f"word {number}")
    at.tick()
    event = {"event_id": "e", "event_type": "message", "actor": "user", "content": {"text": "word"}}
    if hidden:
        service = SessionService(at.runtime, alice.principal)
        await service.append_event("first", event | {"visibility": "private"})
        await service.append_event("third", event | {"visibility": "agent_only"})
    at.tick(0.001)
    await SessionService(at.runtime, bob.principal).append_event("first", event)
    if hidden:
        await say(alice, "third", "word", visibility="private")
        await say(alice, "first", "word", visibility="agent_only")
        await alice.ask(SetMemory(key="k", value=json("1")))
        await alice.ask(SetMemory(key="k", value=json("1"), session_id="first"))


def without_random_bits(answer: Any) -> Any:
    """Return an answer with the time in each message id and without its random bits and cursors."""
    if isinstance(answer, dict):
        return {
            name: value >> 6
            if name in {"id", "message_id"} and isinstance(value, int)
            else without_random_bits(value)
            for name, value in answer.items()
            if not (name == "event_id" and value.startswith("message_"))
            if name not in {"cursor", "next_cursor"}
        }
    return [without_random_bits(one) for one in answer] if isinstance(answer, list) else answer


@pytest.mark.promise("identity.visible-only")
@pytest.mark.promise("sessions.message-ids")
@pytest.mark.promise("memory.private")
async def test_hidden_messages_change_nothing_that_a_reader_gets(
    tmp_path: Path,
    autojump_clock: object,  # noqa: ARG001  pytest-trio runs the test on it
) -> None:
    async def seen(*, hidden: bool) -> list[Any]:
        async with house(tmp_path / str(hidden), VirtualClock()) as at:
            await public_life(at, hidden=hidden)
            bob = at.agent("bob")
            answers = [
                await bob.ask(ListSessions()),
                await bob.ask(ListSessions(status="created")),
                await bob.ask(ListSessions(limit=1)),
                *[
                    await bob.ask(GetSession(session_id=session_id))
                    for session_id in ("first", "second", "third")
                ],
                *[
                    await bob.ask(GetMessages(session_id="first", visibility_filter=wanted))
                    for wanted in FILTERS
                ],
                await bob.ask(GetMessages(session_id="first", limit=2, offset=3)),
                await bob.ask(GetMessages(session_id="second", since_id=0)),
                await bob.ask(SearchContext(session_id="first", query="word")),
                await bob.ask(SearchContext(session_id="first", query="wrod 3", max_rows_scanned=3)),
                await bob.ask(SearchContext(session_id="third", query="word")),
                await bob.ask(SearchBySender(session_id="first", sender="alice", limit=2)),
                await bob.ask(SearchBySender(session_id="third", sender="alice")),
                await bob.ask(SearchByTimerange(session_id="first", start_time=LONG_AGO, end_time=FAR_AHEAD)),
                await bob.ask(ListMemory(session_id="all")),
                *[
                    await SessionService(at.runtime, bob.principal).get_session(session_id)
                    for session_id in ("first", "second", "third")
                ],
            ]
        return [without_random_bits(wire(answer)) for answer in answers]

    assert await seen(hidden=True) == await seen(hidden=False)


def reads_and_writes(session_id: str) -> list[Any]:
    return [
        GetSession(session_id=session_id),
        UpdateSession(session_id=session_id, status="paused"),
        AddMessage(session_id=session_id, content="c"),
        AddMessage(session_id=session_id, content="c", parent_message_id=5),
        GetMessages(session_id=session_id),
        SearchContext(session_id=session_id, query="q"),
        SearchBySender(session_id=session_id, sender="alice"),
        SearchByTimerange(session_id=session_id, start_time=LONG_AGO, end_time=FAR_AHEAD),
        SetMemory(key="k", value=json("1"), session_id=session_id),
    ]


@pytest.mark.promise("identity.alike")
@pytest.mark.promise("sessions.project")
async def test_a_forbidden_session_answers_as_an_unknown_one(enter: Enter) -> None:
    async with enter() as at:
        member = at.agent("alice", projects=frozenset({"x"}))
        stranger = at.agent("bob", projects=frozenset({"y"}))
        await member.ask(CreateSession(purpose="p", session_id="there", project_id="x"))
        await say(member, "there", "c")
        for forbidden, unknown in zip(reads_and_writes("there"), reads_and_writes("thera"), strict=True):
            with refused("SESSION_NOT_FOUND", session_id="there") as first:
                await stranger.ask(forbidden)
            with refused("SESSION_NOT_FOUND", session_id="thera") as second:
                await stranger.ask(unknown)
            assert str(first.value).replace("there", "thera") == str(second.value).replace("there", "thera")
            assert first.value.details.keys() == second.value.details.keys()
        assert (await stranger.ask(ListSessions())).sessions == []
        assert (await stranger.ask(ListSessions(project_id="x"))).sessions == []
        assert [one.session_id for one in (await member.ask(ListSessions(project_id="x"))).sessions] == [
            "there"
        ]
        assert (await member.ask(ListSessions(project_id="y"))).sessions == []


@pytest.mark.promise("sessions.parents")
async def test_a_hidden_parent_is_an_unknown_parent(enter: Enter) -> None:
    async with enter() as at:
        alice, bob = at.agent("alice"), at.agent("bob")
        for session_id in ("s", "other"):
            await alice.ask(CreateSession(purpose="p", session_id=session_id))
        [hidden] = await say(alice, "s", "c", visibility="private")
        [public] = await say(alice, "s", "c")
        [elsewhere] = await say(bob, "other", "c")
        sentences = set()
        for parent in (hidden, elsewhere, 7, 2**53 - 1):
            with refused("PARENT_MESSAGE_NOT_FOUND", parent_message_id=parent) as caught:
                await say(bob, "s", "c", parent_message_id=parent)
            sentences.add(str(caught.value).replace(str(parent), "N"))
        assert len(sentences) == 1
        await say(bob, "s", "c", parent_message_id=public)
        await say(alice, "s", "c", parent_message_id=hidden)
        answers = (await bob.ask(GetMessages(session_id="s"))).messages
        assert [message.parent_message_id for message in answers] == [None, public, None]
        answers = (await alice.ask(GetMessages(session_id="s"))).messages
        assert [message.parent_message_id for message in answers] == [None, None, public, hidden]


@pytest.mark.promise("identity.principal")
async def test_an_argument_cannot_claim_another_identity(enter: Enter) -> None:
    async with enter() as at:
        ann = at.agent("alice", user="ann", projects=frozenset({"x"}))
        with refused("PERMISSION_DENIED", field="user_id"):
            await ann.ask(CreateSession(purpose="p", user_id="bea"))
        with refused("PERMISSION_DENIED", field="project_id"):
            await ann.ask(CreateSession(purpose="p", project_id="y"))
        for request_type, field in (
            (GetMemory, "agent_id"),
            (AddMessage, "sender"),
            (CreateSession, "created_by"),
        ):
            with refused("VALIDATION_ERROR", field=field):
                parse_request(request_type, msgspec.json.encode({field: "bob"}))
        made = await ann.ask(CreateSession(purpose="p", user_id="ann"))
        assert (await ann.ask(GetSession(session_id=made.session_id))).session.user_id == "ann"
        nobody = await at.agent("bob").ask(CreateSession(purpose="p", user_id="bea"))
        assert (await ann.ask(GetSession(session_id=nobody.session_id))).session.user_id == "bea"


@pytest.mark.promise("memory.private")
async def test_nobody_finds_another_agents_memory(enter: Enter) -> None:
    async with enter() as at:
        alice, bob = at.agent("alice", "t", user="u"), at.agent("bob", "t", user="u")
        await alice.ask(CreateSession(purpose="p", session_id="s"))
        await alice.ask(SetMemory(key="k", value=json('"mine"')))
        await alice.ask(SetMemory(key="k", value=json('"mine"'), session_id="s"))
        for session_id in (None, "s"):
            with refused("MEMORY_NOT_FOUND") as caught:
                await bob.ask(GetMemory(key="k", session_id=session_id))
            with pytest.raises(Refusal, match=str(caught.value).replace("'k'", "'never'")):
                await bob.ask(GetMemory(key="never", session_id=session_id))
            assert (await bob.ask(ListMemory(session_id=session_id))).entries == []
        stored = await bob.ask(SetMemory(key="k", value=json("2"), overwrite=False))
        assert stored.version == 1
        assert wire(await alice.ask(GetMemory(key="k")))["value"] == "mine"


@pytest.mark.promise("runtime.exactly-once", "sessions.project", "identity.alike")
async def test_a_stored_answer_is_for_the_whole_identity_that_got_it(enter: Enter) -> None:
    async with enter() as house:
        member = house.agent("same-name", projects=frozenset({"p"}))
        await member.ask(CreateSession(purpose="secret", session_id="s", project_id="p"))
        change = UpdateSession(session_id="s", status="paused", idempotency_key="1")
        assert await member.ask(change) == await member.ask(change)
        with refused("SESSION_NOT_FOUND"):
            await house.agent("same-name", projects=frozenset()).ask(change)
