"""Stores whose files are damaged behind their back, as disks and memory do it, and what is answered then.

A store is made once and left in both ways: closed in order, and by a process that was killed. Each round
puts it back, damages its file without changing its inode or its times, starts `greenroom serve` on it and
reads all that is there. Who dies is started once more. An answer is wrong if it differs from the sound
store's, "not found" and a fault of the program included; one that says that the store is damaged is not.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from bench.damaging import KINDS, rewrite
from bench.harness import Plan, Report, Table, check
from bench.servers import environment, greenroom

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

STORES: Final = 500
SMOKE_STORES: Final = 24
SESSIONS: Final = 20
MESSAGES: Final = 30
MEMORIES: Final = 60
LARGE: Final = 10_000
"""Bytes; such a record has pages of its own."""
SEED: Final = 20_261_122
DAMAGED: Final = 65
LEFT: Final = ("closed", "killed")
FAULTS: Final = frozenset({"STORE_DAMAGED", "SET_ASIDE", "SHUTTING_DOWN"})
"""What an answer says that tells of the damage, and nothing of what is stored."""


TELL_OF_DAMAGE: Final = frozenset(
    {
        "damaged",
        "partial",
        "partial_reason",
        "empty_because",
        "statistics",
        "last_activity",
        "message_count",
        "count",
    }
)
"""Members of an answer that say what it lacks, or count what is there."""
KILLED: Final = "killed its reader"
SHOWN: Final = 200
Call = tuple[str, dict[str, Any]]


class Outcome(NamedTuple):
    """What became of one damaged store.

    Attributes:
        verdict: In one word.
        what: What was answered wrongly, or said last.
    """

    verdict: str
    what: str = ""


def run(plan: Plan) -> Report:
    """Damage stores, and judge what is answered."""
    wanted = plan.size(STORES, SMOKE_STORES)
    workers = os.cpu_count() or 1
    with plan.folder() as folder, ThreadPoolExecutor(workers) as pool:
        patients = [Patient(folder / f"data{number}") for number in range(workers)]
        parts = [range(number, wanted, workers) for number in range(workers)]
        found = [one for part in pool.map(Patient.suffer, patients, parts) for one in part]
    wrong = [f"{how}: {outcome.what}" for how, outcome in found if outcome.verdict == "WRONG"]
    counts = Counter((how, outcome.verdict) for how, outcome in found)
    check(not wrong, f"{len(wrong)} of {wanted} damaged stores: " + "; ".join(wrong[:10]))
    rows: list[list[str | int]] = [
        [*how.split(", "), verdict, count] for (how, verdict), count in sorted(counts.items())
    ]
    table = Table(
        title=f"{wanted} damaged stores, none of which answered wrongly or killed its reader twice",
        columns=["left", "damage", "what became of it", "stores"],
        rows=rows,
    )
    return Report(tables=[table])


class Patient:
    """A store that is damaged and put back, again and again.

    Args:
        folder: Where it is made.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._data = folder / "greenroom.mdb"
        self._lock = folder / "owner.lock"
        self._command = greenroom(folder)
        done = self._serve(_writes())
        check(done.returncode == 0, f"the store cannot be made: {done.stderr.decode()}")
        self._truth = self._read()
        check(self._read() == self._truth, "a sound store does not answer twice alike")
        self._left = {"closed": self._content()}
        with subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment()
        ) as server:
            assert server.stdin is not None
            assert server.stdout is not None
            server.stdin.write(_lines([("list_sessions", {})]))
            server.stdin.flush()
            server.stdout.readline()
            server.kill()
        self._left["killed"] = self._content()

    def suffer(self, numbers: Sequence[int]) -> list[tuple[str, Outcome]]:
        """Return what became of the stores with these numbers, and how each was left and damaged."""
        return [self._suffer_once(number) for number in numbers]

    def _suffer_once(self, number: int) -> tuple[str, Outcome]:
        chance = random.Random(SEED + number)
        left, damage = LEFT[number % 2], KINDS[number // 2 % len(KINDS)]
        sound = self._left[left]
        content = bytearray(sound.content)
        damage(content, chance)
        rewrite(self._data, bytes(content), sound.when)
        self._lock.write_bytes(sound.lock)
        (self._folder / "greenroom.mdb-lock").unlink(missing_ok=True)
        return f"{left}, {damage.__name__}", self._judged(number)

    def _judged(self, number: int) -> Outcome:
        first = self._outcome()
        if first.verdict == KILLED:
            again = self._outcome()
            if again.verdict in {"WRONG", KILLED}:
                return Outcome("WRONG", f"store {number} {again.verdict} again: {again.what}")
            return Outcome("killed its reader, and not again", first.what)
        return Outcome(first.verdict, f"store {number}: {first.what}")

    def _outcome(self) -> Outcome:
        done = self._serve(_reads())
        if done.returncode < 0:
            return Outcome(KILLED, str(done.returncode))
        last = done.stderr.decode().strip().rpartition("\n")[2]
        answers = _answers(done.stdout)
        for name, answer in answers.items():
            told = json.dumps(answer)
            if not (_is_right(answer, self._truth[name]) or any(fault in told for fault in FAULTS)):
                return Outcome("WRONG", f"{name} was answered with {told[:SHOWN]}")
        if done.returncode == DAMAGED:
            return Outcome("refused" if not answers else "refused after right answers", last)
        if done.returncode:
            return Outcome("WRONG", f"exit code {done.returncode}: {last}")
        missing = self._truth.keys() - answers.keys()
        if missing:
            return Outcome("WRONG", f"{len(missing)} calls were not answered")
        return Outcome("answered" if answers == self._truth else "answered STORE_DAMAGED", last)

    def _read(self) -> dict[str, Any]:
        done = self._serve(_reads())
        check(done.returncode == 0, f"a sound store is not served: {done.stderr.decode()}")
        return _answers(done.stdout)

    def _serve(self, calls: Sequence[Call]) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            self._command, input=_lines(calls), capture_output=True, check=False, env=environment()
        )

    def _content(self) -> _Left:
        return _Left(self._data.read_bytes(), self._data.stat().st_mtime_ns, self._lock.read_bytes())


