"""What `greenroom repair` saves of a damaged store, and what it says is missing."""

from __future__ import annotations

import json
import random
import shutil
from contextlib import closing
from struct import Struct
from typing import TYPE_CHECKING, Any

import pytest
from core.test_keys_process import create, keys
from runtime.test_damage import names, rot
from support import planted
from support.commands import run, run_on_store, sentence, serving

from bench.damaging import KINDS, PAGE, rewrite
from greenroom.actors import Agent, CreateSession, GetSession, open_greenroom, repair_greenroom
from greenroom.actors.core.auth.namespaces import memory_address, tag_of_root
from greenroom.runtime import Address, Encryption, restore
from greenroom.runtime.lmdb.keys import address_tag, row_key
from greenroom.runtime.store.page_proofs import Prover

if TYPE_CHECKING:
    from pathlib import Path

    from greenroom.runtime.lmdb.pages import Head
    from greenroom.runtime.store.page_proofs import Tree

pytestmark = pytest.mark.slow

SESSIONS = 8
MESSAGES = 10
HEADER, LEAF = Struct("=10xHH2x"), 2  # of a page: its flags, and where the places of its rows end
PLACE, NODE = Struct("=H"), 8  # what stands before a row's key has so many bytes


def fill(home: Path) -> None:
    """Make a store of some sessions and memories, and close it in order."""
    with serving(home) as server:
        for number in range(SESSIONS):
            name = f"session-{number}"
            server.call("create_session", purpose=f"purpose of {name}", session_id=name)
            for message in range(MESSAGES):
                text = f"message {message} of {name} " + "x" * 300
                server.call("add_message", session_id=name, content=text)
        server.call("set_memory", key="kept", value="the value")
        assert server.end() == 0


def read(home: Path) -> dict[str, Any]:
    """Return what a store answers, by session; the code where it refuses."""
    found: dict[str, Any] = {}
    with serving(home) as server:
        for number in range(SESSIONS):
            name = f"session-{number}"
            server.send_call("get_messages", session_id=name, limit=1_000)
            result = server.receive()["result"]
            answer = json.loads(result["content"][0]["text"])
            found[name] = (
                answer["code"] if "code" in answer else [each["content"] for each in answer["messages"]]
            )
        listed = server.call("list_sessions", limit=100)["sessions"]
        found["listed"] = sorted(each["session_id"] for each in listed)
        assert server.end() == 0
    return found


def repaired(home: Path, code: int = 65) -> dict[str, Any]:
    """Repair a store, and have what was saved take its place; return what is said of it."""
    destination = home / "saved"
    done = run_on_store(home, "repair", str(destination), "--json")
    assert done.returncode == code, done.stderr
    restored = run_on_store(home, "restore", str(destination))
    assert restored.returncode == 0, restored.stderr
    said: dict[str, Any] = json.loads(done.stdout)
    return said


@pytest.mark.promise("store.repair")
def test_what_is_sound_is_saved_and_what_is_not_is_left_out_by_name(tmp_path: Path) -> None:
    fill(tmp_path)
    truth = read(tmp_path)
    data = tmp_path / "store" / "greenroom.mdb"
    rot(data, b"message 5 of session-7 ")
    before = data.read_bytes()
    assert run_on_store(tmp_path, "verify").returncode == 65
    shown = run_on_store(tmp_path, "repair", str(tmp_path / "shown"))
    assert shown.returncode == 65
    assert "left out: session/session-7/message " in shown.stdout
    assert "set aside" not in shown.stdout
    assert "one row cannot be read" in shown.stdout
    assert "`greenroom restore " in shown.stdout
    assert data.read_bytes() == before
    assert run_on_store(tmp_path, "verify").returncode == 65, "the store itself is as damaged as it was"
    said = repaired(tmp_path)
    assert said["missing_rows"] == 1
    assert (said["set_aside"], said["mended"]) == ([], [])
    assert [name.rpartition(" ")[0] for name in said["left_out"]] == ["session/session-7/message"]
    assert len(said["ranges"]) == 1
    assert "session-7" in said["ranges"][0]["start"]
    assert run_on_store(tmp_path, "verify").returncode == 0
    assert read(tmp_path) == truth | {"session-7": without(truth["session-7"], 5)}
    with serving(tmp_path) as server:
        assert server.call("get_memory", key="kept")["value"] == "the value"


def without(messages: list[str], number: int) -> list[str]:
    """Return messages without that of a number."""
    return [each for each in messages if not each.startswith(f"message {number} ")]


