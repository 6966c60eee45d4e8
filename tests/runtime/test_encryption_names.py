"""What is in the file of an encrypted store: no word, no name, and no digest of a guessed name."""

from __future__ import annotations

import re
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.planted import SESSION, WORDS, guesses, live, look

from greenroom.actors import open_greenroom
from greenroom.actors.core.auth.policy import Partition
from greenroom.actors.memories.storage import directory as namespaces
from greenroom.actors.memories.storage import records as memories
from greenroom.actors.sessions.graph_checkpoints import records as threads
from greenroom.actors.sessions.handlers import events
from greenroom.actors.sessions.storage import directory
from greenroom.actors.sessions.storage import records as sessions
from greenroom.runtime import ACTORS, INDEXES, Encryption, Names, Store
from greenroom.runtime.lmdb.key_blinding import KeyBlinder

KEY = b"\x07" * 32
ENCRYPTED = Encryption(lambda: KEY, required=True)
VEIL = KeyBlinder(KEY)

names = st.text(st.characters(categories=["L", "N", "P"]), min_size=1, max_size=20)
numbers = st.integers(0, (1 << 40)).map(lambda number: number.to_bytes(8))
partitions = st.builds(
    Partition,
    st.sampled_from(["public"]) | names.map("agent:{}".format) | names.map("type:{}".format),
    st.sampled_from(["public", "private", "agent_only"]),
)
scopes = st.tuples(st.none() | names, st.just("") | names).filter(lambda scope: not all(scope))


@st.composite
def session_keys(draw: st.DrawFn) -> tuple[bytes, list[bytes]]:
    """A key of a session's record, and what it is found by in scans."""
    partition = draw(partitions)
    prefix = sessions.partition_prefix(partition)
    return draw(
        st.sampled_from(
            [
                (prefix + draw(numbers), [b"m", prefix]),
                (sessions.counter_key(partition, draw(names)), [b"t"]),
                (events.event_key(partition, draw(names)), [b"e"]),
                (b"c" + draw(numbers) + b"f" + draw(numbers) * 2, []),
                (b"c" + draw(numbers) + b"s" + draw(numbers) + b"\0\1", []),
                (b"l" + draw(numbers), []),
                (b"h", []),
                (b"d" + draw(numbers)[:4], [b"d"]),
            ]
        )
    )


@st.composite
def memory_keys(draw: st.DrawFn) -> tuple[bytes, list[bytes]]:
    session_id, sub = draw(scopes)
    entry = memories.entry_key(session_id, draw(names), sub)
    order = memories.updates_prefix(session_id, sub)
    rater = memories.ratings_prefix(7)
    return draw(
        st.sampled_from(
            [
                (entry, [b"e", entry]),
                (entry + draw(numbers)[4:], [b"e", entry]),
                (order + draw(numbers), [b"o", order]),
                (memories.rating_key(7, draw(names)), [b"r", rater]),
                (memories.id_key(draw(numbers)), [b"u"]),
                (b"k", []),
            ]
        )
    )


@st.composite
def directory_keys(draw: st.DrawFn) -> tuple[bytes, list[bytes]]:
    audience = draw(names)
    prefix = directory.sort_prefix(audience)
    place = prefix + directory.position(draw(names), draw(st.integers(0, 1 << 50)))
    return draw(
        st.sampled_from(
            [(directory.BASE, []), (directory.point_key(audience), [b"p"]), (place, [b"s", prefix])]
        )
    )


@st.composite
def thread_keys(draw: st.DrawFn) -> tuple[bytes, list[bytes]]:
    space, name = draw(names), draw(names)
    value = threads.digest(draw(names), draw(names))
    of_space, of_checkpoint = threads.checkpoint_key(space, ""), threads.writes_key(space, name)
    key = threads.value_key(space, value)
    write = threads.write_key(space, name, draw(names), draw(st.integers(-4, 9)))
    return draw(
        st.sampled_from(
            [
                (threads.THREAD, []),
                (threads.checkpoint_key(space, name), [threads.CHECKPOINTS, of_space]),
                (key, [threads.VALUES]),
                (write, [threads.WRITES, of_checkpoint]),
                (threads.rest_key(key, 1), [threads.REST]),
                (threads.rest_key(write, 2), [threads.REST]),
                (threads.rest_key(of_space + name.encode(), 0), [threads.REST]),
            ]
        )
    )


