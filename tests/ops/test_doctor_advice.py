"""What `greenroom doctor` advises is done, word for word, and then the finding is gone."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import trio
from ops.test_doctor import ANN, Home, answering, home, key, owned_by_another

from greenroom.actors import Agent, StoreMemory
from greenroom.runtime import backup
from greenroom.transports.clients.hooks.failures import note_failure
from greenroom.transports.ops.cli.doctor.finding import Finding
from greenroom.transports.ops.cli.main import main
from greenroom.transports.ops.cli.support.startup_notice import program

pytestmark = [pytest.mark.slow, pytest.mark.promise("cli.doctor-advice")]

assert home  # the fixture
COMMAND = re.compile(r"(?:^|: |`|\()((?:greenroom|chmod|cp|kill|mv|rm) [^;`)]+)")
"""A command in a remedy."""
Make = Callable[[Home], Any]


def left(content: bytes) -> Make:
    return lambda home: (home.store / "owner.lock").write_bytes(content)


def line(end: str = "", pid: int = 0) -> bytes:
    """Return what an owner left in the lock file, who saw another store."""
    return f"{pid:<20} {'x' * 32} {end:<8}\n".encode()


def lost(home: Home) -> None:
    left(line())(home)
    home.data.unlink()


def emptied(home: Home) -> None:
    for each in home.store.iterdir():
        each.unlink()


def linked(name: str) -> Make:
    def make(home: Home) -> None:
        (home.store / name).rename(home.path / "else where")
        (home.store / name).symlink_to(home.path / "else where")

    return make


def damaged(home: Home) -> None:
    """Change a record, where a checksum notices it; free pages have its text, too."""
    home.data.write_bytes(home.data.read_bytes().replace(b"a pump is due", b"A pump is due"))


async def put_back(home: Home) -> None:
    """Put an older store back other than with the command for it."""
    before = home.data.read_bytes()
    async with home.opened() as runtime:
        await Agent(runtime, ANN).ask(StoreMemory(namespace="user:ann", key="k2", content="another"))
    home.data.write_bytes(before)


def set_aside(home: Home) -> None:
    note_failure(home.store, "stop", "x")  # makes the spool
    (home.store / "spool/refused").mkdir(mode=0o700)
    (home.store / "spool/refused" / f"{1:020d}-{0:032x}.json").write_text("{")


def carried(home: Home) -> None:
    """Lose the secret, after it was exported."""
    store = ["--data", str(home.store), "--secrets", str(home.secrets)]
    assert main(["secret", "export", str(home.path / "carried"), *store]) == 0
    key(home).unlink()


OWN = [*program()[1], "serve"]


def client(**entry: Any) -> Make:
    """Write an entry by hand, into a client's file."""

    def make(home: Home) -> None:
        (home.path / ".gemini").mkdir()
        (home.path / ".gemini/settings.json").write_text(json.dumps({"mcpServers": {"greenroom": entry}}))

    return make


def edited(change: Callable[[Any], object], *flags: str) -> Make:
    """Set a client up, and then change its file."""

    def make(home: Home) -> None:
        store = ["--data", str(home.store), "--secrets", str(home.secrets)]
        assert main(["setup", "gemini", *store, "--yes", *flags]) == 0
        path = home.path / ".gemini/settings.json"
        held = json.loads(path.read_text())
        change(held)
        path.write_text(json.dumps(held))

    return make


class Case(NamedTuple):
    """A situation, the finding about it, and which of the named commands are run; all if None."""

    make: Make
    topic: str
    said: str
    runs: tuple[int, ...] | None = None
    settings: Callable[[Home], dict[str, object]] = lambda _: {}
    file: str = "a copy"  # the file that they name


def with_key(home: Home) -> dict[str, object]:
    place = home.path / "a key"
    place.write_text("11" * 32)
    place.chmod(0o600)
    return {"encryption_key": f"file:{place}"}


def with_tls(home: Home) -> dict[str, object]:
    place = home.path / "a key.pem"
    if not place.exists():
        place.write_text("key")
        place.chmod(0o644)
    return {"tls_key": place}


