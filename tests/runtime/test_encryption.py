"""Stores that are encrypted: records, keys, and what somebody finds who has the file alone."""

from __future__ import annotations

import base64
import os
import shutil
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import keyring
import keyring.backend
import keyring.errors
import lmdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom.runtime import (
    ACTORS,
    Encryption,
    Store,
    StoreDamagedError,
    StoreKeyError,
    WriteBatch,
    backup,
    key_source,
    restore,
    stopped_statistics,
    verify,
)
from greenroom.runtime.lmdb.record_cipher import SealedCodec, mark_of, unwrap, wrap

KEY = bytes(range(32))
OTHER = bytes(range(1, 33))


def encrypted(key: bytes = KEY, *, required: bool = True) -> Encryption:
    return Encryption(lambda: key, required=required)


def make(folder: Path, rows: dict[bytes, bytes], encryption: Encryption | None) -> None:
    with closing(Store(folder, encryption=encryption)) as store:
        store.commit([WriteBatch(None, [(ACTORS, key, payload) for key, payload in rows.items()])])


def raw(folder: Path) -> bytes:
    return (folder / "greenroom.mdb").read_bytes()


# -- a record


@pytest.mark.promise("encryption.sealed")
@given(st.binary(max_size=300), st.binary(min_size=1, max_size=80), st.data())
def test_whatever_is_changed_in_a_record_or_its_key_is_found_out(
    payload: bytes, key: bytes, data: st.DataObject
) -> None:
    codec = SealedCodec(KEY)
    record = codec.seal(key, payload)
    assert codec.open(key, record) == SealedCodec(KEY).open(key, record) == payload
    assert payload not in record or len(payload) < 4
    place = data.draw(st.integers(0, len(record) - 1))
    changed = bytearray(record)
    changed[place] ^= data.draw(st.integers(1, 255))
    cut = record[: data.draw(st.integers(0, len(record) - 1))]
    for wrong_key, wrong in [(key, bytes(changed)), (key, cut), (key + b"x", record), (key[1:], record)]:
        with pytest.raises(StoreDamagedError):
            codec.open(wrong_key, wrong)
    with pytest.raises(StoreDamagedError):
        SealedCodec(OTHER).open(key, record)


@pytest.mark.promise("encryption.nonces")
def test_no_nonce_comes_twice_under_one_key_over_openings_and_sub_keys() -> None:
    seen = set()
    opened = [SealedCodec(KEY, sub_key_records=3) for _ in range(50)]
    for codec in opened:
        for _ in range(8):
            record = codec.seal(b"k", b"same")
            assert record[:19] not in seen  # what the sub-key follows from, and the number under it
            seen.add(record[:19])
    assert len({head[:15] for head in seen}) == 50 * 3
    late = SealedCodec(KEY)
    assert all(late.open(b"k", codec.seal(b"k", b"same")) == b"same" for codec in opened)


def test_more_openings_than_are_remembered_are_still_read() -> None:
    records = [SealedCodec(KEY).seal(b"k", b"%d" % n) for n in range(1_200)]
    codec = SealedCodec(KEY)
    assert [codec.open(b"k", record) for record in records + records[:3]] == [
        *(b"%d" % n for n in range(1_200)),
        b"0",
        b"1",
        b"2",
    ]


@pytest.mark.promise("encryption.wrong_key")
def test_a_wrapped_key_opens_with_its_own_key_alone_and_damage_is_no_wrong_key() -> None:
    data_key = os.urandom(32)
    wrapped = wrap(data_key, KEY)
    assert unwrap(wrapped, KEY, "it") == data_key
    assert wrap(data_key, KEY) != wrapped
    with pytest.raises(StoreKeyError, match=f"{mark_of(KEY)}.*{mark_of(OTHER)}"):
        unwrap(wrapped, OTHER, "it")
    with pytest.raises(StoreKeyError, match="no key was given"):
        unwrap(wrapped, None, "it")
    for place in range(9, len(wrapped)):
        changed = bytearray(wrapped)
        changed[place] ^= 1
        with pytest.raises(StoreDamagedError):
            unwrap(bytes(changed), KEY, "it")
    with pytest.raises(StoreDamagedError):
        unwrap(wrapped[:20], KEY, "it")


# -- where the key comes from