def rot_row(path: Path, index: str, sort_key: bytes, address: Address) -> None:
    """Change what a row of a shared index says, wherever it is in a file."""
    content = bytearray(path.read_bytes())
    key = row_key(index, sort_key, address_tag(address))
    assert key in content
    at = -1
    while (at := content.find(key, at + 1)) >= 0:
        start = at - at % PAGE
        if is_key_of_leaf(bytes(content[start : start + PAGE]), at % PAGE):
            content[at + len(key) + 8] ^= 1
    rewrite(path, bytes(content))


def is_key_of_leaf(page: bytes, at: int) -> bool:
    """Return whether the key of a row begins there: a page may still have what it has lost."""
    flags, lower = HEADER.unpack_from(page)
    if not flags & LEAF:
        return False
    return any(NODE + place == at for (place,) in PLACE.iter_unpack(page[HEADER.size : lower]))


@pytest.mark.quick
@pytest.mark.promise("store.repair", "store.restated")
def test_rows_of_indexes_that_are_lost_are_written_again(tmp_path: Path) -> None:
    fill(tmp_path)
    with serving(tmp_path) as server:
        server.call("store_memory", value="a heron at the pond", namespace="birds:herons")
        assert server.end() == 0
    truth = read(tmp_path)
    data = tmp_path / "store" / "greenroom.mdb"
    rot_row(data, "sessions", b"b", Address("session", "session-3"))
    rot_row(data, "sessions", b"ppublic", Address("session", "session-4"))
    rot_row(data, "namespaces", tag_of_root("birds:herons"), memory_address("birds:herons"))
    said = repaired(tmp_path)
    assert (said["missing_rows"], said["set_aside"], said["restating"]) == (3, [], SESSIONS + 2)
    assert read(tmp_path) == truth
    with serving(tmp_path) as server:
        found = server.call("memory_search", query="heron at the pond")["memories"]
        assert "birds:herons" in {each["namespace"] for each in found}


def zero(path: Path, *pages: int) -> None:
    """Make pages nothing but zeros."""
    content = bytearray(path.read_bytes())
    for page in pages:
        content[PAGE * page : PAGE * (page + 1)] = bytes(PAGE)
    rewrite(path, bytes(content))


def pages_of(path: Path) -> tuple[Tree, Head]:
    """Return the table of actors' records, and the head that leads to it."""
    with closing(Prover(path, None)) as prover:
        return prover.trees()[0], max(prover.heads())


@pytest.mark.promise("store.repair", "store.orphans")
def test_without_the_topmost_page_of_a_table_its_leaves_are_found(tmp_path: Path) -> None:
    fill(tmp_path)
    truth = read(tmp_path)
    data = tmp_path / "store" / "greenroom.mdb"
    tree, _ = pages_of(data)
    assert tree.depth > 1
    zero(data, tree.root)
    said = repaired(tmp_path, 0)
    assert (said["missing_rows"], said["ranges"], said["set_aside"]) == (0, [], [])
    assert read(tmp_path) == truth


@pytest.mark.promise("store.repair", "store.orphans")
def test_where_a_leaf_is_lost_as_well_what_was_on_it_is_left_out(tmp_path: Path) -> None:
    fill(tmp_path)
    truth = read(tmp_path)
    data = tmp_path / "store" / "greenroom.mdb"
    tree, _ = pages_of(data)
    with closing(Prover(data, None)) as prover:
        prover.heads()
        leaves = prover.page(tree.root).values
        holding = [
            leaf
            for leaf in leaves
            if isinstance(leaf, int) and b"\0session-3\0" in b"".join(prover.page(leaf).keys)
        ]
    zero(data, tree.root, holding[1])
    said = repaired(tmp_path)
    assert any(name.startswith("session/session-3") for name in [*said["left_out"], *said["set_aside"]])
    found = read(tmp_path)
    lost = {name for name, answer in found.items() if name != "listed" and answer == "SESSION_NOT_FOUND"}
    assert {f"session/{name}" for name in lost} <= set(said["set_aside"])
    assert set(found["listed"]) == set(truth["listed"]) - lost
    partly = {name for name in set(truth) - lost - {"listed"} if found[name] != truth[name]}
    assert partly
    assert all(set(found[name]) < set(truth[name]) for name in partly)
    assert partly <= {name.split("/")[1] for name in said["left_out"]}


