"""Processes on one folder that are killed, stopped and ended at random, under clients that write and read.

Every process is a `greenroom serve` with a client of its own, which keeps some requests in flight. Two
agents are served by two processes each. The clients write registers (`set_memory`, whose answer says the
version) and append to logs (`add_message`), half of the writes with an idempotency key, and read both. When
a client's own process ends, what was not answered may or may not have happened; what had a key is asked
again, through the next process. In all other processes everything must be answered, and once.

Rounds: after some kills everybody is left in peace until all is answered; then the keys are read whole
through every process, their histories are judged (see `bench.history`), and the next round takes new keys.
"""

from __future__ import annotations

import random
import signal
import sys
import time
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from bench.client import PATIENCE
from bench.harness import Plan, Report, Table, WrongAnswerError, check, percentile
from bench.history import Kind, Known, Operation, faults
from bench.stored import call, log, register
from bench.troupe import Member, owner, told, wait_for_any

if TYPE_CHECKING:
    from pathlib import Path

    from bench.client import Answer

AGENTS: Final = ("even", "odd")
PLACES: Final = 4
REGISTERS: Final = 2
LOGS: Final = 2
WIDTHS: Final = (1, 4, 16)
ROUND_KILLS: Final = 20
SMOKE_KILLS: Final = 12
FAULT_SECONDS: Final = 0.25
LONG_PAUSE: Final = 6.5
"""Seconds; longer than an owner may be silent before requests are answered OVERLOADED."""
REFUSED: Final = frozenset({"OVERLOADED"})
"""What the answer to a call that was not carried out says, unless it says that its outcome is unknown."""
UNSURE: Final = frozenset({"SHUTTING_DOWN", "DEADLINE_EXCEEDED"})
"""What it says when it may have been."""
HUNG_UP: Final = "Connection closed"
"""What a process says that got SIGTERM and finds no owner of the folder in the time that it has then."""
SHOWN: Final = 10
EVENTS: Final = 50
SHOWN_BYTES: Final = 4_000
SEED: Final = 20_261_122


def run(plan: Plan) -> Report:
    """Go on until so many processes were killed."""
    chance = random.Random(SEED)
    with plan.folder() as place:
        errors = place / "stderr"
        folder = place / "data"
        members = [Member(number, folder, AGENTS[number % len(AGENTS)], errors) for number in range(PLACES)]
        chaos = Chaos(members, folder, chance)
        with chaos.playing():
            wanted = plan.size(plan.kills, SMOKE_KILLS)
            try:
                while chaos.counts["SIGKILL"] < wanted:
                    chaos.round(min(wanted, chaos.counts["SIGKILL"] + ROUND_KILLS))
                    if not plan.smoke:
                        print(f"chaos: {chaos.counts['SIGKILL']} kills", file=sys.stderr, flush=True)
            except WrongAnswerError as error:
                story = "\n".join([str(error), *chaos.events, errors.read_text()[-SHOWN_BYTES:]])
                raise WrongAnswerError(story) from None
    return chaos.report()


