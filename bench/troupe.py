"""Server processes on one folder that are killed, stopped and started again, and a client of each."""

from __future__ import annotations

import select
import signal
import subprocess
import time
from collections.abc import Sequence
from math import inf
from pathlib import Path
from typing import Any

import msgspec

from bench.channels import Channel, spawn, to_process
from bench.client import ERAS, Answer, Client, Result, read_answer
from bench.harness import check
from bench.servers import GRACE_SECONDS, greenroom
from bench.wires import Kind

CALL = Kind("tools/call")
OWNER_FILE = "owner.lock"


class Member:
    """One place in the troupe: process after process, each with a client of its own.

    Args:
        number: Which place.
        folder: What all serve.
        agent: As whom.
        errors: A file for what the processes say on standard error.
        flags: More flags of theirs.
        before: A program that starts them.

    Attributes:
        life: Counts the processes of this place.
        up_since: When this process gave its first answer, `inf` before.
        paused_until: When a stopped process is to go on, 0 while it runs.
        ending: How it was asked to end, if it was: "" or a word for it.
    """

    def __init__(
        self,
        number: int,
        folder: Path,
        agent: str,
        errors: Path,
        *,
        flags: Sequence[str] = (),
        before: Sequence[str] = (),
    ) -> None:
        self.number = number
        self.agent = agent
        self.life = 0
        self.up_since = inf
        self.paused_until = 0.0
        self.ending = ""
        self.since = 0.0
        self._command = [*before, *greenroom(folder, "--agent", agent, *flags)]
        self._errors = errors
        self._process: subprocess.Popen[bytes] | None = None
        self._client: Client | None = None
        self._greeting = 0

    @property
    def name(self) -> str:
        """The name of this life."""
        return f"process {self.number}, life {self.life}"

    @property
    def is_up(self) -> bool:
        """Whether this process has answered anything."""
        return self.up_since < inf

    @property
    def runs(self) -> bool:
        """Whether there is a process."""
        return self._process is not None

    @property
    def channel(self) -> Channel:
        """Where the client speaks."""
        assert self._client is not None, "only a process that runs is spoken to"
        return self._client.channel

    @property
    def pid(self) -> int:
        """The process id, 0 while there is none."""
        return 0 if self._process is None else self._process.pid

    def start(self) -> None:
        """Start the next process, in the other era than the last; it can be asked at once."""
        self.life += 1
        self.up_since, self.paused_until, self.ending, self.since = inf, 0.0, "", time.monotonic()
        with self._errors.open("ab") as errors:
            self._process = spawn(self._command, errors=errors.fileno())
        era = ERAS[(self.life + self.number) % len(ERAS)]
        self._client = Client(to_process(self._process), era=era, pid=self._process.pid)
        self._greeting = self._client.introduce()

    def ask(self, tool: str, arguments: dict[str, Any]) -> int:
        """Send a call with the next flush; return its id."""
        assert self._client is not None, "only a process that runs is asked"
        number = self._client.number()
        self.channel.post(CALL, self._client.call_body(number, tool, msgspec.json.encode(arguments)))
        return number

    def receive(self) -> list[Answer]:
        """Return the answers that have come."""
        answers = [answer for answer in map(read_answer, self.channel.receive()) if answer.method is None]
        if answers and not self.is_up:
            self.up_since = time.monotonic()
        return [answer for answer in answers if answer.id != self._greeting]

    def rest(self) -> list[Answer]:
        """Return the answers that an ended process left in its pipe."""
        answers = []
        while not self.channel.ended:
            answers += self.receive()
        return answers

    def signal(self, number: signal.Signals) -> None:
        """Send the process a signal."""
        assert self._process is not None
        self._process.send_signal(number)

    def go_on(self) -> None:
        """Let a stopped process go on."""
        if self.paused_until:
            self.signal(signal.SIGCONT)
            self.paused_until = 0.0

    def end(self, how: str) -> None:
        """Ask the process to end by itself: by the end of its input, or by SIGTERM."""
        self.go_on()
        self.ending = how
        if how == "SIGTERM":
            self.signal(signal.SIGTERM)
        else:
            self.channel.flush()
            check(not self.channel.unsent, f"{self.name} does not read")
            self.channel.close()

    def kill(self) -> None:
        """Kill the process."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def gone(self) -> int:
        """Forget a process that has ended or is about to; return its exit code."""
        assert self._process is not None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        code = self._process.wait(GRACE_SECONDS)
        self._process.stdin.close()
        self._process.stdout.close()
        self._process = self._client = None
        self.up_since, self.paused_until = inf, 0.0
        return code


def owner_pid(folder: Path) -> int:
    """Return which process owns the folder, as far as the lock's file says; 0 if it says nothing."""
    try:
        return int((folder / OWNER_FILE).read_bytes().split()[0])
    except (OSError, ValueError, IndexError):
        return 0


def owner(folder: Path, members: Sequence[Member]) -> Member | None:
    """Return whose process owns the folder, if it is one of these."""
    pid = owner_pid(folder)
    return next((member for member in members if member.runs and member.pid == pid), None)


def told(answer: Answer) -> tuple[bool, Any]:
    """Return whether a call went well, and what it was answered."""
    if answer.result is None:
        return False, {} if answer.error is None else {"code": answer.error.message}
    result: Result = answer.result
    return not result.is_error, result.told()


def wait_for_any(members: Sequence[Member], seconds: float) -> list[int]:
    """Return which of the members have something to read, which may be their end; wait so long for it."""
    poll = select.poll()
    places = {}
    for place, member in enumerate(members):
        if member.runs:
            poll.register(member.channel.incoming, select.POLLIN)
            places[member.channel.incoming] = place
    return [places[descriptor] for descriptor, _ in poll.poll(seconds * 1e3)]
