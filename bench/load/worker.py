"""The process that makes the load, or a share of it.

Its first line of input is its share; it connects, prepares, and writes `Ready`. Its second line is
the moment when the clock begins to run; from then on it writes a `Second` every second, the
last one with ``over``.
"""

from __future__ import annotations

import gc
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any, Final, NamedTuple

import msgspec

from bench.channels import Exchange, allow_channels, exchanging
from bench.client import PATIENCE, Answer, Client, connected, read_answer, started
from bench.harness import WrongAnswerError, check
from bench.load.plan import METHODS, LoadPlan, Share, Step, Task
from bench.load.templates import Template
from bench.pacing import pace
from bench.wires import Kind

LAST_SECONDS: Final = 10.0  # that the last answers have
_SHORT: Final = 160  # characters of an error that are told


class Ready(msgspec.Struct):
    """The processes of the servers that this worker started."""

    pids: list[int]


class Second(msgspec.Struct):
    """What came of one second.

    Attributes:
        sent: Calls sent.
        right: Calls with a right answer.
        open: Calls not answered yet.
        errors: What went wrong, and how often.
        latencies: The µs from the moment when a call was due to its answer, task by task. A call
            that was never answered is among them with the time that it had.
        late: The µs from the moment when a call was due to when it was given to the system.
        over: Whether this is the last.
    """

    sent: int
    right: int
    open: int
    errors: dict[str, int]
    latencies: list[list[int]]
    late: list[int]
    over: bool = False


class Call(NamedTuple):
    """A call that is open."""

    due: float
    task: int
    number: int


class Speaker:
    """One client with its templates filled in and its calls that are open."""

    def __init__(self, client: Client, number: int, plan: LoadPlan) -> None:
        self.client = client
        self.open: dict[int, Call] = {}
        self._plan = plan
        self._number = number
        self._names = {"client": str(number)}
        self._arguments: list[Template] = []
        self._expected: list[Template] = []

    def step(self, step: Step) -> bytes:
        """Return the request of a call that comes before."""
        arguments = Template(step.arguments, self._names).fill(self._number)
        _object(arguments)
        return self.client.call_body(self.client.number(), step.tool, arguments)

    def learn(self, step: Step, message: bytes) -> bool:
        """Take the names that the answer to such a call gives; return False for what is no answer.

        Raises:
            WrongAnswerError: it failed.
        """
        answer = read_answer(message)
        if answer.method is not None:
            return False
        right = answer.result is not None and not answer.result.is_error
        check(right, f"{step.tool} was answered with {message!r}")
        told = answer.result.told() if answer.result is not None else None
        if isinstance(told, dict):
            self._names |= {name: str(value) for name, value in told.items() if isinstance(value, str | int)}
        return True

    def ready(self) -> None:
        """Fill in the templates, all names being known."""
        self._arguments = [Template(task.arguments, self._names) for task in self._plan.tasks]
        self._expected = [Template(task.expected, self._names) for task in self._plan.tasks]
        for template in (*self._arguments, *self._expected):
            _object(template.fill(self._number))

    def body(self, kind: Kind, call: Call) -> bytes:
        """Return the request of a call, which is open from now on."""
        number = self.client.number()
        self.open[number] = call
        arguments = self._arguments[call.task].fill(call.number)
        if kind.name and kind.method == "tools/call":
            return self.client.call_body(number, kind.name, arguments)
        return self.client.body(number, kind.method, arguments)

    def answered(self, answer: Answer) -> Call | None:
        """Return the call that an answer is for, which is open no longer."""
        if answer.id is None and answer.error is not None and len(self.open) == 1:
            return self.open.popitem()[1]  # an HTTP error does not say which; only one can be meant
        return self.open.pop(answer.id, None) if isinstance(answer.id, int) else None

    def wrong(self, call: Call, answer: Answer) -> str:
        """Return what is wrong with an answer; empty if it is right."""
        if answer.error is not None:
            return f"error {answer.error.code}: {answer.error.message}"
        if answer.result is None:
            return "neither a result nor an error"
        if answer.result.is_error:
            return f"the tool failed: {answer.result.told()}"
        expected: dict[str, Any] = msgspec.json.decode(self._expected[call.task].fill(call.number))
        if not expected:
            return ""
        told = answer.result.told()
        missing = [
            name for name in expected if not isinstance(told, dict) or told.get(name) != expected[name]
        ]
        return f"{', '.join(missing)} is not as expected" if missing else ""


