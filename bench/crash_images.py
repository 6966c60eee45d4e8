"""Stores as power cuts leave them: what was answered is there, once, and nothing contradicts anything.

A server is recorded while it writes (`bench.recording`). Its file is put together anew as it was at a sync,
with none, some, all or torn pages of what followed. Each image is served, and judged by what had been
answered until then (`bench.ledger`); `greenroom verify` and `greenroom audit verify` must find nothing.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, NamedTuple, get_args

from bench import recording
from bench.client import PATIENCE, read_answer
from bench.harness import Plan, Report, Table, WrongAnswerError, check
from bench.ledger import Ledger, Write
from bench.recording import Cut, Event, Followed
from bench.servers import environment
from bench.troupe import Member, told, wait_for_any

IMAGES: Final = 60
SMOKE_IMAGES: Final = 4
WRITES: Final = 300
IN_FLIGHT: Final = 4
SHOWN: Final = 10
SHOWN_BYTES: Final = 500
SEED: Final = 20_261_201
_FILES: Final = ("greenroom.mdb", "owner.lock")
_HOWS: Final[tuple[Followed, ...]] = get_args(Followed)


class Recorded(NamedTuple):
    """What was recorded.

    Attributes:
        base: The file before.
        lock: The lock file while it was owned.
        events: What happened to the file, and was said.
        ledger: What was written, and all of it answered.
        numbers: By the ids of answers which write each is the answer to.
        secrets: The folder of the store's secret, as it was before.
    """

    base: bytes
    lock: bytes
    events: list[Event]
    ledger: Ledger
    numbers: dict[int, int]
    secrets: Path


def run(plan: Plan) -> Report:
    """Record a server, and judge images of its store."""
    if shutil.which("strace") is None:
        return Report(tables=[Table(title="NOT CHECKED: no strace here", columns=[], rows=[])])
    wanted = plan.size(IMAGES, SMOKE_IMAGES)
    with plan.folder() as folder, ThreadPoolExecutor(os.cpu_count()) as pool:
        recorded = _record(folder, plan.size(WRITES, 40))
        moments = recording.cuts(recorded.events)
        chance = random.Random(SEED)
        chosen = [(chance.choice(moments), _HOWS[number % len(_HOWS)]) for number in range(wanted)]
        found = list(
            pool.map(
                lambda each: _judged(folder / f"image-{each[0]}", recorded, *each[1], seed=each[0]),
                enumerate(chosen),
            )
        )
    wrong = [sentence for sentences in found for sentence in sentences]
    check(not wrong, f"{len(wrong)} faults in {wanted} images: " + "; ".join(wrong[:SHOWN]))
    counts = Counter(how for _, how in chosen)
    table = Table(
        title=f"{wanted} power cuts during {len(recorded.ledger.writes)} writes: nothing lost or wrong",
        columns=["of what followed the last sync", "images", "moments to choose from"],
        rows=[[how, count, len(moments)] for how, count in counts.items()],
    )
    return Report(tables=[table])


def _record(folder: Path, count: int) -> Recorded:
    """Have a store written to, and return what was done to its file."""
    data, trace, errors, secrets = (folder / name for name in ("data", "trace", "stderr", "secrets"))
    flags = ("--user", "bench", "--embedder", "static", "--secrets", str(secrets))
    ledger = Ledger("c", random.Random(SEED))
    first = Member(0, data, "bench", errors, flags=flags)
    first.start()
    ledger.begin(first)
    _end(first)
    base = (data / _FILES[0]).read_bytes()
    kept = shutil.copytree(secrets, folder / "kept")  # which say how much of the audit log was seen
    writer = Member(0, data, "bench", errors, flags=flags, before=recording.command(trace))
    writer.start()
    numbers = _write(writer, ledger, count)
    lock = (data / _FILES[1]).read_bytes()
    _end(writer)
    events = recording.events(trace, data / _FILES[0])
    whole = recording.image(base, events, Cut(len(events), len(events)), "all", random.Random(SEED))
    check(whole == (data / _FILES[0]).read_bytes(), "what was recorded does not make the file that is there")
    return Recorded(base, lock, events, ledger, numbers, kept)


def _write(member: Member, ledger: Ledger, count: int) -> dict[int, int]:
    """Write so much, and return by the ids of the calls which write each was."""
    numbers: dict[int, int] = {}
    open_calls: dict[int, Write] = {}
    while len(numbers) < count or open_calls:
        while len(numbers) < count and len(open_calls) < IN_FLIGHT:
            write = ledger.next("recorded", len(numbers))
            number = member.ask(write.tool, write.arguments)
            numbers[number] = len(ledger.writes) - 1
            open_calls[number] = write
        member.channel.flush()
        check(wait_for_any([member], PATIENCE), f"{member.name} does not answer")
        for answer in member.receive():
            went_well, words = told(answer)
            assert isinstance(answer.id, int)
            check(went_well, f"{open_calls[answer.id].operation} was answered with {words}")
            open_calls.pop(answer.id).answered(words)
        check(not member.channel.ended, f"{member.name} has ended")
    return numbers


def _judged(folder: Path, recorded: Recorded, cut: Cut, how: Followed, *, seed: int) -> list[str]:
    """Return what is wrong in an image."""
    data = folder / "data"
    data.mkdir(parents=True, mode=0o700)
    content = recording.image(recorded.base, recorded.events, cut, how, random.Random(seed))
    for name, saved in zip(_FILES, (content, recorded.lock), strict=True):
        (data / name).write_bytes(saved)
        (data / name).chmod(0o600)
    secrets = folder / "secrets"
    shutil.copytree(recorded.secrets, secrets)  # its own: two stores with one id are noticed
    answered = _answered(recorded.events[: cut.at])
    ledger = recorded.ledger.as_of({recorded.numbers[each] for each in answered if each in recorded.numbers})
    flags = ("--user", "bench", "--embedder", "static", "--secrets", str(secrets))
    reader = Member(0, data, "bench", folder / "stderr", flags=flags)
    reader.start()
    try:
        wrong = ledger.problems(reader)
        _end(reader)
    except WrongAnswerError as error:
        wrong = [f"{error}: {(folder / 'stderr').read_text()[-SHOWN_BYTES:]}"]
    finally:
        if reader.runs:
            reader.kill()
            reader.gone()
    wrong += verified(data, "--secrets", str(secrets))
    shutil.rmtree(folder)
    return [f"image {seed}, {how} of what followed event {cut.certain}: {sentence}" for sentence in wrong]


def _answered(events: list[Event]) -> set[int]:
    """Return the ids of the answers that were said."""
    said = b"".join(event.said for event in events)
    answers = [read_answer(line) for line in said.split(b"\n")[:-1]]
    return {answer.id for answer in answers if isinstance(answer.id, int)}


def _end(member: Member) -> None:
    member.end("end of input")
    code = member.gone()
    check(code == 0, f"{member.name} ended with code {code}")


def verified(data: Path, *flags: str) -> list[str]:
    """Return what `greenroom verify` and `greenroom audit verify` find wrong."""
    wrong = []
    for command in (["verify"], ["audit", "verify"]):
        program = [sys.executable, "-m", "greenroom.transports.cli", *command, "--data", str(data), *flags]
        done = subprocess.run(program, capture_output=True, check=False, env=environment())
        if done.returncode:
            wrong.append(f"greenroom {' '.join(command)} says {(done.stdout + done.stderr)[-SHOWN_BYTES:]!r}")
    return wrong
