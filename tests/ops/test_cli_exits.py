"""The exit codes of `greenroom`, as documented: each is brought about; what only reads makes no store."""

from __future__ import annotations

import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import lmdb
import pytest
from harness import clean_environment
from support.commands import run, run_on_store, sentence, serving
from support.forking import forked_program

from greenroom.transports.base import exit_codes
from greenroom.transports.base.config.settings import all_settings, flag
from greenroom.transports.ops.cli.catalogue import COMMANDS, FAMILIES
from greenroom.transports.ops.cli.parsing import make_parser

REFERENCE = Path(__file__).parent.parent.parent / "docs/reference/settings.md"

MISSING = "/nowhere/at-all"
TRIED_OUT = {
    0: ["config"],
    1: ["top", "--once"],
    2: ["serve", "--max-size", "lots"],
    73: ["stats"],
}
"""Codes that a command on no store ends with."""

CODES_BELOW = {3, 65, 70, 74, 75, 76, 130}
"""Those that a test of their own brings about."""


def test_every_documented_code_is_tried_here() -> None:
    rows = re.findall(r"^\| (\d+) \|", REFERENCE.read_text(), re.MULTILINE)
    assert {int(row) for row in rows} == set(exit_codes.MEANINGS) == TRIED_OUT.keys() | CODES_BELOW


@pytest.mark.promise("cli.exit-codes")
@pytest.mark.parametrize(("code", "arguments"), TRIED_OUT.items())
def test_plain_ends(tmp_path: Path, code: int, arguments: list[str]) -> None:
    assert run_on_store(tmp_path, *arguments).returncode == code
    assert not (tmp_path / "store").exists()


@pytest.mark.promise("cli.exit-codes")
@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["serve", "--ws", "127.0.0.1:0", "--tls-cert", MISSING, "--tls-key", MISSING], 73, "cannot be read"),
        (
            ["serve", "--http", "127.0.0.1:0", "--tls-cert", __file__, "--tls-key", __file__],
            1,
            "no certificate",
        ),
        (["serve", "--embedder", f"onnx:{MISSING}"], 73, "does not exist"),
        (["serve", "--encrypt", "--encryption-key", f"file:{MISSING}"], 73, MISSING),
        (["serve", "--config", MISSING], 2, "--config"),
        (["import", MISSING], 73, "cannot be read: No such file"),
        (["evaluate", MISSING], 73, "cannot be read: No such file"),
        (["restore", MISSING], 73, MISSING),
        (["passport", "show", "--file", MISSING], 73, "cannot be read: No such file"),
    ],
)
def test_a_file_that_is_missing_is_73(tmp_path: Path, arguments: list[str], code: int, said: str) -> None:
    done = run_on_store(tmp_path, *arguments)
    assert (done.returncode, said in sentence(done)) == (code, True), done.stderr


@pytest.mark.promise("cli.exit-codes", "exchange.commands")
@pytest.mark.parametrize(
    ("more", "code", "told"),
    [
        ([], 3, "1 left out; mend them and import the same again"),
        (["--dry-run"], 3, "1 left out; mend them"),
        (["--strict"], 1, "nothing was imported, since"),
    ],
)
def test_an_import_that_leaves_out_records_names_them_and_is_3(
    tmp_path: Path, more: list[str], code: int, told: str
) -> None:
    source = tmp_path / "memory.jsonl"
    source.write_text('{"type":"entity","name":"A\\u001b","observations":["tea"]}\n{"type":"ent')
    done = run_on_store(tmp_path, "import", str(source), *more)
    *_, last = done.stderr.splitlines()
    assert (done.returncode, told in last) == (code, True), done.stderr
    left_out = "" if more == ["--strict"] else "left out: "
    assert f"greenroom import: {source}, line 2: {left_out}this is no JSON: " in done.stderr
    source.write_text('{"type":"ent')
    assert run_on_store(tmp_path, "import", str(source), "--format", "server-memory").returncode == 1