@pytest.mark.promise("encryption.sources")
@pytest.mark.parametrize(
    "spelling",
    [
        KEY,
        KEY.hex().encode(),
        KEY.hex().upper().encode() + b"\n",
        base64.b64encode(KEY),
        base64.b64encode(KEY) + b"\r\n",
        base64.urlsafe_b64encode(KEY).rstrip(b"="),
    ],
)
def test_a_key_is_read_as_it_is_usually_spelt(spelling: bytes, tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_bytes(spelling)
    path.chmod(0o600)
    assert key_source(f"file:{path}")() == KEY


def test_url_safe_base64_is_read_too(tmp_path: Path) -> None:
    key = b"\xff\xef" * 16
    path = tmp_path / "key"
    path.write_bytes(base64.urlsafe_b64encode(key))
    path.chmod(0o600)
    assert key_source(f"file:{path}")() == key


@pytest.mark.promise("encryption.sources")
@pytest.mark.parametrize(
    "content", [b"", b"password", b"x" * 31, b"x" * 33, KEY.hex()[:-1].encode(), b"\xff" * 44, b"\n" * 40]
)
def test_what_is_no_key_is_refused_and_not_shown(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_bytes(content)
    path.chmod(0o600)
    with pytest.raises(StoreKeyError, match="holds no key") as caught:
        key_source(f"file:{path}")()
    assert not content.strip() or content.strip().decode("latin-1") not in str(caught.value)


@pytest.mark.promise("encryption.sources")
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o666])
def test_a_key_that_others_can_read_is_refused(mode: int, tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_bytes(KEY)
    path.chmod(mode)
    with pytest.raises(StoreKeyError, match="chmod 600"):
        key_source(f"file:{path}")()
    with pytest.raises(StoreKeyError, match="cannot be read"):
        key_source(f"file:{tmp_path / 'none'}")()
    with pytest.raises(StoreKeyError, match="cannot be read"):
        key_source(f"file:{tmp_path}")()


def test_a_key_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    read = key_source("env:A_KEY")
    with pytest.raises(StoreKeyError, match=r"A_KEY.*not set"):
        read()
    monkeypatch.setenv("A_KEY", KEY.hex())
    assert read() == KEY
    monkeypatch.setenv("A_KEY", "x" * 32)  # a word of 32 letters is no random key
    with pytest.raises(StoreKeyError, match="holds no key"):
        read()


@pytest.mark.parametrize("text", ["", "file", "file:", "pass:word", "/a/path", "FILE:x"])
def test_another_source_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="keyring:NAME"):
        key_source(text)


# -- a store


