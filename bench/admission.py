"""What it costs to know who asks: a key at the door, a request that is counted, a scope that is missing."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from pathlib import Path

import trio

from bench.harness import Figure, Plan, Report, Table, check, medians
from greenroom.actors import Agent, CreateApiKey, KeyRefusedError, Principal, open_greenroom, open_key_cache
from greenroom.actors.core.auth.key_format import new_key
from greenroom.runtime import RuntimeOptions
from greenroom.transports.auth.authenticator import KeyAuthenticator
from greenroom.transports.auth.caller import Caller

ROUNDS = 5


def run(plan: Plan) -> Report:
    """Measure the parts of admission, each many times in a row."""
    with plan.folder() as folder:
        found = trio.run(_measured, folder, plan.size(100_000, 1_000))
    rows: list[list[str | float | None]] = [[what, value] for what, value in found.items()]
    return Report(
        tables=[Table(title="admission, CPU for one", columns=["what", "µs"], rows=rows)],
        figures=[
            Figure(what="a request that is counted, µs", value=found["a request counted"], most=3.0),
            Figure(what="a key at the door, µs", value=found["a right key"], most=50.0),
        ],
    )


async def _measured(folder: Path, count: int) -> dict[str, float]:
    options = RuntimeOptions(durability="process")
    async with (
        open_greenroom(folder, embedder="none", options=options) as runtime,
        open_key_cache(runtime) as cache,
    ):
        made = await Agent(runtime, Principal(agent_id="root")).ask(
            CreateApiKey(name="bench", scopes=["*"], rate_limit=1 << 40, burst=1 << 30)
        )
        await cache.load()
        gate = KeyAuthenticator(cache)
        headers = [(b"authorization", f"Bearer {made.api_key}".encode())]
        caller = await gate.authenticate(Caller(), headers)
        check(caller.credential is not None, "a right key opens")
        toll = gate.rate_limit(caller)
        check(toll is not None, "who comes by a key is counted")
        assert toll is not None, "it was checked"
        wrong = new_key(secrets.choice).whole

        def refused() -> None:
            try:
                cache.authenticate(wrong)
            except KeyRefusedError:
                return
            check(right=False, sentence="a wrong key opens nothing")

        def counted() -> None:
            now = trio.current_time()
            check(toll.frame(now) + toll.request(now) == 0, "there is room for each")

        def admitted() -> None:
            coroutine = gate.authenticate(Caller(), headers)
            try:
                coroutine.send(None)
            except StopIteration as done:
                check(done.value == caller, "the same key opens the same")

        return medians(
            {
                "a request counted": [_each(counted, count) for _ in range(ROUNDS)],
                "a right key": [_each(admitted, count // 10) for _ in range(ROUNDS)],
                "a wrong key": [_each(refused, count // 10) for _ in range(ROUNDS)],
            }
        )


def _each(work: Callable[[], None], count: int) -> float:
    """Return the microseconds of CPU that one of many takes."""
    began = time.process_time()
    for _ in range(count):
        work()
    return (time.process_time() - began) / count * 1e6