def make_store(home: Path) -> Path:
    """Make a store, stop its server and return the store's file."""
    with serving(home) as server:
        assert server.end() == 0
    (found,) = (home / "store").glob("*.mdb")
    return found


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The home of a stopped store that no test changes."""
    home = tmp_path_factory.mktemp("kept")
    make_store(home)
    return home


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """The file of a stopped store."""
    return make_store(tmp_path)


@pytest.mark.promise("cli.exit-codes")
@pytest.mark.parametrize(
    "arguments",
    [
        ["export", "out.jsonl"],
        ["backup", "copy"],
        ["audit", "export", "--file", "audit.jsonl"],
        ["passport", "export", "--session", "s", "--file", "passport.json"],
    ],
)
def test_a_file_that_is_there_already_is_73_and_stays(
    tmp_path: Path, kept: Path, arguments: list[str]
) -> None:
    there = tmp_path / arguments[-1]
    there.write_text("mine")
    done = run_on_store(kept, *arguments[:-1], str(there))
    assert (done.returncode, str(there) in sentence(done), there.read_text()) == (73, True, "mine")


@pytest.mark.promise("cli.exit-codes", "store.damage")
def test_a_damaged_store_is_65(tmp_path: Path, store: Path) -> None:
    store.write_bytes(b"not a store" * 1_000)
    assert run_on_store(tmp_path, "keys", "list").returncode == 65


@pytest.mark.promise("cli.exit-codes")
def test_a_newer_store_is_76(tmp_path: Path, store: Path) -> None:
    with (
        lmdb.open(str(store), subdir=False, max_dbs=4) as opened,
        opened.begin(write=True) as transaction,
    ):
        transaction.put(b"greenroom.format", b"9999")
    assert run_on_store(tmp_path, "keys", "list").returncode == 76


@pytest.mark.promise("cli.exit-codes")
def test_a_store_in_use_is_75_and_one_that_is_taken_away_74(tmp_path: Path) -> None:
    copy = str(tmp_path / "copy")
    with serving(tmp_path) as server:
        assert run_on_store(tmp_path, "backup", copy).returncode == 0
        assert run_on_store(tmp_path, "restore", copy).returncode == 75
        (tmp_path / "store" / "owner.lock").unlink()
        assert server.process.wait() == 74


FAULTY = """
import os, signal, sys
from greenroom.transports.ops.cli.main import main

class AtImport:
    def find_spec(self, name, path=None, target=None):
        if name == "greenroom.transports.ops.cli.commands.keys":
            WHAT