CASES = {
    "no-folder": Case(lambda home: shutil.rmtree(home.store), "folder", "is not there yet", (0,)),
    "empty-folder": Case(emptied, "folder", "is empty", (0,)),
    "linked-file": Case(linked("greenroom.mdb"), "folder", "is a link"),
    "empty-file": Case(lambda home: home.data.write_bytes(b""), "folder", "damaged", (0, 1)),
    "no-store": Case(lambda home: home.data.write_bytes(b"no store" * 999), "folder", "damaged", (0, 1)),
    "copies": Case(
        lambda home: (home.store / "greenroom.mdb.restoring").touch(0o600), "folder", "that was killed"
    ),
    "linked-lock": Case(linked("owner.lock"), "locks", "cannot be found out"),
    "lost": Case(lost, "locks", "is gone or empty", (0,)),
    "lost-anew": Case(lost, "locks", "is gone or empty", (1,)),
    "doubt": Case(left(line("doubt")), "locks", "found damage", (0,)),
    "doubt-restored": Case(left(line("doubt")), "locks", "found damage", (1,)),
    "fault": Case(left(b"Fatal Python error: Segmentation fault\n\nCurrent"), "locks", "crashed"),
    "changed": Case(left(line()), "locks", "was changed or replaced"),
    "other-files": Case(left(line(pid=4194304)), "locks", "not the same files"),
    "mode": Case(lambda home: home.store.chmod(0o755), "permissions", "has mode 0755"),
    "modes": Case(lambda home: home.data.chmod(0o644), "permissions", "others may read or change"),
    "secrets": Case(lambda home: home.secrets.chmod(0o777), "permissions", "can be changed by others"),
    "secret": Case(lambda home: key(home).chmod(0o640), "permissions", "can be read or changed"),
    "no-secret": Case(carried, "permissions", "with the mark", (1,), file="carried"),  # not the export
    "tls-key": Case(lambda _: None, "permissions", "the key of TLS", settings=with_tls),
    "not-encrypted": Case(lambda _: None, "encryption", "is not encrypted", settings=with_key),
    "record": Case(damaged, "records", "not what was stored", (1,)),
    "record-saved": Case(damaged, "records", "not what was stored", file="saved"),
    "older-store": Case(put_back, "audit", "an older store was put there", file="saved"),
    "hooks": Case(lambda home: note_failure(home.store, "stop", "it is outside"), "hooks", "1 has failed"),
    "spool": Case(set_aside, "spool", "could not be read"),
    "moved": Case(client(command="/gone/greenroom"), "clients", "there is no /gone"),
    "by-name": Case(client(command="greenroom"), "clients", "without a folder"),
    "another": Case(client(command="/bin/sh"), "clients", "is not this program"),
    "nothing": Case(client(args=[]), "clients", "names no command"),
    "elsewhere": Case(
        client(command=program()[0], args=[*OWN, "--data", "/x"]), "clients", "its data are in"
    ),
    "off": Case(
        edited(lambda held: held["mcpServers"]["greenroom"].update(disabled=True)), "clients", "switched off"
    ),
    "overwritten": Case(edited(lambda held: held["mcpServers"].clear()), "clients", "has gone"),
    "no-hook": Case(edited(lambda held: held["hooks"].pop("AfterTool"), "--hooks"), "clients", "are missing"),
}


def commands_in(remedy: str, file: Path) -> Iterator[list[str]]:
    for found in COMMAND.finditer(remedy):
        yield shlex.split(found[1].replace("FILE", shlex.quote(str(file))))


async def run(words: list[str]) -> None:
    if words[0] == "greenroom":
        await trio.to_thread.run_sync(main, words[1:])
    else:
        await trio.run_process(words)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
async def test_the_finding_is_gone_when_its_advice_was_followed(
    home: Home, case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GREENROOM_PASSPHRASE", "over the hills")
    home.store = home.path / "the store"
    home.data = home.store / "greenroom.mdb"
    (home.path / ".cursor").mkdir()
    await home.make()
    await trio.to_thread.run_sync(backup, home.store, home.path / "a copy")
    if case.make is put_back:
        await put_back(home)
    else:
        await trio.to_thread.run_sync(case.make, home)
    settings = case.settings(home)

    async def wrong() -> list[Finding]:
        findings = (await home.examined(case.topic, settings=settings)).get(case.topic, [])
        return [each for each in findings if each.level != "ok"]

    before = await wrong()
    (finding,) = [each for each in before if case.said in each.finding]
    commands = list(commands_in(finding.remedy or "", home.path / case.file))
    assert commands, finding
    for index in range(len(commands)) if case.runs is None else case.runs:
        await run(commands[index])
    assert await wrong() == [], finding


async def test_an_owner_that_hangs_goes_on_or_ends(home: Home) -> None:
    await home.make()
    with owned_by_another(home.store) as child:
        for how, said, awaited in (
            (signal.SIGSTOP, "was suspended", os.WCONTINUED),
            (0, "has not answered", os.WEXITED),
        ):
            os.kill(child, how)
            if how:
                await trio.to_thread.run_sync(os.waitpid, child, os.WUNTRACED)
            with answering(home.store, None):
                finding = await home.finding("locks", "error", said, patience=0.01)
            await run(next(commands_in(finding.remedy or "", home.path)))
            await trio.to_thread.run_sync(os.waitid, os.P_PID, child, awaited | os.WNOWAIT)
    await home.finding("locks", "ok", "was killed")


async def test_a_command_has_the_flags_of_the_doctor_that_it_takes(home: Home) -> None:
    await home.make()
    home.store.chmod(0o700)
    left(line())(home)
    config = home.path / "its own.toml"
    config.write_text('log_level = "error"\n')
    settings = {"config": config, "max_size": "1GiB", "ws": "127.0.0.1:8765", "encryption_key": "env:K"}
    finding = await home.finding("locks", "warning", "was changed", settings=settings)
    (words,) = commands_in(finding.remedy or "", home.path)
    assert words[:2] == ["greenroom", "verify"]
    given = dict(zip(words[2::2], words[3::2], strict=True))
    assert given == {
        "--data": str(home.store),
        "--secrets": str(home.secrets),
        "--encryption-key": "env:K",
        "--config": str(config),
    } | ({"--max-size": "1GiB"} if "--max-size" in given else {})
