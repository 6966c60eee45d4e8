"""A store's secret carried to another machine: encrypted, in a file of its own."""

from __future__ import annotations

import json
import os
import unicodedata
from pathlib import Path

import pytest
from support.commands import run, run_on_store, sentence, serving
from support.programs import running

WORDS = "correct horse battery"


def key_of(home: Path) -> Path:
    (found,) = home.rglob("*.key")
    return found


def export(home: Path, file: Path, words: str = WORDS) -> None:
    done = run_on_store(home, "secret", "export", str(file), GREENROOM_PASSPHRASE=words)
    assert done.returncode == 0, done.stderr


@pytest.fixture
def old(tmp_path: Path) -> Path:
    home = tmp_path / "old"
    home.mkdir()
    assert run_on_store(home, "keys", "create", "--name", "laptop").returncode == 0
    return home


@pytest.fixture
def new(tmp_path: Path) -> Path:
    home = tmp_path / "new"
    home.mkdir()
    return home


@pytest.mark.quick
@pytest.mark.promise("secrets.carried")
def test_a_store_moves_with_a_backup_and_its_secret(old: Path, new: Path, tmp_path: Path) -> None:
    copy, file = tmp_path / "copy.mdb", tmp_path / "secret"
    gone = json.loads(run_on_store(old, "keys", "create", "--json", "--name", "gone").stdout)["key"]["key_id"]
    assert run_on_store(old, "backup", str(copy)).returncode == 0
    assert run_on_store(old, "keys", "revoke", gone).returncode == 0  # after the backup
    export(old, file)
    secret = key_of(old).read_bytes().strip()
    assert file.stat().st_mode & 0o777 == 0o600
    for place in (copy, file):
        assert secret not in place.read_bytes()
        assert bytes.fromhex(secret.decode()) not in place.read_bytes()

    brought = run(new, "secret", "import", str(file), GREENROOM_PASSPHRASE=WORDS)
    assert brought.returncode == 0, brought.stderr
    assert "is now the secret" in brought.stdout
    assert key_of(new).read_bytes().strip() == secret
    assert key_of(new).stat().st_mode & 0o777 == 0o600
    assert "secret is not here" not in run_on_store(new, "restore", str(copy)).stdout
    listed = json.loads(run_on_store(new, "keys", "list", "--json").stdout)["keys"]
    assert {each["name"]: each["status"] for each in listed} == {"laptop": "active", "gone": "revoked"}
    with serving(new) as server:
        assert server.end() == 0
    actions = run_on_store(old, "audit", "tail").stdout
    assert "export_secret" in actions
    again = run(new, "secret", "import", str(file), GREENROOM_PASSPHRASE=WORDS)
    assert "was already the secret" in again.stdout


def listed(home: Path) -> dict[str, str]:
    keys = json.loads(run_on_store(home, "keys", "list", "--json").stdout)["keys"]
    return {each["name"]: each["status"] for each in keys}


def revoke(home: Path, name: str) -> None:
    keys = json.loads(run_on_store(home, "keys", "list", "--json").stdout)["keys"]
    (key,) = [each["key_id"] for each in keys if each["name"] == name]
    assert run_on_store(home, "keys", "revoke", key).returncode == 0


def bring(home: Path, file: Path) -> str:
    done = run_on_store(home, "secret", "import", str(file), GREENROOM_PASSPHRASE=WORDS)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


@pytest.mark.promise("secrets.carried")
def test_what_ended_on_either_machine_stays_so_after_a_second_import(
    old: Path, new: Path, tmp_path: Path
) -> None:
    copy, files = tmp_path / "copy.mdb", [tmp_path / "first", tmp_path / "second"]
    for name in ("here", "there"):
        assert run_on_store(old, "keys", "create", "--name", name).returncode == 0
    assert run_on_store(old, "backup", str(copy)).returncode == 0
    export(old, files[0])
    bring(new, files[0])
    assert run_on_store(new, "restore", str(copy)).returncode == 0
    revoke(new, "there")
    revoke(old, "here")
    export(old, files[1])
    assert ".lasting was here" not in bring(new, files[1])
    ended = {"laptop": "active", "here": "revoked", "there": "revoked"}
    assert listed(new) == ended
    assert run_on_store(new, "restore", str(copy)).returncode == 0
    assert listed(new) == ended
    before = [path.read_bytes() for path in new.rglob("*.lasting")]
    bring(new, files[0])  # an older one has nothing new
    assert [path.read_bytes() for path in new.rglob("*.lasting")] == before


def test_a_list_gets_no_lines_while_a_server_uses_it(old: Path, new: Path, tmp_path: Path) -> None:
    copy, files = tmp_path / "copy.mdb", [tmp_path / "first", tmp_path / "second"]
    assert run_on_store(old, "backup", str(copy)).returncode == 0
    export(old, files[0])
    bring(new, files[0])
    assert run_on_store(new, "restore", str(copy)).returncode == 0
    revoke(old, "laptop")
    export(old, files[1])
    with serving(new) as server:
        done = run_on_store(new, "secret", "import", str(files[1]), GREENROOM_PASSPHRASE=WORDS)
        assert "needs a stopped store" in sentence(done)
        bring(new, files[0])
        assert server.end() == 0
    bring(new, files[1])
    assert listed(new) == {"laptop": "revoked"}


def test_former_secrets_are_carried_for_the_audit_log(old: Path, new: Path, tmp_path: Path) -> None:
    assert run_on_store(old, "secret", "renew").returncode == 0
    (former,) = old.rglob("*.old")
    export(old, tmp_path / "secret")
    bring(new, tmp_path / "secret")
    (brought,) = new.rglob("*.old")
    assert (brought.name, brought.read_bytes()) == (former.name, former.read_bytes())
    assert brought.stat().st_mode & 0o777 == 0o600