def _is_right(answer: Any, truth: Any) -> bool:
    """Return whether an answer is the true one, or names damage and has nothing that the true one lacks."""
    structured = answer.get("structuredContent", {})
    if answer == truth or not structured.get("damaged"):
        return bool(answer == truth)
    return _is_part(structured, truth["structuredContent"])


def _is_part(found: Any, truth: Any) -> bool:
    if isinstance(found, dict) and isinstance(truth, dict):
        judged = found.keys() - TELL_OF_DAMAGE
        return judged <= truth.keys() and all(_is_part(found[name], truth[name]) for name in judged)
    if isinstance(found, list) and isinstance(truth, list):
        return all(any(_is_part(each, other) for other in truth) for each in found)
    return bool(found == truth)


class _Left(NamedTuple):
    """A store as somebody left it: its file, when that was written last, and the lock file."""

    content: bytes
    when: int
    lock: bytes


def _writes() -> list[Call]:
    """Return calls that fill a store with small records and large ones."""
    calls: list[Call] = []
    for session in range(SESSIONS):
        name = f"session-{session}"
        calls.append(("create_session", {"session_id": name, "purpose": f"purpose of {name}"}))
        calls += [
            ("add_message", {"session_id": name, "content": f"message {number} of {name}"})
            for number in range(MESSAGES)
        ]
        calls.append(("add_message", {"session_id": name, "content": "x" * LARGE}))
    for number in range(MEMORIES):
        calls.append(("set_memory", {"key": f"entry-{number}", "value": f"value of {number}"}))
        text = f"memory {number} tells of word{number}"
        calls.append(("store_memory", {"content": text, "key": f"memory-{number}"}))
    return calls


def _reads() -> list[Call]:
    """Return calls that read all of it, in several ways."""
    calls: list[Call] = [("list_sessions", {"limit": 100}), ("list_memory", {"limit": 1_000})]
    for session in range(SESSIONS):
        name = f"session-{session}"
        calls.append(("get_session", {"session_id": name}))
        calls.append(("get_messages", {"session_id": name, "limit": 1_000}))
    for number in range(MEMORIES):
        calls.append(("get_memory", {"key": f"entry-{number}"}))
        calls.append(("get_memory", {"key": f"memory-{number}"}))
    return calls


def _lines(calls: Sequence[Call]) -> bytes:
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "b", "version": "1"}}
    lines: list[dict[str, Any]] = [
        {"id": 0, "method": "initialize", "params": hello},
        {"method": "notifications/initialized"},
    ]
    lines += [
        {"id": number, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
        for number, (tool, arguments) in enumerate(calls, start=1)
    ]
    return b"".join(json.dumps({"jsonrpc": "2.0", **line}).encode() + b"\n" for line in lines)


def _answers(output: bytes) -> dict[str, Any]:
    """Return what was answered to each call of `_reads`."""
    calls = _reads()
    found = {}
    for line in output.split(b"\n")[:-1]:  # one that was cut off tells nothing
        answer = json.loads(line)
        if answer.get("id"):
            tool, arguments = calls[answer["id"] - 1]
            told = answer.get("result", answer.get("error"))
            told.pop("_meta", None)  # it says when the answer was made
            found[f"{tool} {arguments}"] = told
    return found