class Worker:
    """Sends, and adds up what comes."""

    def __init__(
        self, share: Share, speakers: Sequence[Speaker], begin: float, tell: Callable[[Second], None]
    ) -> None:
        plan = share.plan
        self._begin = begin
        self._report = tell
        self._share = share
        self._speakers = speakers
        self._kinds = list(map(_kind, plan.tasks))
        self._random = random.Random(plan.seed * 1_000 + share.index)
        self._draw = [number for number, task in enumerate(plan.tasks) for _ in range(task.weight)]
        self._next = begin + 1
        self._end = begin + plan.seconds + LAST_SECONDS
        self._sent = 0
        self._right = 0
        self._open = 0
        self._errors: Counter[str] = Counter()
        self._latencies: list[list[int]] = [[] for _ in plan.tasks]
        self._late: list[int] = []

    def run(self) -> None:
        """Make the load and tell of each second."""
        rate = self._share.plan.rate / self._share.workers
        count = round(rate * self._share.plan.seconds)
        begin = self._begin + self._share.index / self._share.plan.rate
        with exchanging([speaker.client.channel for speaker in self._speakers]) as exchange:
            pace(exchange, self, begin=begin, rate=rate, count=count)
        now = time.monotonic()
        for speaker in self._speakers:
            for call in speaker.open.values():
                self._fail(call, "not answered")
                self._latencies[call.task].append(int((now - call.due) * 1e6))
        self._open = 0
        self._tell(over=True)

    def send(self, exchange: Exchange, number: int, due: float) -> None:
        """Post a call of some task on some client."""
        who = self._random.randrange(len(self._speakers))
        task = self._random.choice(self._draw)
        call = Call(due, task, number * self._share.workers + self._share.index)
        self._sent += 1
        speaker = self._speakers[who]
        if speaker.client.channel.ended:
            self._fail(call, "the connection was lost before")
            return
        kind = self._kinds[task]
        exchange.post(who, kind, speaker.body(kind, call))
        self._open += 1
        self._late.append(int((time.monotonic() - due) * 1e6))

    def take(self, who: int, messages: list[bytes], now: float) -> None:
        """Time and judge answers."""
        speaker = self._speakers[who]
        for message in messages:
            try:
                answer = read_answer(message)
            except msgspec.DecodeError:
                self._errors[f"no JSON-RPC: {message[:_SHORT]!r}"] += 1
                continue
            if answer.method is not None:
                continue  # a notification
            call = speaker.answered(answer)
            if call is None:
                self._errors["an answer to nothing that was asked"] += 1
                continue
            self._open -= 1
            if wrong := speaker.wrong(call, answer):
                self._fail(call, wrong)
            else:
                self._right += 1
                self._latencies[call.task].append(int((now - call.due) * 1e6))
        if speaker.client.channel.ended:
            for call in speaker.open.values():
                self._fail(call, "the connection was lost")
            self._open -= len(speaker.open)
            speaker.open.clear()

    def goes_on(self, now: float, *, all_sent: bool) -> bool:
        """Tell of the second that is over, and wait for the last answers."""
        if now >= self._next:
            self._next += 1
            self._tell(over=False)
        return not all_sent or (self._open > 0 and now < self._end)

    def _fail(self, call: Call, sentence: str) -> None:
        self._errors[f"{self._share.plan.tasks[call.task].name}: {sentence}"[:_SHORT]] += 1

    def _tell(self, *, over: bool) -> None:
        errors = dict(self._errors)
        self._report(Second(self._sent, self._right, self._open, errors, self._latencies, self._late, over))
        self._sent = self._right = 0
        self._errors.clear()
        self._latencies = [[] for _ in self._latencies]
        self._late = []


def prepare(speakers: Sequence[Speaker], before: Sequence[Step]) -> None:
    """Make the calls that come before, each by all clients at once, so that they share commits.

    Raises:
        WrongAnswerError: one failed.
    """
    with exchanging([speaker.client.channel for speaker in speakers]) as exchange:
        for step in before:
            for who, speaker in enumerate(speakers):
                exchange.post(who, Kind("tools/call", step.tool), speaker.step(step))
            exchange.flush()
            waiting = set(range(len(speakers)))
            while waiting:
                come = exchange.turn(PATIENCE)
                check(come, f"{step.tool} was not answered within {PATIENCE:g} s")
                for who, messages in come:
                    check(not speakers[who].client.channel.ended, f"{step.tool}: the connection was lost")
                    for message in messages:
                        if speakers[who].learn(step, message):
                            waiting.discard(who)
    for speaker in speakers:
        speaker.ready()


def main() -> None:
    """Take the share, be ready, begin."""
    share = msgspec.json.decode(sys.stdin.buffer.readline(), type=Share)
    plan = share.plan
    allow_channels()
    with ExitStack() as stack:
        speakers = []
        pids: list[int] = []
        for number in range(share.index, plan.clients, share.workers):
            name = f"load-{number}"
            if plan.url:
                client = stack.enter_context(connected(plan.url, era=plan.era, name=name))
            else:
                command = [part.replace("{client}", str(number)) for part in plan.command]
                opened = started(command, era=plan.era, name=name, ends_well=False)
                client = stack.enter_context(opened)
                client.begin()
                pids += [client.pid] if client.pid else []
            speakers.append(Speaker(client, number, plan))
        prepare(speakers, plan.before)
        _write(Ready(pids))
        begin = float(sys.stdin.buffer.readline())
        gc.disable()  # there is nothing to collect, and its pauses would look like the server's
        Worker(share, speakers, begin, _write).run()


def _object(json: bytes) -> dict[str, Any]:
    try:
        return msgspec.json.decode(json, type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise ValueError(f"{json.decode()} is no JSON object: {error}") from None


def _kind(task: Task) -> Kind:
    return Kind(task.name) if task.name in METHODS else Kind("tools/call", task.name)


def _write(message: Ready | Second) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(message) + b"\n")
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    try:
        main()
    except (WrongAnswerError, ValueError, OSError) as error:
        sys.exit(str(error))