def test_an_empty_file_counts_as_no_secret(old: Path, new: Path, tmp_path: Path) -> None:
    export(old, tmp_path / "secret")
    bring(new, tmp_path / "secret")
    key_of(new).write_bytes(b"")
    assert "is now the secret" in bring(new, tmp_path / "secret")
    assert key_of(new).read_bytes() == key_of(old).read_bytes()
    assert len(list(key_of(new).parent.glob(".*"))) == 0


def test_a_wrong_passphrase_or_a_changed_file_brings_nothing(old: Path, new: Path, tmp_path: Path) -> None:
    file = tmp_path / "secret"
    export(old, file)
    said = sentence(run(new, "secret", "import", str(file), GREENROOM_PASSPHRASE=WORDS[1:]))
    assert "passphrase is not the one of the file" in said
    sealed = json.loads(file.read_text())
    for name, value in (
        ("mark", "00"),
        ("store_id", "11"),
        ("version", 2),
        ("store_id", "../x"),
        ("data", "AAAA"),
    ):
        other = tmp_path / f"changed-{name}"
        other.write_text(json.dumps(sealed | {name: value}))
        said = sentence(run(new, "secret", "import", str(other), GREENROOM_PASSPHRASE=WORDS))
        assert "the file was changed" in said or "none that" in said
    (tmp_path / "noise").write_bytes(b"\xff\x00")
    said = sentence(run(new, "secret", "import", str(tmp_path / "noise"), GREENROOM_PASSPHRASE=WORDS))
    assert "none that `greenroom secret export` made" in said
    assert not list(new.rglob("*.key"))


def test_another_secret_of_the_store_is_not_replaced(old: Path, tmp_path: Path) -> None:
    file = tmp_path / "secret"
    export(old, file)
    assert run_on_store(old, "secret", "renew").returncode == 0
    before = key_of(old).read_bytes()
    said = sentence(run(old, "secret", "import", str(file), GREENROOM_PASSPHRASE=WORDS))
    assert "another secret of this store" in said
    assert key_of(old).read_bytes() == before


def test_nothing_is_exported_without_a_good_passphrase(old: Path, new: Path, tmp_path: Path) -> None:
    file = tmp_path / "secret"
    assert "GREENROOM_PASSPHRASE, or from a terminal" in sentence(
        run_on_store(old, "secret", "export", str(file))
    )
    short = run_on_store(old, "secret", "export", str(file), GREENROOM_PASSPHRASE=WORDS[:5])
    assert "has 5 characters, and 8 are needed" in sentence(short)
    assert not file.exists()
    file.write_text("mine")
    taken = run_on_store(old, "secret", "export", str(file), GREENROOM_PASSPHRASE=WORDS)
    assert "not overwritten" in sentence(taken)
    assert file.read_text() == "mine"
    nothing = run_on_store(new, "secret", "export", str(tmp_path / "none"), GREENROOM_PASSPHRASE=WORDS)
    assert "there is no store" in sentence(nothing)
    missing = run(new, "secret", "import", str(tmp_path / "none"), GREENROOM_PASSPHRASE=WORDS)
    assert "cannot be read" in sentence(missing)


async def test_the_passphrase_is_asked_for_twice_and_not_shown(old: Path, tmp_path: Path) -> None:
    file = tmp_path / "one"
    for again, code in (("something else", 1), (WORDS, 0)):
        command = ("secret", "export", str(file), "--data", str(old / "store"))
        async with running(old, *command, terminal=True, keyboard=True) as asked:
            await asked.until("Passphrase: ")
            await asked.press(f"{WORDS}\n")
            await asked.until("Again: ")
            await asked.press(f"{again}\n")
            assert await asked.end() == code
            assert ("the passphrases differ" in asked.printed) == bool(code)
            assert WORDS not in asked.printed
        assert file.exists() != bool(code)


async def test_the_end_of_what_is_typed_is_told_in_a_sentence(old: Path, tmp_path: Path) -> None:
    file = tmp_path / "one"
    command = ("secret", "export", str(file), "--data", str(old / "store"))
    async with running(old, *command, terminal=True, keyboard=True) as asked:
        await asked.until("Passphrase: ")
        await asked.press(f"{WORDS}\n")
        await asked.until("Again: ")
        await asked.press("\4")  # Ctrl-D
        assert await asked.end() == 1
        assert "was not given; nothing was done" in asked.printed
        assert "Traceback" not in asked.printed
    assert not file.exists()


def test_a_passphrase_that_is_no_text_is_refused_before_the_record(old: Path, tmp_path: Path) -> None:
    words = os.fsdecode(b"caf\xe9 au lait")
    done = run_on_store(old, "secret", "export", str(tmp_path / "one"), GREENROOM_PASSPHRASE=words)
    assert "the passphrase is not UTF-8; nothing was done" in sentence(done)
    assert "export_secret" not in run_on_store(old, "audit", "tail").stdout


def test_a_passphrase_opens_however_its_letters_are_composed(old: Path, new: Path, tmp_path: Path) -> None:
    words = "caf\u00e9 au lait"
    export(old, tmp_path / "one", words)
    apart = unicodedata.normalize("NFD", words)
    assert apart != words
    done = run(new, "secret", "import", str(tmp_path / "one"), GREENROOM_PASSPHRASE=apart)
    assert done.returncode == 0, done.stderr
