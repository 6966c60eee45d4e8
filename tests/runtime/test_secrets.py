"""The secret of a store: made once, kept beside it, the same for all its processes, and seen by nobody."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
import trio
from support.actors import Add
from support.commands import run, run_on_store, serving

from greenroom.actors import Agent, CreateApiKey, ListApiKeys, Principal, open_greenroom
from greenroom.runtime import Address, Secret, StoreError
from greenroom.runtime.journal.secrets import find_secret, make_secret, read_secret

if TYPE_CHECKING:
    from pathlib import Path

    from support.asking import Open
    from support.relays import Join

ROOT = bytes(range(32))


def test_keys_of_purposes_follow_rfc_5869() -> None:
    from cryptography.hazmat.primitives.hashes import SHA256  # noqa: PLC0415 - the reference, used here alone
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF  # noqa: PLC0415

    def reference(purpose: str) -> bytes:
        return HKDF(SHA256(), 32, salt=b"greenroom", info=purpose.encode()).derive(ROOT)

    secret = Secret(ROOT)
    assert secret.derive("audit") == reference("audit")
    assert secret.derive("audit") != secret.derive("keys")
    assert secret.derive("") == reference("")


def test_a_secret_does_not_show_itself() -> None:
    secret = Secret(ROOT)
    shown = f"{secret!r} {secret} {secret.mark}"
    for bare in (ROOT, secret.derive("audit"), secret._root):
        assert bare.hex() not in shown
        assert repr(bare) not in shown


def test_a_secret_is_32_bytes() -> None:
    with pytest.raises(ValueError, match="32 bytes"):
        Secret(b"short")


def test_a_new_secret_is_for_its_owner_only_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        made = make_secret(tmp_path / "a" / "b", "0011")
    finally:
        os.umask(before)
    path = tmp_path / "a" / "b" / "0011.key"
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert [each.name for each in path.parent.iterdir()] == ["0011.key"]
    assert read_secret(path).mark == made.mark


def test_of_several_that_make_it_at_once_all_get_one(tmp_path: Path) -> None:
    with ThreadPoolExecutor(16) as pool:
        made = list(pool.map(lambda _: make_secret(tmp_path / "secrets", "0011").mark, range(64)))
    assert len(set(made)) == 1


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o602, 0o666])
def test_a_secret_that_others_reach_is_refused(tmp_path: Path, mode: int) -> None:
    make_secret(tmp_path, "0011")
    (tmp_path / "0011.key").chmod(mode)
    with pytest.raises(StoreError, match=r"chmod 600"):
        find_secret([tmp_path], "0011", "")


@pytest.mark.quick
@pytest.mark.promise("secrets.folder")
@pytest.mark.parametrize("mode", [0o770, 0o702, 0o777, 0o1777])
def test_a_folder_of_secrets_that_others_may_write_is_refused(tmp_path: Path, mode: int) -> None:
    where = tmp_path / "secrets"
    for made in (False, True):
        where.mkdir(exist_ok=True)
        if made:
            where.chmod(0o700)
            make_secret(where, "0011")
        where.chmod(mode)
        with pytest.raises(StoreError, match=rf"chmod 700 {where}"):
            find_secret([where], "0011", "")
        assert len(list(where.iterdir())) == made
    where.chmod(0o755)  # who may only look may not change anything
    assert find_secret([where], "0011", "").path == where / "0011.key"


@pytest.mark.promise("secrets.folder")
def test_a_server_whose_secrets_others_may_replace_does_not_start(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        assert server.end() == 0
    (key,) = tmp_path.rglob("*.key")
    key.parent.chmod(0o777)
    done = run_on_store(tmp_path, "serve")
    assert done.returncode != 0
    assert f"chmod 700 {key.parent}" in done.stderr


@pytest.mark.parametrize("content", [b"", b"00" * 31, b"00" * 33, b"zz" * 32, b"\xff" * 64, b"00" * 100_000])
def test_a_file_that_is_no_secret_is_not_quoted(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "0011.key"
    path.touch(0o600)
    path.write_bytes(content)
    with pytest.raises(StoreError, match="hexadecimal") as raised:
        find_secret([tmp_path], "0011", "")
    assert raised.value.__cause__ is None
    assert "zz" not in str(raised.value)


def test_a_lost_secret_is_not_replaced_in_silence(tmp_path: Path) -> None:
    mark = make_secret(tmp_path / "old", "0011").mark
    with pytest.raises(StoreError, match=f"{mark}.*greenroom secret renew"):
        find_secret([tmp_path / "new"], "0011", mark)
    assert not (tmp_path / "new").exists()


def test_another_stores_secret_is_not_taken(tmp_path: Path) -> None:
    mark = make_secret(tmp_path / "one", "0011").mark
    other = make_secret(tmp_path / "two", "0011").mark
    with pytest.raises(StoreError, match=f"{mark}.*{other}"):
        find_secret([tmp_path / "two"], "0011", mark)
    assert find_secret([tmp_path / "two", tmp_path / "one"], "0011", mark).mark == mark


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="--secrets"):
        find_secret([tmp_path / "file" / "secrets"], "0011", "")


@pytest.mark.quick
@pytest.mark.promise("secrets.beside-the-store")
async def test_the_secret_stays_with_the_store_and_is_not_in_it(
    reopen: Open, folder: Path, tmp_path: Path
) -> None:
    async with reopen(secrets=tmp_path / "secrets") as runtime:
        await runtime.ask(Address("counter", "a"), Add(by=1))
        key = runtime.derive("purpose")
    async with reopen(secrets=tmp_path / "secrets") as runtime:
        assert runtime.derive("purpose") == key
    (path,) = (tmp_path / "secrets").glob("*.key")
    secret = path.read_text().strip()
    raw = (folder / "greenroom.mdb").read_bytes()
    assert path.stem.encode() in raw
    for bare in (secret.encode(), bytes.fromhex(secret), key):
        assert bare not in raw
    with pytest.raises(StoreError, match="was used with a secret"):
        async with reopen(secrets=tmp_path / "elsewhere"):
            pass


async def test_without_a_secret_there_are_no_keys(reopen: Open) -> None:
    async with reopen() as runtime:
        with pytest.raises(StoreError, match="without a secret"):
            runtime.derive("purpose")


@pytest.mark.quick
@pytest.mark.promise("secrets.one-for-all-processes")
async def test_every_process_on_a_folder_has_the_same_keys(join: Join, tmp_path: Path) -> None:
    async with join(secrets=tmp_path / "secrets") as owner:
        async with join(secrets=tmp_path / "secrets") as attached:
            assert attached.role == "attached"
            assert attached.derive("purpose") == owner.derive("purpose")
        with pytest.raises(StoreError, match="was used with a secret"):
            async with join(secrets=tmp_path / "elsewhere"):
                await trio.sleep_forever()


def test_a_server_keeps_the_secret_among_what_is_configured(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        created = server.call("create_session", purpose="somewhere to talk")
        assert server.end() == 0
    keys = list(tmp_path.rglob("*.key"))
    assert len(keys) == 1
    assert not keys[0].is_relative_to(tmp_path / "store")
    secret = keys[0].read_text().strip()
    for path in tmp_path.rglob("*"):
        if path.is_file() and path not in keys:
            assert secret.encode() not in path.read_bytes()
    done = run(tmp_path, "config", "--data", str(tmp_path / "store"))
    assert "secrets" in done.stdout
    keys[0].unlink()
    done = run(tmp_path, "serve", "--data", str(tmp_path / "store"))
    assert done.returncode != 0
    assert "greenroom secret renew" in done.stderr
    assert created["session_id"] not in done.stderr


@pytest.mark.promise("secrets.beside-the-store")
def test_a_backup_is_restored_where_its_secret_is_not_and_says_what_that_costs(tmp_path: Path) -> None:
    copy = str(tmp_path / "copy")
    with serving(tmp_path) as server:
        server.call("create_session", purpose="somewhere to talk")
        assert server.end() == 0
    assert run_on_store(tmp_path, "backup", str(tmp_path / "keyless")).returncode == 0
    assert run_on_store(tmp_path, "keys", "create").returncode == 0
    assert run_on_store(tmp_path, "backup", copy).returncode == 0
    here = run_on_store(tmp_path, "restore", copy)
    assert here.returncode == 0
    assert "secret is not here" not in here.stdout
    other = tmp_path / "another machine"
    other.mkdir()
    there = run_on_store(other, "restore", copy)
    assert there.returncode == 0, there.stderr
    assert "the store's secret is not here" in there.stdout
    for command in (["serve"], ["keys", "list"], ["keys", "create"]):
        done = run_on_store(other, *command)
        assert (done.returncode, done.stdout) == (73, "")
        assert "serve --new-secret" in done.stderr
    assert not list(other.rglob("*.key"))
    third = tmp_path / "third machine"
    third.mkdir()
    assert (
        "no API key or passport needs it" in run_on_store(third, "restore", str(tmp_path / "keyless")).stdout
    )
    assert run_on_store(third, "serve").returncode == 0
    found = run_on_store(other, "doctor")
    assert found.returncode
    assert "greenroom secret import" in found.stdout
    with serving(other, "--new-secret") as server:
        assert server.call("list_sessions")["count"] == 1
        assert server.end() == 0
    assert len(list(other.rglob("*.key"))) == 1
    assert run_on_store(other, "serve").returncode == 0
    assert run_on_store(other, "audit", "tail").stdout.count("replace_secret") == 1
    (made,) = other.rglob("*.key")  # and the way back, when the old secret turns up
    (old,) = (tmp_path / ".config").rglob("*.key")
    made.rename(other / "new")
    old.rename(made)
    assert run_on_store(other, "restore", copy).returncode == 0
    assert run_on_store(other, "keys", "list").stdout.count("active") == 1


async def test_a_store_whose_secret_is_lost_is_opened_in_python_only_if_told(tmp_path: Path) -> None:
    store = tmp_path / "store"
    async with open_greenroom(store, secrets=tmp_path / "old") as runtime:
        first = runtime.derive("purpose")
    with pytest.raises(StoreError, match="secret import"):
        async with open_greenroom(store, secrets=tmp_path / "new"):
            pass
    with pytest.raises(TypeError, match="new_secret is 1"):
        open_greenroom(store, new_secret=1)  # type: ignore[arg-type]
    async with open_greenroom(store, secrets=tmp_path / "new", new_secret=True) as runtime:
        second = runtime.derive("purpose")
        assert second != first
    async with open_greenroom(store, secrets=tmp_path / "new") as runtime:
        assert runtime.derive("purpose") == second


@pytest.mark.quick
@pytest.mark.promise("secrets.marks-keys")
async def test_keys_of_another_secret_are_never_called_active(tmp_path: Path) -> None:
    async def keys(place: str, *, new: bool = False, create: str | None = None) -> dict[str, str]:
        opening = open_greenroom(tmp_path / "store", secrets=tmp_path / place, new_secret=new)
        async with opening as runtime:
            agent = Agent(runtime, Principal(agent_id="admin"))
            if create is not None:
                await agent.ask(CreateApiKey(name=create, scopes=["memory:*"]))
            listed = (await agent.ask(ListApiKeys())).keys
            active = (await agent.ask(ListApiKeys(include_ended=False))).keys
        assert [key.name for key in active] == [key.name for key in listed if key.status == "active"]
        return {key.name: key.status for key in listed}

    assert await keys("old", create="one") == {"one": "active"}
    assert await keys("new", new=True) == {"one": "unusable"}
    assert await keys("new", create="two") == {"one": "unusable", "two": "active"}
    (former,) = (tmp_path / "old").glob("*.key")
    before = former.read_bytes()
    mark = read_secret(former).mark
    assert await keys("old", new=True) == {"one": "unusable", "two": "unusable"}
    assert former.with_suffix(f".{mark}.old").read_bytes() == before != former.read_bytes()


def test_a_key_of_a_replaced_secret_is_listed_as_unusable(tmp_path: Path) -> None:
    assert run_on_store(tmp_path, "keys", "create", "--name", "laptop").returncode == 0
    assert run_on_store(tmp_path, "secret", "renew").returncode == 0
    listed = run_on_store(tmp_path, "keys", "list")
    assert "unusable" in listed.stdout
    assert "active" not in listed.stdout
    assert "make new ones" in listed.stderr
    key = listed.stdout.split()[0]
    done = run_on_store(tmp_path, "keys", "rotate", key)
    assert "is unusable, as it was made with another secret" in done.stderr