@pytest.mark.quick
@pytest.mark.promise("store.repair", "store.orphans")
def test_nothing_comes_back_where_free_pages_cannot_be_told(tmp_path: Path) -> None:
    fill(tmp_path)
    data = tmp_path / "store" / "greenroom.mdb"
    tree, head = pages_of(data)
    zero(data, tree.root, head.free_root)
    repaired(tmp_path)
    found = read(tmp_path)
    assert found.pop("listed") == []
    assert set(found.values()) == {"SESSION_NOT_FOUND"}


@pytest.mark.promise("store.repair", "store.rerooted")
def test_without_the_table_of_tables_the_tables_are_found(tmp_path: Path) -> None:
    fill(tmp_path)
    truth = read(tmp_path)
    data = tmp_path / "store" / "greenroom.mdb"
    _, head = pages_of(data)
    rot(data, b"message 5 of session-7 ")
    zero(data, head.root)
    said = repaired(tmp_path)
    assert (said["set_aside"], len(said["left_out"])) == ([], 1)
    assert read(tmp_path) == truth | {"session-7": without(truth["session-7"], 5)}


@pytest.mark.quick
@pytest.mark.promise("store.rerooted")
def test_tables_that_cannot_be_told_for_certain_are_not_guessed(tmp_path: Path) -> None:
    fill(tmp_path)
    data = tmp_path / "store" / "greenroom.mdb"
    tree, head = pages_of(data)
    zero(data, head.root, tree.root)
    done = run_on_store(tmp_path, "repair", str(tmp_path / "saved"))
    assert done.returncode == 65
    assert "nothing can be saved" in sentence(done)
    assert not (tmp_path / "saved").exists()


@pytest.mark.promise("store.repair", "store.orphans")
def test_what_was_forgotten_is_not_found_on_a_free_page(tmp_path: Path) -> None:
    fill(tmp_path)
    with serving(tmp_path) as server:
        for number in range(40):
            server.call("set_memory", key=f"secret-{number}", value=f"the secret {number} of mine")
        for number in range(40):
            server.call("delete_memory", key=f"secret-{number}")
        assert server.end() == 0
    data = tmp_path / "store" / "greenroom.mdb"
    assert b" of mine" in data.read_bytes(), "a free page still has some"
    tree, _ = pages_of(data)
    zero(data, tree.root)
    repaired(tmp_path, 0)
    assert b" of mine" not in data.read_bytes()
    with serving(tmp_path) as server:
        assert server.call("list_memory")["count"] == 1


@pytest.mark.promise("store.repair", "audit.records")
def test_the_new_store_knows_that_it_was_repaired(tmp_path: Path) -> None:
    fill(tmp_path)
    rot(tmp_path / "store" / "greenroom.mdb", b"message 5 of session-7 ")
    said = repaired(tmp_path)
    lines = run_on_store(tmp_path, "audit", "tail", "--json", "--lines", "1000").stdout.splitlines()
    (record,) = [each for each in map(json.loads, lines) if each["action"] == "repair_store"]
    details = record["details"]
    assert details.pop("repaired_at") > 0
    counts = {"missing_rows": 1, "ranges": len(said["ranges"])}
    assert details == counts | {"set_aside": 0, "mended": 0, "left_out": 1}


@pytest.mark.promise("store.repair")
def test_of_a_sound_store_nothing_is_missing(tmp_path: Path) -> None:
    fill(tmp_path)
    truth = read(tmp_path)
    said = repaired(tmp_path, 0)
    assert (said["missing_rows"], said["ranges"], said["set_aside"]) == (0, [], [])
    assert read(tmp_path) == truth


@pytest.mark.promise("store.repair")
def test_whatever_happened_to_a_store_what_was_saved_is_sound_and_true(tmp_path: Path) -> None:
    fill(tmp_path)
    truth = read(tmp_path)
    data, lock = tmp_path / "store" / "greenroom.mdb", tmp_path / "store" / "owner.lock"
    sound, left = data.read_bytes(), lock.read_bytes()
    chance = random.Random(11)  # noqa: S311
    saved = 0
    for number in range(5):
        content = bytearray(sound)
        KINDS[number % len(KINDS)](content, chance)
        rewrite(data, bytes(content))
        lock.write_bytes(left)
        home = tmp_path / f"home-{number}"
        destination = tmp_path / f"saved-{number}"
        done = run_on_store(tmp_path, "repair", str(destination), "--json")
        if not destination.exists():
            assert done.returncode == 65, done.stderr
            assert "nothing can be saved" in sentence(done)
            continue
        home.mkdir()
        (home / ".local").mkdir()
        shutil.copytree(tmp_path / ".config", home / ".config")  # a repair may mark keys that it lost
        assert run(home, "restore", str(destination), "--data", str(home / "store")).returncode == 0
        said = json.loads(done.stdout)
        saved += 1
        found = read(home)
        for name, answer in found.items():
            if answer == truth[name]:
                continue
            assert done.returncode == 65
            if answer == "SESSION_NOT_FOUND":
                assert f"session/{name}" in said["set_aside"] or said["ranges"]
            else:
                assert set(answer) < set(truth[name])
    assert saved > 1