@pytest.mark.promise("encryption.sealed")
def test_a_new_store_is_sealed_from_its_first_byte(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    make(folder, {b"k%d" % n: b"planted secret %d" % n for n in range(300)}, encrypted())
    assert b"planted" not in raw(folder)
    with closing(Store(folder, encryption=encrypted(required=False))) as store:
        assert store.get(ACTORS, b"k7") == b"planted secret 7"
        assert [payload for _, payload in store.scan(ACTORS, b"k29")] == [
            b"planted secret 29",
            *(b"planted secret 29%d" % n for n in range(10)),
        ]


@pytest.mark.promise("encryption.wrong_key")
@pytest.mark.slow
def test_a_sealed_store_opens_with_its_key_alone_and_stays_as_it_was(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    make(folder, {b"k": b"v"}, encrypted())
    before = raw(folder)
    refused: list[tuple[Encryption | None, str]] = [
        (None, "no key was given"),
        (encrypted(OTHER), mark_of(KEY)),
        (encrypted(OTHER, required=False), "another key"),
    ]
    for encryption, sentence in refused:
        with pytest.raises(StoreKeyError, match=sentence):
            Store(folder, encryption=encryption)
        with pytest.raises(StoreKeyError, match=sentence):
            verify(folder, encryption=encryption)
        with pytest.raises(StoreKeyError, match=sentence):
            backup(folder, tmp_path / "copy", encryption=encryption)
        with pytest.raises(StoreKeyError, match=sentence):
            stopped_statistics(folder, encryption=encryption)
        assert not (tmp_path / "copy").exists()
    assert raw(folder) == before
    make(folder, {b"l": b"w"}, encrypted())  # nothing is left open by the refusals


@pytest.mark.promise("encryption.required")
def test_a_store_in_the_clear_is_refused_where_encryption_is_required(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    make(folder, {b"k": b"v"}, None)
    before = raw(folder)
    with pytest.raises(StoreKeyError, match="greenroom encrypt"):
        Store(folder, encryption=encrypted())
    assert raw(folder) == before
    make(folder, {b"k": b"v"}, encrypted(required=False))  # a key alone does not require it
    assert b"greenroom.seal" not in raw(folder)


@pytest.mark.promise("encryption.required")
def test_a_store_that_was_made_and_never_written_is_sealed(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    make(folder, {}, None)
    make(folder, {b"k": b"planted"}, encrypted())
    assert b"planted" not in raw(folder)
    assert b"greenroom.seal" in raw(folder)


@pytest.mark.quick
@pytest.mark.promise("encryption.copies")
@pytest.mark.slow
def test_copies_of_a_sealed_store_are_sealed_and_checked(tmp_path: Path) -> None:
    folder, copy = tmp_path / "data", tmp_path / "copy"
    rows = {b"k%d" % n: b"planted %d" % n for n in range(50)}
    make(folder, rows, encrypted())
    with closing(Store(folder, encryption=encrypted())) as store:
        info = backup(store, copy)
        assert verify(store).tables == info.tables
    assert b"planted" not in copy.read_bytes()
    with pytest.raises(StoreKeyError):
        restore(copy, tmp_path / "other")
    with pytest.raises(StoreKeyError):
        restore(copy, tmp_path / "other", encryption=encrypted(OTHER))
    assert restore(copy, tmp_path / "other", encryption=encrypted()).tables == info.tables
    with closing(Store(tmp_path / "other", encryption=encrypted())) as store:
        assert store.get(ACTORS, b"k3") == b"planted 3"


def change(path: Path, edit: Callable[[lmdb.Transaction[bytes], Any], None]) -> None:
    with (
        lmdb.open(os.fspath(path / "greenroom.mdb"), subdir=False, max_dbs=3) as environment,
        environment.begin(write=True) as transaction,
    ):
        edit(transaction, environment.open_db(b"actors", txn=transaction))


@pytest.mark.promise("encryption.sealed")
def test_a_record_that_is_moved_or_replaced_by_one_in_the_clear_is_damage(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    make(folder, {b"a": b"first", b"b": b"second"}, encrypted())
    plain = tmp_path / "plain"
    make(plain, {b"a": b"forged"}, None)
    with closing(Store(plain)) as store:
        assert store.get(ACTORS, b"a") == b"forged"
    forged: list[bytes] = []
    change(plain, lambda transaction, table: forged.append(transaction.get(b"a", db=table) or b""))

    def swap(transaction: lmdb.Transaction[bytes], table: Any) -> None:
        transaction.put(b"b", transaction.get(b"a", db=table) or b"", db=table)

    def forge(transaction: lmdb.Transaction[bytes], table: Any) -> None:
        transaction.put(b"a", forged[0], db=table)

    for edit, key in [(swap, b"b"), (forge, b"a")]:
        copy = tmp_path / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(folder, copy)
        change(copy, edit)
        with closing(Store(copy, encryption=encrypted())) as store, pytest.raises(StoreDamagedError):
            store.get(ACTORS, key)
        with pytest.raises(StoreDamagedError):
            verify(copy, encryption=encrypted())


class MemoryKeyring(keyring.backend.KeyringBackend):
    """A keyring that forgets."""

    priority = 1

    def __init__(self, passwords: dict[tuple[str, str], str]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # has no types
        self.passwords = passwords

    def get_password(self, service: str, username: str) -> str | None:
        if username == "locked":
            raise keyring.errors.KeyringLocked("nobody unlocks it")
        return self.passwords.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self.passwords[service, username] = password


@pytest.mark.promise("encryption.sources")
def test_a_key_comes_from_the_keyring(monkeypatch: pytest.MonkeyPatch) -> None:
    before = keyring.get_keyring()
    keyring.set_keyring(MemoryKeyring({("greenroom", "work"): KEY.hex(), ("greenroom", "bad"): "password"}))
    try:
        assert key_source("keyring:work")() == KEY
        for name, sentence in [("home", "keyring set"), ("bad", "holds no key"), ("locked", "unlocks it")]:
            with pytest.raises(StoreKeyError, match=sentence):
                key_source(f"keyring:{name}")()
    finally:
        keyring.set_keyring(before)
    monkeypatch.setitem(sys.modules, "keyring", None)
    with pytest.raises(StoreKeyError, match=r"greenroom\[keyring\]"):
        key_source("keyring:work")()
