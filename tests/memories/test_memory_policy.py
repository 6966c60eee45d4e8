"""Who may see a memory and who may write into a namespace: the rules as tables."""

from __future__ import annotations

import itertools
from typing import Any

import hypothesis.strategies as st
import msgspec
import pytest
from hypothesis import given

from greenroom.actors import Principal
from greenroom.actors.core.auth.namespaces import (
    is_below,
    memory_address,
    owner_of,
    project_in,
    segment,
)
from greenroom.actors.core.auth.policy import (
    MemoryPartition,
    is_narrowed,
    labels_of_memory,
    may_hear,
    may_see_memory,
    may_write_namespace,
    memory_partition,
    moved_partition,
    owns_memory,
)
from greenroom.actors.core.git.project_names import project_of_path
from greenroom.runtime import Address, Refusal


def person(
    agent: str, user: str | None = None, projects: str | None = "", key_id: str | None = None
) -> Principal:
    """Return a principal; None is a member of every project."""
    members = None if projects is None else frozenset(projects.split())
    return Principal(agent_id=agent, user=user, projects=members, key_id=key_id)


ALICE, BOB, EVE = person("a", "alice", "p q"), person("b", "bob", "q r"), person("e", "eve", "")
LOCAL, NAMELESS = person("l", "local", None), person("n", None, "p")
FOLDER = project_of_path("/home/alice/atlas")
EVERYONE = {"alice": ALICE, "bob": BOB, "eve": EVE, "local": LOCAL, "nameless": NAMELESS}


@pytest.mark.promise("memory.scopes-of-sight")
@pytest.mark.parametrize(
    ("writer", "namespace", "scope", "readers"),
    [
        (ALICE, "user:alice", None, "alice"),
        (ALICE, "user:alice:deep", "private", "alice"),
        (ALICE, "user:alice", "shared", "alice bob local nameless"),
        (ALICE, "user:alice", "public", "alice bob eve local nameless"),
        (ALICE, "agent:a", None, "alice"),
        (ALICE, "project:p", None, "alice local nameless"),
        (ALICE, "project:p:x", "private", "alice"),
        (BOB, "project:r", "shared", "bob local"),
        (BOB, "team:x", None, "alice bob local"),
        (EVE, "team:x", None, "eve"),
        (EVE, "team:x", "public", "alice bob eve local nameless"),
        (LOCAL, "team:x", None, "alice bob local nameless"),
        (NAMELESS, "agent:n", None, "nameless"),
        (NAMELESS, "team:x", "private", "nameless"),
        (NAMELESS, "team:x", None, "alice local nameless"),
    ],
)
def test_scopes_say_who_sees(writer: Principal, namespace: str, scope: Any, readers: str) -> None:
    partition = memory_partition(writer, namespace, scope)
    seen_by = {name for name, reader in EVERYONE.items() if may_see_memory(reader, partition)}
    assert seen_by == set(readers.split())


@pytest.mark.promise("memory.private")
@pytest.mark.parametrize(
    ("namespace", "writers"),
    [
        ("user:alice", "alice"),
        ("user:alice:deep:er", "alice"),
        ("user:alic", ""),
        ("user:bob", "bob"),
        ("agent:a", "alice"),
        ("agent:n", "nameless"),
        ("agent:n:x", "nameless"),
        ("project:p", "alice local nameless"),
        ("project:r:x", "bob local"),
        ("project:unknown", "local"),
        ("team:x", "alice bob eve local nameless"),
        ("users:alice", "alice bob eve local nameless"),
    ],
)
def test_namespaces_say_who_writes(namespace: str, writers: str) -> None:
    may = {name for name, writer in EVERYONE.items() if may_write_namespace(writer, namespace)}
    assert may == set(writers.split())


@pytest.mark.promise("memory.scopes-of-sight")
def test_only_the_owner_changes_who_sees() -> None:
    partition = memory_partition(ALICE, "team:x", "shared")
    assert moved_partition(partition, BOB, "team:x", "shared") == partition
    with pytest.raises(Refusal) as caught:
        moved_partition(partition, BOB, "team:x", "public")
    assert (caught.value.code, caught.value.details["field"]) == ("PERMISSION_DENIED", "scope")
    hidden = moved_partition(partition, ALICE, "team:x", "private")
    assert [may_see_memory(one, hidden) for one in (ALICE, BOB)] == [True, False]
    assert moved_partition(hidden, ALICE, "team:x", "shared") == partition


people = st.builds(
    person,
    st.sampled_from("abc"),
    st.none() | st.sampled_from(["alice", "bob"]),
    st.none() | st.sampled_from(["", "p", "p q", "r", "Pröject x", "user:alice p", "user:bob", FOLDER]),
    st.none() | st.sampled_from(["key", "oauth:x", "console:x"]),
)
spaces = st.sampled_from(
    [
        *("user:alice", "agent:a", "project:p", "project:Pr~c3~b6ject", "team:x", "project:user~3aalice"),
        *(f"user:alice:{FOLDER}:x", f"agent:a:{FOLDER}", "user:alice:notes"),
    ]
)


