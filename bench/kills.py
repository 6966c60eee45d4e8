"""The owner of a folder is killed while it writes memories, messages and keys, forgets and imports.

Two processes are on one folder, each with a client that keeps writes in flight. Whenever some were answered
the owner is killed, sometimes the other, or both. What was left unanswered is asked again through who takes
over, and who was killed comes back behind it. After some kills all must be answered. Then both processes must
tell of everything (`bench.ledger`), and `greenroom verify` and `greenroom audit verify` must find nothing.
`bench.chaos` judges the order of what clients saw; this one, whether the store agrees with itself.
"""

from __future__ import annotations

import random
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any, Final

from bench.chaos import REFUSED, UNSURE
from bench.client import PATIENCE, Answer
from bench.crash_images import verified
from bench.harness import Plan, Report, Table, WrongAnswerError, check
from bench.ledger import Ledger, Write
from bench.troupe import Member, owner, told, wait_for_any

ROUND_KILLS: Final = 20
SMOKE_KILLS: Final = 4
IN_FLIGHT: Final = 8
MOST_ANSWERS: Final = 30
"""Between two kills."""
OTHERS: Final = 0.2
"""How often it is not the owner that is killed."""
BOTH: Final = 0.1
"""How often both are, so that the next one opens the store."""
SHOWN: Final = 10
SHOWN_BYTES: Final = 4_000
SEED: Final = 20_261_201


def run(plan: Plan) -> Report:
    """Kill so often."""
    wanted = plan.size(plan.kills, SMOKE_KILLS)
    with plan.folder() as folder:
        errors = folder / "stderr"
        killer = Killer(folder / "data", errors)
        try:
            killer.play(wanted, quietly=plan.smoke)
        except WrongAnswerError as error:
            raise WrongAnswerError(f"{error}\n{errors.read_text()[-SHOWN_BYTES:]}") from None
    table = Table(
        title="killed while they wrote: nothing lost, doubled or contradicted",
        columns=["what", "how often"],
        rows=[[what, count] for what, count in sorted(killer.counts.items())],
    )
    return Report(tables=[table])


class Killer:
    """Two processes on a folder, and who kills them.

    Args:
        folder: What they serve.
        errors: A file for what they say.

    Attributes:
        counts: How often what happened.
    """

    def __init__(self, folder: Path, errors: Path) -> None:
        self.counts: Counter[str] = Counter()
        self._folder = folder
        flags = ("--user", "bench", "--embedder", "static")
        self._members = [Member(number, folder, "bench", errors, flags=flags) for number in range(2)]
        self._open: list[dict[int, Write]] = [{}, {}]
        self._again: list[Write] = []
        self._chance = random.Random(SEED)
        self._serial = 0

    def play(self, kills: int, *, quietly: bool) -> None:
        """Kill in rounds, and judge after each.

        Raises:
            WrongAnswerError: something is lost, doubled or contradicted, or was not answered.
        """
        try:
            for member in self._members:
                member.start()
            while self.counts["kills"] < kills:
                self._round(min(ROUND_KILLS, kills - self.counts["kills"]))
                if not quietly:
                    print(f"kills: {self.counts['kills']}", file=sys.stderr, flush=True)
            for member in self._members:
                member.end("end of input")
                check(member.gone() == 0, f"{member.name} ended with an error")
        finally:
            for member in self._members:
                if member.runs:
                    member.kill()
                    member.gone()

    def _round(self, kills: int) -> None:
        self.counts["rounds"] += 1
        ledger = Ledger(f"r{self.counts['rounds']}", self._chance)
        ledger.begin(self._members[0])
        until = self.counts["kills"] + kills
        while self.counts["kills"] < until:
            wanted = self.counts["answers"] + self._chance.randint(1, MOST_ANSWERS)
            while self.counts["answers"] < wanted:
                self._work(ledger)
            self._strike()
        while any(self._open) or self._again:
            self._work(None)
        self.counts["writes"] += len(ledger.writes)
        wrong = [
            f"{member.name}: {problem}" for member in self._members for problem in ledger.problems(member)
        ]
        wrong += verified(self._folder)
        check(not wrong, f"round {self.counts['rounds']}, {len(wrong)} faults: " + "; ".join(wrong[:SHOWN]))

    def _work(self, ledger: Ledger | None) -> None:
        """Send what is to be sent, of a ledger also what is new, and take answers."""
        for place, member in enumerate(self._members):
            while len(self._open[place]) < IN_FLIGHT and (self._again or ledger is not None):
                if self._again:
                    write = self._again.pop(0)
                    write.operation.repeated = True
                else:
                    assert ledger is not None
                    self._serial += 1
                    write = ledger.next(member.name, self._serial)
                self._open[place][member.ask(write.tool, write.arguments)] = write
            member.channel.flush()
        since = time.monotonic()
        places: list[int] = []
        while not places:
            check(time.monotonic() < since + PATIENCE, "nobody answers")
            places = wait_for_any(self._members, 1.0)
            for member in self._members:
                member.channel.flush()
        for place in places:
            member = self._members[place]
            self._take(place, member.receive())
            check(not member.channel.ended, f"{member.name} ended by itself")

    def _take(self, place: int, answers: list[Answer]) -> None:
        for answer in answers:
            assert isinstance(answer.id, int)
            write = self._open[place].pop(answer.id)
            went_well, words = told(answer)
            if went_well:
                self.counts["answers"] += 1
                write.answered(words)
                continue
            code: Any = words.get("code") if isinstance(words, dict) else words
            check(code in REFUSED | UNSURE, f"{write.operation} was answered with {words}")
            self.counts[str(code)] += 1
            self._again.append(write)

    def _strike(self) -> None:
        """Kill the owner, or now and then the other process, or both."""
        found = owner(self._folder, self._members)
        roll = self._chance.random()
        if roll < BOTH:
            victims = self._members
        elif roll < BOTH + OTHERS or found is None:
            victims = [next(member for member in self._members if member is not found)]
        else:
            victims = [found]
        self.counts["owners killed"] += found in victims
        for victim in victims:
            self._kill(victim)
        for victim in victims:
            victim.start()

    def _kill(self, victim: Member) -> None:
        self.counts["kills"] += 1
        place = self._members.index(victim)
        victim.kill()
        self._take(place, victim.rest())
        self._again += self._open[place].values()
        self.counts["left unanswered"] += len(self._open[place])
        self._open[place] = {}
        victim.gone()
