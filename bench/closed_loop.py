"""A load with so many requests in flight, always: it shows how many answers a second there can be."""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from bench.channels import Exchange, exchanging
from bench.client import Client, read_answer
from bench.harness import check, percentile
from bench.jobs import Job
from bench.servers import processor_seconds


class Load(NamedTuple):
    """How much is asked of servers.

    Attributes:
        in_flight: How many requests are kept in flight, by all clients together.
        seconds: For how long.
        most: How many requests at most.
    """

    in_flight: int
    seconds: float
    most: int = sys.maxsize


class Driven(NamedTuple):
    """What came of a load.

    Attributes:
        sent: The ids of each client's requests, in order.
        answers: Each client's answers, as they came.
        seconds: From the first request to the last answer.
        waits: The seconds from each sending to what came next: round trips, with one request in flight.
    """

    sent: list[list[int]]
    answers: list[list[bytes]]
    seconds: float
    waits: list[float]

    @property
    def answered(self) -> int:
        """How many requests were answered."""
        return sum(map(len, self.answers))

    @property
    def rate(self) -> float:
        """The answers a second."""
        return self.answered / self.seconds


class Contender(NamedTuple):
    """A server that is measured.

    Attributes:
        pid: Its process.
        clients: What is connected to it.
        job: What they ask.
        judge: Fails the run unless what came of a load is right.
    """

    pid: int
    clients: Sequence[Client]
    job: Job
    judge: Callable[[Contender, Driven], None]


class Cost(NamedTuple):
    """The answers a second, and the µs that a server computed for each, its threads included."""

    rate: float
    processor: float


class Sequential(NamedTuple):
    """How long one request after another takes; milliseconds."""

    median: float
    percentile_99: float


def drive(clients: Sequence[Client], job: Job, load: Load) -> Driven:
    """Keep servers under a load. Nothing is verified yet, so that it costs nothing while the clock runs."""
    with exchanging([client.channel for client in clients]) as exchange:
        while exchange.turn(0):
            pass  # HTTP connections that the server ended while they were idle are made anew
        return _driven(exchange, clients, job, load)


def cost(contender: Contender, load: Load) -> Cost:
    """Put a server under a load, judge what it answered, and return what that took."""
    before = processor_seconds(contender.pid)
    driven = drive(contender.clients, contender.job, load)
    computed = processor_seconds(contender.pid) - before
    contender.judge(contender, driven)
    return Cost(driven.rate, computed * 1e6 / driven.answered)


def sequential(client: Client, job: Job, seconds: float) -> Sequential:
    """Return how long one request after another takes, all answers verified."""
    driven = drive([client], job, Load(1, seconds))
    verify(job, driven.sent[0], driven.answers[0])
    times = [wait * 1e3 for wait in driven.waits]
    return Sequential(statistics.median(times), percentile(times, 99))


def verified(contender: Contender, driven: Driven) -> None:
    """Judge the answers of a server that speaks MCP."""
    for sent, answers in zip(driven.sent, driven.answers, strict=True):
        verify(contender.job, sent, answers)


def verify(job: Job, sent: Sequence[int], answers: Sequence[bytes]) -> None:
    """Check that each request of one client has one answer, and that it is right.

    Raises:
        WrongAnswerError: it is not so.
    """
    found = {}
    for message in answers:
        answer = read_answer(message)
        right = answer.result is not None and not answer.result.is_error
        check(right, f"{job.kind} was answered with {message!r}")
        found[answer.id] = answer.result
    same = len(answers) == len(found) and found.keys() == set(sent)
    check(same, f"{len(sent)} requests of {job.kind} have {len(answers)} answers, or others' ids")
    for number in sent:
        result = found[number]
        assert result is not None
        job.judge(number, result.told())


def _driven(exchange: Exchange, clients: Sequence[Client], job: Job, load: Load) -> Driven:
    sent: list[list[int]] = [[] for _ in clients]
    answers: list[list[bytes]] = [[] for _ in clients]
    waits: list[float] = []
    unanswered = 0
    posted = 0

    def send(who: int) -> None:
        nonlocal posted, unanswered
        posted += 1
        unanswered += 1
        number = clients[who].number()
        exchange.post(who, job.kind, job.body(clients[who], number))
        sent[who].append(number)

    began = time.perf_counter()
    end = began + load.seconds
    for number in range(min(load.in_flight, load.most)):
        send(number % len(clients))
    exchange.flush()
    flushed = time.perf_counter()
    while unanswered:
        for who, messages in exchange.turn():
            now = time.perf_counter()
            check(not clients[who].channel.ended, "the server ended before it had answered")
            if not messages:
                continue
            waits.append(now - flushed)
            answers[who] += messages
            unanswered -= len(messages)
            if now < end:
                for _ in range(min(len(messages), load.most - posted)):
                    send(who)
        exchange.flush()
        flushed = time.perf_counter()
    return Driven(sent, answers, time.perf_counter() - began, waits)