@given(people, people, spaces, st.sampled_from([None, "private", "shared", "public"]))
def test_a_writer_sees_what_it_wrote_and_wider_scopes_hide_nothing(
    writer: Principal, reader: Principal, namespace: str, scope: Any
) -> None:
    partition = memory_partition(writer, namespace, scope)
    assert owns_memory(writer, partition)
    if may_write_namespace(writer, namespace):
        assert may_see_memory(writer, partition, namespace)
    if owns_memory(reader, partition) and is_narrowed(reader):
        return  # what is shared with some projects is of these, and a private one there of none
    wider = [
        may_see_memory(reader, memory_partition(writer, namespace, each), namespace)
        for each in ("private", "shared", "public")
    ]
    assert all(not narrow or wide for narrow, wide in itertools.pairwise(wider))
    if not owns_memory(reader, partition):
        assert not wider[0]


@given(people, people, spaces, st.sampled_from([None, "private", "shared", "public"]))
def test_who_sees_a_memory_hears_of_it_and_nobody_else(
    writer: Principal, reader: Principal, namespace: str, scope: Any
) -> None:
    partition = memory_partition(writer, namespace, scope)
    hears = any(may_hear(reader, label) for label in labels_of_memory(partition, namespace))
    assert hears == may_see_memory(reader, partition, namespace)


@pytest.mark.promise("memory.key-projects")
@given(people, spaces, st.sampled_from([None, "private"]), st.sampled_from(["", "p q", "user:bob p", FOLDER]))
def test_a_key_bound_to_projects_sees_of_its_users_memories_those_of_these_and_of_none(
    writer: Principal, namespace: str, scope: Any, projects: str
) -> None:
    partition = memory_partition(writer, namespace, scope)
    reader = msgspec.structs.replace(writer, key_id="key", projects=frozenset(projects.split()))
    project = project_in(namespace)
    mine = {segment(each) for each in projects.split() if not each.startswith("user:")}
    mine |= {"user~3aalice"} if writer.user == "alice" else set()
    sees = may_see_memory(reader, partition, namespace)
    if project is not None:
        assert sees == (project in mine)
    elif partition.scope == "private":
        assert sees
    of_every = msgspec.structs.replace(reader, projects=None)
    if project != "user~3aalice" or writer.user == "alice":
        assert may_see_memory(of_every, partition, namespace)


def test_a_partition_of_nobody_is_seen_by_nobody() -> None:
    partition = MemoryPartition("private")
    assert not any(may_see_memory(one, partition) for one in EVERYONE.values())
    assert labels_of_memory(partition) == ()


@pytest.mark.promise("memory.namespaces")
@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("alice@example.org", "alice@example.org"),
        ("Ä b", "~c3~84~20b"),
        ("x" * 100, "x" * 100),
        ("x" * 101, "x" * 66 + "~~9c543fd357ad2f0a833eb0a7d0c9cd90"),
        ("", "~~cae66941d9efbd404e4d88758ea67670"),
    ],
)
def test_a_name_is_written_as_it_always_was(name: str, written: str) -> None:
    assert segment(name) == written


@pytest.mark.promise("memory.namespaces")
@pytest.mark.parametrize(
    ("namespace", "key"),
    [
        ("user:alice:prefs", "user:alice"),
        ("agent:a:b", "a"),
        ("t" * 100 + ":" + "u" * 99, "t" * 100 + ":" + "u" * 99),
        ("t" * 100 + ":" + "u" * 100, "t" * 100 + ":" + "u" * 66 + "~7b6de7ac88c87a7d304adf4f191bbefb"),
    ],
)
def test_a_namespace_has_the_actor_that_it_always_had(namespace: str, key: str) -> None:
    assert memory_address(namespace) == Address("memory", key)


@pytest.mark.parametrize(
    ("namespace", "is_it"),
    [("user:al", True), ("user:al:x", True), ("user:alice", False), ("user:a", False), ("user", False)],
)
def test_what_is_below_a_namespace(namespace: str, *, is_it: bool) -> None:
    assert is_below(namespace, "user:al") is is_it


@pytest.mark.parametrize(
    ("namespace", "agent", "user"),
    [
        ("user:al~c3~a9:prefs", "n", "alé"),
        ("agent:b:x", "b", None),
        ("agent:b b", "n", None),
        ("team:b", "n", None),
    ],
)
def test_whose_a_namespace_is(namespace: str, agent: str, user: str | None) -> None:
    owner = owner_of(namespace, NAMELESS)
    assert (owner.agent_id, owner.user) == (agent, user)