@pytest.mark.promise("encryption.names")
@pytest.mark.parametrize(
    ("keys", "names_in"),
    [
        (thread_keys(), threads.names_in),
        (session_keys(), sessions.names_in),
        (memory_keys(), memories.names_in),
        (directory_keys(), directory.names_in),
    ],
)
def test_what_a_scan_begins_with_begins_the_hidden_keys_that_it_finds(
    keys: st.SearchStrategy[tuple[bytes, list[bytes]]], names_in: Names
) -> None:
    @given(keys, keys)
    def check(first: tuple[bytes, list[bytes]], second: tuple[bytes, list[bytes]]) -> None:
        key, prefixes = first
        hidden = VEIL.blind(b"within", key, names_in)
        for prefix in prefixes:
            assert key.startswith(prefix)
            assert hidden.startswith(VEIL.blind(b"within", prefix, names_in))
        other = VEIL.blind(b"within", second[0], names_in)
        assert (hidden == other) == (key == second[0])
        for prefix in second[1]:
            found = hidden.startswith(VEIL.blind(b"within", prefix, names_in))
            assert found == key.startswith(prefix)
        changed = VEIL.blind(b"elsewhere", key, names_in)
        assert (changed != hidden) == (KeyBlinder(b"x" * 32).blind(b"within", key, names_in) != hidden)

    check()


@pytest.mark.promise("encryption.names")
@given(partitions, numbers, numbers)
def test_ids_and_times_sort_as_ever(partition: Partition, first: bytes, second: bytes) -> None:
    prefix = sessions.partition_prefix(partition)
    one, other = (VEIL.blind(b"", prefix + each, sessions.names_in) for each in (first, second))
    assert (one < other) == (first < second)


@pytest.mark.parametrize(
    ("key", "names_in"),
    [
        (b"mpagent:al", sessions.names_in),
        (b"tmpagent:al", sessions.names_in),
        (b"tmpagent:al\0digest", sessions.names_in),
        (b"ossession", memories.names_in),
        (b"essession\0digest", memories.names_in),
        (b"ondigest", memories.names_in),
        (b"sagent:al", directory.names_in),
        (b"spublic\0" + bytes(9), directory.names_in),
    ],
)
def test_a_scan_that_ends_within_a_name_is_refused(key: bytes, names_in: Names) -> None:
    with pytest.raises(ValueError, match="ends within a name"):
        VEIL.blind(b"", key, names_in)


def test_a_namespace_is_a_name_as_a_whole() -> None:
    assert namespaces.names_in(b"") == ()
    assert VEIL.blind(b"", b"x", namespaces.names_in) != VEIL.blind(b"", b"y", namespaces.names_in)


@pytest.mark.slow
@pytest.mark.promise("encryption.names", "encryption.sealed")
async def test_no_planted_word_and_no_guessed_name_is_in_the_file(tmp_path: Path) -> None:
    plain, hidden = tmp_path / "plain", tmp_path / "hidden"
    seen = []
    for folder, encryption in ((plain, None), (hidden, ENCRYPTED)):
        async with open_greenroom(
            folder, embedder="none", encryption=encryption, secrets=tmp_path / "secrets"
        ) as runtime:
            await live(runtime)
        async with open_greenroom(
            folder, embedder="none", encryption=encryption, secrets=tmp_path / "secrets"
        ) as runtime:
            seen.append(await look(runtime))
    assert seen[0] == seen[1]
    in_plain, in_hidden = ((folder / "greenroom.mdb").read_bytes() for folder in (plain, hidden))
    words = {f"planted{between}{word}".encode() for word in WORDS for between in " -:"}
    there = {word for word in words if word in in_plain}
    assert len(there) > len(WORDS) * 2 // 3, "they are planted where they can be found"
    assert {word for word in words if word in in_hidden} == set()
    assert len(re.findall(rb"(?i)plant|seldom", in_hidden)) < 5  # chance makes some of these, too
    assert sum(guess in in_plain for guess in guesses()) > 8, "the guesses are good"
    assert sum(guess in in_hidden for guess in guesses()) == 0


@pytest.mark.promise("encryption.names")
async def test_nothing_but_kinds_numbers_and_times_is_left_of_the_keys(tmp_path: Path) -> None:
    async with open_greenroom(tmp_path / "data", embedder="none", encryption=ENCRYPTED) as runtime:
        await live(runtime)
    with closing(Store(tmp_path / "data", encryption=ENCRYPTED)) as store:
        for table in (ACTORS, INDEXES):
            for key in store.keys(table, b""):
                assert not re.search(rb"planted|agent|public|" + SESSION.encode(), key), key