class Chaos:
    """The clients, and who is after their servers.

    Args:
        members: The processes.
        folder: What they serve.
        chance: Decides.

    Attributes:
        counts: How often what happened.
        events: What was last done to whom.
    """

    def __init__(self, members: list[Member], folder: Path, chance: random.Random) -> None:
        self.counts: Counter[str] = Counter()
        self.events: deque[str] = deque(maxlen=EVENTS)
        self._members = members
        self._folder = folder
        self._chance = chance
        self._waits: list[float] = []
        self._round = 0
        self._tokens = 0
        self._history: dict[str, list[Operation]] = {}
        self._open: list[dict[int, Operation]] = [{} for _ in members]
        self._again: dict[str, list[Operation]] = {agent: [] for agent in AGENTS}
        self._widths = [1] * len(members)
        self._serials = [0] * len(members)
        self._restarts = [0.0] * len(members)
        self._target = ""
        self._began = time.monotonic()

    @contextmanager
    def playing(self) -> Iterator[None]:
        """Have the processes within the block."""
        try:
            for member in self._members:
                member.start()
            yield
            for member in self._members:
                member.end("end of input")
                check(member.gone() == 0, f"{member.name} ended with an error")
        finally:
            for member in self._members:
                if member.runs:
                    member.kill()
                    member.gone()

    # -- a round -----------------------------------------------------------

    def round(self, kills: int) -> None:
        """Go on until there were so many kills, let everybody finish, and judge.

        Raises:
            WrongAnswerError: something was lost, doubled or stale, or not answered.
        """
        self._round += 1
        self._history = {key: [] for key in [*self._registers(), *self._logs()]}
        for name in self._logs():
            call(self._members[0], "create_session", {"session_id": name, "purpose": "chaos"})
        next_fault = 0.0
        while self.counts["SIGKILL"] < kills:
            now = time.monotonic()
            if now >= next_fault:
                self._strike(now)
                next_fault = now + self._chance.expovariate(1 / FAULT_SECONDS)
            self._work(now, busy=True)
        for member in self._members:
            member.go_on()
        while any(self._open) or any(self._again.values()) or any(self._restarts) or self._is_ending():
            self._work(time.monotonic(), busy=False)
        self._judge()

    def _registers(self) -> list[str]:
        return [f"register-{self._round}-{number}" for number in range(REGISTERS)]

    def _logs(self) -> list[str]:
        return [f"log-{self._round}-{number}" for number in range(LOGS)]

    def _is_ending(self) -> bool:
        return any(member.ending for member in self._members)

    def _work(self, now: float, *, busy: bool) -> None:
        """Send what is to be sent, and take what comes within some milliseconds."""
        for number, member in enumerate(self._members):
            if member.paused_until and now >= member.paused_until:
                member.go_on()
            if not member.runs and now >= self._restarts[number]:
                self._restarts[number] = 0.0
                self._widths[number] = self._chance.choice(WIDTHS)
                self._serials[number] = 0
                member.start()
                self._note(f"{member.name} is started")
            if member.runs and not member.ending:
                self._fill(number, member, busy=busy)
                late = now - max(
                    member.since, min((each.sent for each in self._open[number].values()), default=now)
                )
                check(late < 2 * PATIENCE, f"{member.name} does not answer")
        for number in wait_for_any(self._members, 0.005):
            member = self._members[number]
            self._take(number, member.receive())
            if member.channel.ended:
                self._ended(number)

    # -- what clients do ---------------------------------------------------

    def _fill(self, number: int, member: Member, *, busy: bool) -> None:
        again = self._again[member.agent]
        while again and len(self._open[number]) < self._widths[number]:
            operation = again.pop(0)
            operation.repeated = True
            self._send(number, operation)
        while busy and len(self._open[number]) < self._widths[number]:
            operation = self._another(number, member)
            self._history[operation.key].append(operation)
            self._send(number, operation)
            other = (number + len(AGENTS)) % len(self._members)
            if operation.idempotency and self._chance.random() < 0.1 and self._members[other].is_up:
                operation.repeated = True
                self._send(other, operation)
        member.channel.flush()

    def _another(self, number: int, member: Member) -> Operation:
        """Return something new to ask."""
        is_log = self._chance.random() < 0.4
        name = self._chance.choice(self._logs() if is_log else self._registers())
        self._serials[number] += 1
        self._tokens += 1
        token = f"token-{self._tokens}" if self._chance.random() < 0.6 else ""
        operation = Operation(
            name if is_log else f"{name} {member.agent}",
            token,
            stream=member.name,
            serial=self._serials[number],
            sent=time.monotonic(),
            writer=member.agent if is_log else "",
        )
        self._history.setdefault(operation.key, [])
        if token and self._chance.random() < 0.5:
            operation.idempotency = f"key-{token}"
        return operation

    def _send(self, number: int, operation: Operation) -> None:
        member = self._members[number]
        if member.ending or not member.runs:
            return
        name = operation.key.split()[0]
        arguments: dict[str, Any]
        if name.startswith("log"):
            tool, arguments = "get_messages", {"session_id": name, "limit": 1}
            if operation.token:
                tool, arguments = "add_message", {"session_id": name, "content": operation.token}
        else:
            tool, arguments = "get_memory", {"key": name}
            if operation.token:
                tool, arguments = "set_memory", {"key": name, "value": operation.token}
        if operation.idempotency:
            arguments["idempotency_key"] = operation.idempotency
        self._open[number][member.ask(tool, arguments)] = operation

    def _take(self, number: int, answers: list[Answer]) -> None:
        now = time.monotonic()
        member = self._members[number]
        for answer in answers:
            assert isinstance(answer.id, int)
            operation = self._open[number].pop(answer.id, None)
            check(operation is not None, f"{member.name} answered {answer.id} which was not open: {answer}")
            assert operation is not None
            went_well, words = told(answer)
            self.counts["answered"] += 1
            if not went_well:
                self._failed(operation, words, now, member)
                continue
            first = operation.known is Known.NOTHING and operation.stream == member.name
            if first and operation.sent > member.up_since:
                self._waits.append(now - operation.sent)
            try:
                operation.answered(now, *_place(operation, words))
            except ValueError as error:
                check(right=False, sentence=str(error))

    def _failed(self, operation: Operation, words: Any, now: float, member: Member) -> None:
        code = words.get("code") if isinstance(words, dict) else words
        if code == "MEMORY_NOT_FOUND" and not operation.token:
            operation.answered(now, 0)
            return
        self.counts[str(code)] += 1
        known = words.get("details", {}).get("outcome") if isinstance(words, dict) else None
        refused = code in REFUSED and known != "unknown"
        hung_up = code == HUNG_UP and member.ending == "SIGTERM"
        unsure = hung_up or (code in UNSURE | REFUSED and not refused)
        check(refused or unsure, f"{operation} was answered with {words}")
        if operation.idempotency:
            self._again[member.agent].append(operation)
        elif unsure:
            operation.known = Known.UNSURE
        elif operation.known is Known.NOTHING:
            operation.known = Known.REFUSED

    # -- what happens to servers -------------------------------------------

    def _strike(self, now: float) -> None:
        """Do something to somebody."""
        running = [member for member in self._members if member.runs and not member.ending]
        if not running:
            return
        up = [member for member in running if member.is_up]
        roll = self._chance.random()
        if len(up) <= 1 and roll < 0.95:
            return  # otherwise nobody ever gets anywhere
        victim = owner(self._folder, running)
        if victim is None or self._chance.random() < 0.35:
            victim = self._chance.choice(running)
        if roll < 0.7:
            self._kill(victim)
        elif roll < 0.85:
            longest = LONG_PAUSE if self._chance.random() < 0.03 else self._chance.uniform(0.01, 0.7)
            victim.signal(signal.SIGSTOP)
            victim.paused_until = now + longest
            self.counts["SIGSTOP"] += 1
            self._note(f"{victim.name} is stopped for {longest:.2f} s")
        elif roll < 0.98:
            how = self._chance.choice(("SIGTERM", "end of input"))
            if not victim.is_up or victim.channel.unsent:
                return  # before it listens to signals, or while it does not read
            self.counts[how] += 1
            self._note(f"{victim.name} gets {how}")
            victim.end(how)
        else:
            for member in running:
                self._kill(member)

    def _note(self, event: str) -> None:
        self.events.append(f"{time.monotonic() - self._began:.3f} s: {event}")

    def _kill(self, member: Member) -> None:
        self.counts["SIGKILL"] += 1
        owns = member is owner(self._folder, self._members)
        self.counts["owners killed"] += owns
        self._note(f"{member.name} is killed{', which owns the folder' if owns else ''}")
        number = self._members.index(member)
        member.kill()
        self._take(number, member.rest())
        self._bury(number)

    def _ended(self, number: int) -> None:
        """A process ended by itself: it should have been asked to."""
        member = self._members[number]
        how = member.ending
        unanswered = len(self._open[number])
        code = self._bury(number)
        check(how, f"{member.name} ended by itself with code {code}")
        check(code == 0, f"{member.name} ended at {how} with code {code}")
        check(
            how != "end of input" or not unanswered,
            f"{member.name} left {unanswered} calls unanswered at {how}",
        )

    def _bury(self, number: int) -> int:
        """Take leave of an ended process: what had a key is asked again elsewhere."""
        member = self._members[number]
        unanswered, self._open[number] = self._open[number], {}
        for operation in unanswered.values():
            self.counts["left unanswered"] += 1
            if operation.idempotency and operation.known is Known.NOTHING:
                self._again[member.agent].append(operation)
        self._restarts[number] = time.monotonic() + self._chance.uniform(0.001, 0.2)
        return member.gone()

    # -- what came of it ---------------------------------------------------

    def _judge(self) -> None:
        wrong: list[str] = []
        for key, operations in self._history.items():
            name, _, agent = key.partition(" ")
            kind: Kind = "log" if name.startswith("log") else "register"
            if kind == "register" and not agent:
                continue
            readers = [member for member in self._members if not agent or member.agent == agent]
            read = log if kind == "log" else register
            seen = [read(reader, name) for reader in readers]
            if any(each != seen[0] for each in seen):
                wrong.append(f"{key}: not the same through every process")
            wrong += [f"{key}: {fault}" for fault in faults(kind, operations, seen[0])]
            self._count(operations, {entry.token for entry in seen[0]})
        check(not wrong, f"round {self._round}: {len(wrong)} faults: " + "; ".join(wrong[:SHOWN]))
        self.counts["rounds"] += 1

    def _count(self, operations: list[Operation], stored: set[str]) -> None:
        for operation in operations:
            self.counts["writes" if operation.token else "reads"] += 1
            if operation.token and operation.known is Known.NOTHING:
                self.counts["never answered"] += 1
                self.counts["of these done"] += operation.token in stored

    def report(self) -> Report:
        """Return what was done to whom, and what was asked."""
        seconds = time.monotonic() - self._began
        rows: list[list[str | float]] = [[what, count] for what, count in sorted(self.counts.items())]
        rows += [
            ["longest wait for an answer, ms", max(self._waits) * 1e3],
            ["99 % of the waits, ms", percentile(self._waits, 99) * 1e3],
            ["50 % of the waits, ms", percentile(self._waits, 50) * 1e3],
            ["seconds", seconds],
        ]
        table = Table(
            title=f"{len(self._members)} processes on one folder: nothing lost, doubled or stale",
            columns=["what", "how much"],
            rows=rows,
        )
        return Report(tables=[table])


def _place(operation: Operation, words: dict[str, Any]) -> tuple[int, str]:
    """Return the place that an answer says, and what a read of a register saw."""
    if operation.key.startswith("log"):
        return (words["message_id"] if operation.token else words["total"]), ""
    return words["version"], "" if operation.token else words["value"]