sys.meta_path.insert(0, AtImport())
sys.exit(main())
"""
RAISES = """import trio
            def run(*_, **__): raise ZeroDivisionError("our own")
            trio.run = run"""


@pytest.mark.promise("cli.exit-codes")
@pytest.mark.parametrize(
    ("what", "code"),
    [
        (RAISES, 70),
        ("os.kill(os.getpid(), signal.SIGINT)", 130),
        ("os.kill(os.getpid(), signal.SIGTERM)", -signal.SIGTERM),  # which a shell tells as 143
    ],
)
def test_a_fault_is_70_and_an_interrupt_130(tmp_path: Path, what: str, code: int) -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            FAULTY.replace("WHAT", what),
            "keys",
            "list",
            "--data",
            str(tmp_path / "store"),
        ],
        capture_output=True,
        text=True,
        env=clean_environment(tmp_path),
        check=False,
    )
    assert (done.returncode, done.stdout) == (code, "")
    assert ("internal fault: ZeroDivisionError: our own" in done.stderr) == (code == 70)


# -- a folder that is mistyped ----------------------------------------------------------


MAKE_ONE = {"serve", "ingest", "import", "restore", "keys create", "passport restore"}
"""Commands whose use on a folder without a store is to have one."""
NEED_NONE = {
    "bridge",
    "secret import",
    "setup",
    "hook",
    "help",
    "demo",
    "config",
    "completion",
    "doctor",
    "passport show",
    "embedder install",
}
ARGUMENTS = {
    "backup": ["copy"],
    "repair": ["saved"],
    "entities define": [__file__],
    "entities add": ["Stripe", "--type", "vendor"],
    "entities remove": ["Stripe"],
    "entities find": ["Stripe"],
    "export": ["-"],
    "evaluate": [__file__],
    "rekey": ["env:KEY", "--encryption-key", "env:KEY"],
    "encrypt": ["--encryption-key", "env:KEY"],
    "secret export": ["secret"],
    "readmit": ["session", "s"],
    "corpora rename": ["docs", "manual"],
    "corpora drop": ["docs"],
    "corpora remove": ["docs", "a.md"],
    "erase": ["--user", "ann"],
    "preferences set": ["theme", "dark"],
    "preferences remove": ["theme"],
    "review accept": ["00000000-0000-8000-8000-000000000000"],
    "review forget": ["00000000-0000-8000-8000-000000000000"],
    "keys rotate": ["abcdefghijkl"],
    "keys revoke": ["abcdefghijkl"],
    "passport export": ["--session", "s", "--file", "passport.json"],
    "watch": ["s"],
    "top": ["--once"],
}
NO_SERVER = {"top", "readmit"}
"""They look for a server, and say that there is none."""


@pytest.mark.promise("cli.no-store-by-mistake")
@pytest.mark.parametrize("command", sorted(COMMANDS.keys() - MAKE_ONE - NEED_NONE))
def test_where_there_is_no_store_only_what_writes_makes_one(tmp_path: Path, command: str) -> None:
    queries = tmp_path / "queries.jsonl"
    queries.write_text('{"query": "x", "relevant": ["a"]}\n')
    arguments = [str(queries) if each == __file__ else each for each in ARGUMENTS.get(command, [])]
    done = subprocess.run(
        [*forked_program(), *command.split(), *arguments, "--data", str(tmp_path / "store")],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env=clean_environment(tmp_path, KEY="11" * 32),
        check=False,
    )
    assert done.returncode == (1 if command in NO_SERVER else 73), done.stderr
    assert str(tmp_path / "store") in sentence(done)
    assert {each.name for each in tmp_path.iterdir()} == {"queries.jsonl"}


@pytest.mark.quick
@pytest.mark.promise("cli.no-store-by-mistake")
def test_a_folder_with_nothing_but_a_lock_is_no_store(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "owner.lock").touch()
    done = run_on_store(tmp_path, "keys", "list")
    assert (done.returncode, "there is no store" in sentence(done)) == (73, True)
    assert {each.name for each in (tmp_path / "store").iterdir()} == {"owner.lock"}


# -- flags are called what they are -----------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["keys", "create", "--days", "99999"], "keys: --days: it takes a whole number"),
        (["keys", "create", "--scopes", "nonsense"], "keys: --scopes: there is no nonsense"),
        (["keys", "create", "--for-agent", "a b"], "keys: --for-agent: it takes 1 to 100"),
        (["keys", "create", "--max-bytes", "9" * 30], "keys: --max-bytes: it takes"),
        (["keys", "create", "--name", "x" * 999], "keys: --name: it takes"),
        (["keys", "rotate", "nonsense"], "keys: KEY_ID: it takes the 12 characters"),
        (["passport", "export", "--session", "a b", "--file", "x"], "passport: --session: it takes"),
        (["export", "-", "--namespace", "a b"], "export: --namespace: it takes"),
        (["serve", "--tls-cert", "x"], "serve: --tls-cert and --tls-key go together; --tls-key is missing"),
        (["serve", "--oauth-issuer", "https://a.example"], "; --oauth-resource is missing"),
        (["serve", "--http", "0.0.0.0:0"], "give --tls-cert and --tls-key, or say --behind-proxy"),
        (["serve", "--embedder", "http://127.0.0.1:1/v1"], "the name of its model: --embedder-model NAME"),
    ],
)
def test_a_flag_is_named_as_a_flag(kept: Path, arguments: list[str], said: str) -> None:
    done = run_on_store(kept, *arguments)
    assert said in sentence(done)


# -- help -------------------------------------------------------------------------------


def test_without_a_command_the_commands_are_told(tmp_path: Path) -> None:
    bare, helped, asked = run(tmp_path), run(tmp_path, "--help"), run(tmp_path, "help")
    assert (bare.returncode, helped.returncode, bare.stdout) == (2, 0, "")
    assert bare.stderr == helped.stdout == asked.stdout
    told = listed(helped.stdout)
    assert told[:2] == ["setup", "serve"]
    assert 10 <= len(told) <= 15
    assert "`greenroom help --all` lists every command" in helped.stdout


def listed(text: str) -> list[str]:
    return re.findall(r"^  ([a-z]+) ", text.partition("options:")[0].partition("examples:")[0], re.MULTILINE)


def test_help_tells_every_command_or_what_one_takes(tmp_path: Path) -> None:
    everything = run(tmp_path, "help", "--all")
    assert everything.returncode == 0
    assert sorted(listed(everything.stdout)) == sorted({name.partition(" ")[0] for name in COMMANDS})
    assert "exit codes:" in everything.stdout
    for words in (["keys", "create"], ["serve"]):
        helped = run(tmp_path, "help", *words)
        assert (helped.returncode, helped.stdout) == (0, run(tmp_path, *words, "--help").stdout)
    wrong = run(tmp_path, "help", "kyes")
    assert wrong.returncode == 2
    assert "no command is called 'kyes'" in wrong.stderr
    assert wrong.stderr.endswith("did you mean keys?\n")


def test_help_needs_no_valid_settings(tmp_path: Path) -> None:
    environment = clean_environment(tmp_path, GREENROOM_MAX_SIZE="a lot")
    helped = subprocess.run(
        [*forked_program(), "help"], capture_output=True, text=True, env=environment, check=False
    )
    assert (helped.returncode, helped.stderr) == (0, "")


@pytest.mark.parametrize("family", FAMILIES)
def test_the_help_of_a_family_names_its_actions(family: str) -> None:
    actions = {name.split()[1] for name in COMMANDS if name.startswith(f"{family} ")}
    assert actions - set(re.findall(r"[a-z]+", FAMILIES[family])) == set()


@pytest.mark.parametrize("family", sorted({name.split()[0] for name in COMMANDS if " " in name}))
def test_a_family_without_an_action_tells_its_actions(tmp_path: Path, family: str) -> None:
    done = run(tmp_path, family)
    assert (done.returncode, done.stdout) == (2, "")
    actions = [name.split()[1] for name in COMMANDS if name.startswith(f"{family} ")]
    assert re.findall(r"^    ([a-z]+)\b", done.stderr, re.MULTILINE) == actions


def test_an_action_takes_its_own_flags_alone(tmp_path: Path) -> None:
    create, rotate = (run(tmp_path, "keys", each, "--help").stdout for each in ("create", "rotate"))
    assert "--scopes" in create
    assert "--overlap" not in create
    assert "KEY_ID" not in create
    assert "--overlap" in rotate
    assert "--scopes" not in rotate
    done = run(tmp_path, "keys", "list", "--scopes", "admin")
    assert done.returncode == 2
    assert done.stderr.startswith("usage: greenroom keys list [options]\n")
    assert "unrecognized arguments: --scopes" in done.stderr


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_the_examples_of_a_command_can_be_read(command: str) -> None:
    for line in COMMANDS[command].examples:
        assert line.startswith(command)
        make_parser().parse_args(shlex.split(line.partition(" >>")[0]))


def test_the_help_of_serve_tells_every_setting_and_the_basics_first(tmp_path: Path) -> None:
    told = re.findall(r"^  (--[a-z-]+)", run(tmp_path, "serve", "--help").stdout, re.MULTILINE)
    assert told[:4] == ["--data", "--agent", "--agent-type", "--user"]
    own = COMMANDS["serve"].options
    assert sorted(told) == sorted([*map(flag, all_settings()), *own, "--config"])
