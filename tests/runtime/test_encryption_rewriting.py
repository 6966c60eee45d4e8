"""Switching encryption on for a store that is there, and changing its key."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import trio
from support.actors import ACTORS, INDEXES, CancelAlarm, Rings, SetAlarm
from support.planted import ALICE, SESSION, guesses, live, look

from greenroom.actors import AddMessage, Agent, encrypt_greenroom, open_greenroom
from greenroom.runtime import ACTORS as RECORDS
from greenroom.runtime import INDEXES as ROWS
from greenroom.runtime import (
    META,
    Actor,
    Address,
    ConfigurationError,
    Encryption,
    RuntimeOptions,
    StorageFullError,
    Store,
    StoreDamagedError,
    StoreError,
    StoreKeyError,
    StoreOwnedError,
    WriteBatch,
    backup,
    encrypt,
    rekey,
    restore,
    verify,
)
from greenroom.runtime.lmdb.environment import SEAL_KEY, open_environment
from greenroom.runtime.maintenance import reencrypt as rewriting
from greenroom.testing import SECOND

if TYPE_CHECKING:
    from support.asking import Open

    from greenroom.testing import VirtualClock

pytestmark = pytest.mark.slow

ENCRYPTED = Encryption(lambda: b"\x07" * 32, required=True)
OTHER = Encryption(lambda: b"\x08" * 32)


def raw(folder: Path) -> bytes:
    return (folder / "greenroom.mdb").read_bytes()


def opened(folder: Path, encryption: Encryption | None) -> Any:
    return open_greenroom(folder, embedder="none", encryption=encryption, secrets=folder.parent / "secrets")


@pytest.fixture
async def planted(tmp_path: Path) -> Path:
    """A store in the clear, full of planted words."""
    folder = tmp_path / "data"
    async with opened(folder, None) as runtime:
        await live(runtime)
    assert b"planted" in raw(folder)
    return folder


@pytest.mark.quick
@pytest.mark.promise("encryption.switched_on", "encryption.the_same")
async def test_a_rewritten_store_says_the_same_and_shows_nothing(planted: Path) -> None:
    async with opened(planted, None) as runtime:
        before = await look(runtime)
    encrypt_greenroom(planted, ENCRYPTED)
    assert not (planted / "encrypting").exists()
    in_file = raw(planted)
    assert b"planted" not in in_file
    assert b"seldom" not in in_file
    assert not any(guess in in_file for guess in guesses())
    verify(planted, encryption=ENCRYPTED)
    async with opened(planted, ENCRYPTED) as runtime:
        assert await look(runtime) == before
        await live_on(runtime)
    with pytest.raises(StoreKeyError):
        async with opened(planted, None):
            pass


async def live_on(runtime: Any) -> None:
    """Write over what was written before: a repeat, the next version of each memory, further messages."""
    alice = Agent(runtime, ALICE)
    await alice.ask(AddMessage(session_id=SESSION, content="planted later"))
    await live(runtime)  # the same idempotency keys: nothing is done twice
    messages = (await look(runtime))["messages"]
    assert isinstance(messages, list)
    assert len(messages) == 5


@pytest.mark.promise("encryption.switched_on")
async def test_a_rewritten_store_has_the_rows_that_it_would_have_been_given(planted: Path) -> None:
    """What is written again finds what was rewritten, and leaves no second row of anything."""
    encrypt_greenroom(planted, ENCRYPTED)
    tables = verify(planted, encryption=ENCRYPTED).tables
    async with opened(planted, ENCRYPTED) as runtime:
        await live(runtime)
    again = verify(planted, encryption=ENCRYPTED).tables
    assert [table.rows for table in again if table.name == "actors"] == [
        table.rows for table in tables if table.name == "actors"
    ]


@pytest.mark.quick
@pytest.mark.promise("encryption.switched_on", "encryption.names")
async def test_timers_of_before_ring_can_be_replaced_and_cancelled(
    folder: Path, reopen: Open, clock: VirtualClock
) -> None:
    alarm = Address("alarm", "planted")
    due = clock.now() + 100 * SECOND
    async with reopen() as runtime:
        for name in ("planted-rings", "planted-replaced", "planted-cancelled"):
            await runtime.ask(alarm, SetAlarm(name=name, due=due))
    assert b"planted" in raw(folder)
    encrypt(folder, ENCRYPTED, actors=ACTORS, indexes=INDEXES)
    assert b"planted" not in raw(folder)
    async with reopen(encryption=ENCRYPTED) as runtime:
        await runtime.ask(alarm, CancelAlarm(name="planted-cancelled"))
        await runtime.ask(alarm, SetAlarm(name="planted-replaced", due=due + SECOND))
        await trio.sleep(1_000)
        assert await runtime.ask(alarm, Rings()) == [
            ("planted-rings", due),
            ("planted-replaced", due + SECOND),
        ]
        assert runtime.statistics().store.rows == 2, "nothing of the timers stays"


class Interrupted(Exception):  # noqa: N818  it stands for a power cut
    pass


@pytest.mark.promise("encryption.switched_on")
@pytest.mark.parametrize("at", [1, 2, 3, 5, 8, 13])
async def test_an_interrupted_rewriting_goes_on_where_it_was(
    planted: Path, at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(planted, None) as runtime:
        before = await look(runtime)
    monkeypatch.setattr(rewriting, "_BATCH", 40)
    commits: list[int] = []
    commit = Store.write

    def counted(new: Store, ops: list[Any]) -> None:
        commits.append(len(ops))
        if len(commits) == at:
            raise Interrupted
        commit(new, ops)

    monkeypatch.setattr(Store, "write", counted)
    in_the_clear = raw(planted)
    with pytest.raises(Interrupted):
        encrypt_greenroom(planted, ENCRYPTED)
    assert raw(planted) == in_the_clear
    new = planted / "encrypting" / "greenroom.mdb"
    assert b"planted" not in new.read_bytes()
    first = sum(commits)
    commits.clear()
    commits.append(-at)  # interrupted once
    commits.extend([0] * at)
    encrypt_greenroom(planted, ENCRYPTED)
    again = sum(count for count in commits if count > 0)
    with closing(Store(planted, encryption=ENCRYPTED)) as store:
        rows = store.statistics().rows
    assert first + again <= rows + 2 * 40 + 2 * len(commits), "what was written is not written again"
    async with opened(planted, ENCRYPTED) as runtime:
        assert await look(runtime) == before


@pytest.mark.promise("encryption.switched_on")
async def test_a_torn_new_file_is_begun_anew(planted: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commit = Store.write

    def torn(new: Store, ops: list[Any]) -> None:
        commit(new, ops)
        raise Interrupted

    monkeypatch.setattr(Store, "write", torn)
    with pytest.raises(Interrupted):
        encrypt_greenroom(planted, ENCRYPTED)
    monkeypatch.setattr(Store, "write", commit)
    new = planted / "encrypting" / "greenroom.mdb"
    content = new.read_bytes()
    for wrong in (content[: len(content) // 2], b"", content[:8192] + bytes(4096) + content[12288:]):
        new.parent.mkdir(exist_ok=True)
        new.write_bytes(wrong)
        monkeypatch.setattr(rewriting, "_exchange", lambda *_: ())
        encrypt_greenroom(planted, ENCRYPTED)
        monkeypatch.undo()
    encrypt_greenroom(planted, ENCRYPTED)
    async with opened(planted, ENCRYPTED) as runtime:
        await look(runtime)


@pytest.mark.promise("encryption.switched_on")
async def test_what_was_written_of_another_state_or_under_another_key_is_begun_anew(
    planted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rewriting, "_BATCH", 40)
    commit = Store.write

    def stop_after(limit: int) -> Any:
        seen: list[int] = []

        def stopping(new: Store, ops: list[Any]) -> None:
            seen.append(1)
            if len(seen) > limit:
                raise Interrupted
            commit(new, ops)

        return stopping

    for encryption in (OTHER, ENCRYPTED):
        monkeypatch.setattr(Store, "write", stop_after(4))
        with pytest.raises(Interrupted):
            encrypt_greenroom(planted, encryption)
    async with opened(planted, None) as runtime:
        alice = Agent(runtime, ALICE)
        await alice.ask(AddMessage(session_id=SESSION, content="planted between"))
        before = await look(runtime)
    monkeypatch.setattr(Store, "write", commit)
    encrypt_greenroom(planted, ENCRYPTED)
    async with opened(planted, ENCRYPTED) as runtime:
        assert await look(runtime) == before


@pytest.mark.promise("encryption.switched_on")
async def test_what_cannot_be_rewritten_stays_as_it_was(planted: Path, tmp_path: Path) -> None:
    before = raw(planted)

    class Stranger(Actor):
        kind = "stranger"

    with pytest.raises(ConfigurationError, match="does not know"):
        encrypt(planted, ENCRYPTED, actors=[Stranger], indexes=[])
    with pytest.raises(StorageFullError):
        encrypt_greenroom(planted, ENCRYPTED, options=RuntimeOptions(max_size=1 << 20, min_free=1 << 60))
    with pytest.raises(StoreError, match="no store"):
        encrypt_greenroom(tmp_path / "nothing", ENCRYPTED)
    assert not (tmp_path / "nothing").exists()
    async with opened(planted, None):
        with pytest.raises(StoreOwnedError):
            encrypt_greenroom(planted, ENCRYPTED)
    assert len(raw(planted)) == len(before)
    async with opened(planted, None) as runtime:
        await look(runtime)


def test_a_damaged_store_is_not_rewritten(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    with closing(Store(folder)) as store:
        store.commit([WriteBatch(None, [(RECORDS, b"counter\0a\0uvalue", b"planted")])])
    # A recent row left it on a free page, too.
    (folder / "greenroom.mdb").write_bytes(raw(folder).replace(b"planted", b"Planted"))
    with pytest.raises(StoreDamagedError):
        encrypt(folder, ENCRYPTED, actors=ACTORS, indexes=INDEXES)
    assert b"Planted" in raw(folder)


async def test_an_encrypted_store_is_left_as_it_is_and_what_is_in_the_clear_is_told(
    planted: Path, tmp_path: Path
) -> None:
    backup(planted, tmp_path / "copy")
    restore(tmp_path / "copy", planted)
    left = [planted / f"greenroom.mdb.{command}" for command in ("new", "verifying", "restoring")]
    for path in left:  # as commands leave them that were killed
        path.write_bytes(b"planted")
    info = encrypt_greenroom(planted, ENCRYPTED)
    assert [path.name for path in info.in_the_clear] == ["greenroom.mdb.before-restore"]
    assert sum(table.rows for table in info.tables) > 100
    assert not any(path.exists() for path in left)
    before = raw(planted)
    (planted / "encrypting").mkdir()  # as an exchange leaves it that was interrupted
    assert encrypt_greenroom(planted, ENCRYPTED).tables == ()
    assert not (planted / "encrypting").exists()
    with pytest.raises(StoreKeyError, match="another key"):
        encrypt_greenroom(planted, OTHER)
    assert raw(planted) == before


# -- another key


def rows(folder: Path, encryption: Encryption) -> Iterator[tuple[bytes, bytes]]:
    with closing(Store(folder, encryption=encryption)) as store:
        for table in (RECORDS, ROWS, META):
            yield from store.scan(table, b"")


@pytest.mark.quick
@pytest.mark.promise("encryption.rotation")
def test_another_key_is_wrapped_around_without_touching_a_record(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    with closing(Store(folder, encryption=ENCRYPTED)) as store:
        works = [(RECORDS, b"k%d" % n, b"planted" * 50) for n in range(500)]
        store.commit([WriteBatch(None, works)])
    backup(folder, tmp_path / "copy", encryption=ENCRYPTED)
    old, before = raw(folder), list(rows(folder, ENCRYPTED))
    with (
        closing(open_environment(folder, max_size=1 << 24, sync=True)) as environment,
        environment.begin() as transaction,
    ):
        wrapped = transaction.get(SEAL_KEY) or b""
    rekey(folder, ENCRYPTED, OTHER)
    assert list(rows(folder, OTHER)) == before
    pages = range(0, len(old), 4096)
    changed = sum(old[at : at + 4096] != raw(folder)[at : at + 4096] for at in pages)
    assert changed < 10
    assert wrapped in old
    assert wrapped not in raw(folder)  # whoever has the old key and this file has nothing to open with it
    with pytest.raises(StoreKeyError):
        verify(folder, encryption=ENCRYPTED)
    verify(folder, encryption=OTHER)
    restore(tmp_path / "copy", tmp_path / "other", encryption=ENCRYPTED)  # which the old key opens still
    with pytest.raises(StoreKeyError):
        rekey(folder, ENCRYPTED, OTHER)
    plain = tmp_path / "plain"
    with closing(Store(plain)) as store:
        store.commit([WriteBatch(None, [(RECORDS, b"k", b"v")])])
    with pytest.raises(StoreKeyError, match="not encrypted"):
        rekey(plain, ENCRYPTED, OTHER)
    shutil.rmtree(folder)
    with pytest.raises(StoreError, match="no store"):
        rekey(folder, ENCRYPTED, OTHER)