@pytest.mark.promise("store.repair")
def test_a_destination_that_exists_and_a_store_in_use_are_left_alone(tmp_path: Path) -> None:
    with serving(tmp_path):
        done = run_on_store(tmp_path, "repair", str(tmp_path / "saved"))
        assert done.returncode == 75
    (tmp_path / "saved").write_text("mine")
    done = run_on_store(tmp_path, "repair", str(tmp_path / "saved"))
    assert done.returncode == 73
    assert "not overwritten" in sentence(done)
    assert (tmp_path / "saved").read_text() == "mine"
    assert names(tmp_path / "store") >= {"greenroom.mdb"}


@pytest.mark.promise("store.repair")
@pytest.mark.parametrize("lost", [1, 2])
def test_of_keys_that_may_lack_one_none_opens_anything(tmp_path: Path, lost: int) -> None:
    made = sorted(create(tmp_path)["key"]["key_id"] for _ in range(2))  # so that keys that change still rise
    data = tmp_path / "store" / "greenroom.mdb"
    for key_id in made[:lost]:
        rot(data, b"\0uk" + key_id.encode())
    said = repaired(tmp_path)
    assert said["mended"] == ["keys/all"]
    assert "keys/all" not in said["set_aside"]
    listed = {each["key_id"]: each["status"] for each in json.loads(keys(tmp_path, "list", "--json"))["keys"]}
    assert listed == dict.fromkeys(made[lost:] or ["lost"], "revoked")


@pytest.mark.promise("store.repair")
def test_what_had_ended_has_ended_in_what_was_saved(tmp_path: Path) -> None:
    revoked = create(tmp_path)["key"]["key_id"]
    kept = create(tmp_path)["key"]["key_id"]
    data = tmp_path / "store" / "greenroom.mdb"
    before = data.read_bytes()
    keys(tmp_path, "revoke", revoked)
    data.write_bytes(before)  # what a store is that lost a commit: all of it is sound
    repaired(tmp_path, 0)
    listed = {each["key_id"]: each["status"] for each in json.loads(keys(tmp_path, "list", "--json"))["keys"]}
    assert listed == {revoked: "revoked", kept: "active"}


KEY = Encryption(lambda: bytes(range(32)), required=True)


@pytest.mark.promise("store.repair")
async def test_an_encrypted_store_is_saved_as_one(tmp_path: Path) -> None:
    async with open_greenroom(tmp_path / "data", secrets=tmp_path / "secrets", encryption=KEY) as runtime:
        await planted.live(runtime)
        await Agent(runtime, planted.BOB).ask(CreateSession(session_id="mine", purpose="to be kept"))
    data = tmp_path / "data" / "greenroom.mdb"
    content = bytearray(data.read_bytes())
    chance = random.Random(5)  # noqa: S311
    said = None
    while said is None or not (said.set_aside or said.left_out):
        content[chance.randrange(len(content) // 4, len(content))] ^= 4
        rewrite(data, bytes(content))
        (tmp_path / "saved").unlink(missing_ok=True)
        said = repair_greenroom(tmp_path / "data", tmp_path / "saved", encryption=KEY, now=1)
    assert said.missing_rows > 0
    restore(tmp_path / "saved", tmp_path / "other", encryption=KEY, secrets=tmp_path / "secrets")
    async with open_greenroom(tmp_path / "other", secrets=tmp_path / "secrets", encryption=KEY) as runtime:
        sessions = {"session/mine", f"session/{planted.SESSION}"} - set(said.set_aside)
        for address in sessions:
            name = address.partition("/")[2]
            found = await Agent(runtime, planted.ALICE).ask(GetSession(session_id=name))
            assert found.session.session_id == name
