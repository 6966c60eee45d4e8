"""Who may see a memory and who may write into a namespace: the rules as tables."""

from __future__ import annotations

import itertools
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

from greenroom.actors import Principal
from greenroom.actors.auth.policy import (
    MemoryShelf,
    may_see_memory,
    may_write_namespace,
    memory_shelf,
    moved_shelf,
    owns_memory,
)
from greenroom.runtime import Refusal


def person(agent: str, user: str | None = None, projects: str | None = "") -> Principal:
    """Return a principal; None is a member of every project."""
    members = None if projects is None else frozenset(projects.split())
    return Principal(agent_id=agent, user=user, projects=members)


ALICE, BOB, EVE = person("a", "alice", "p q"), person("b", "bob", "q r"), person("e", "eve", "")
LOCAL, NAMELESS = person("l", "local", None), person("n", None, "p")
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
    shelf = memory_shelf(writer, namespace, scope)
    seen_by = {name for name, reader in EVERYONE.items() if may_see_memory(reader, shelf)}
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
    shelf = memory_shelf(ALICE, "team:x", "shared")
    assert moved_shelf(shelf, BOB, "team:x", "shared") == shelf
    with pytest.raises(Refusal) as caught:
        moved_shelf(shelf, BOB, "team:x", "public")
    assert (caught.value.code, caught.value.details["field"]) == ("PERMISSION_DENIED", "scope")
    hidden = moved_shelf(shelf, ALICE, "team:x", "private")
    assert [may_see_memory(one, hidden) for one in (ALICE, BOB)] == [True, False]
    assert moved_shelf(hidden, ALICE, "team:x", "shared") == shelf


people = st.builds(
    person,
    st.sampled_from("abc"),
    st.none() | st.sampled_from(["alice", "bob"]),
    st.none() | st.sampled_from(["", "p", "p q", "r", "Pröject x"]),
)
spaces = st.sampled_from(["user:alice", "agent:a", "project:p", "project:Pr~c3~b6ject", "team:x"])


@given(people, people, spaces, st.sampled_from([None, "private", "shared", "public"]))
def test_a_writer_sees_what_it_wrote_and_wider_scopes_hide_nothing(
    writer: Principal, reader: Principal, namespace: str, scope: Any
) -> None:
    shelf = memory_shelf(writer, namespace, scope)
    assert owns_memory(writer, shelf)
    assert may_see_memory(writer, shelf)
    wider = [
        may_see_memory(reader, memory_shelf(writer, namespace, each))
        for each in ("private", "shared", "public")
    ]
    assert all(not narrow or wide for narrow, wide in itertools.pairwise(wider))
    if not owns_memory(reader, shelf):
        assert not wider[0]


def test_a_shelf_of_nobody_is_seen_by_nobody() -> None:
    shelf = MemoryShelf("private")
    assert not any(may_see_memory(one, shelf) for one in EVERYONE.values())
