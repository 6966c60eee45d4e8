"""A process that shares a folder: does what its lines of input say, and prints what comes of it.

Run as ``python -m support.tool FOLDER``. It prints ``{"role": …}`` when it is open, and again when it owns
the folder. A line ``{"id": 1, "do": "append", "key": "log", "entry": "a"}`` is asked at once, in order, and
answered with ``{"id": 1, "value": …}`` or ``{"id": 1, "error": …}``; the end of input ends it in order.
"""

from __future__ import annotations

import json
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

import outcome
import trio
from support.actors import Add, Append, Entries, Place, Read, Rows
from support.relays import SHARED, Publish

from greenroom.runtime import (
    Address,
    GreenroomError,
    Message,
    RuntimeOptions,
    SharedRuntime,
    open_shared_runtime,
)

if TYPE_CHECKING:
    from greenroom.runtime import Result


def say(**words: Any) -> None:
    sys.stdout.write(json.dumps(words) + "\n")
    sys.stdout.flush()


def message_of(command: dict[str, Any]) -> tuple[Address, Message[Any]]:
    key = command.get("key", "it")
    match command["do"]:
        case "add":
            return Address("counter", key), Add(by=command.get("by", 1))
        case "read":
            return Address("counter", key), Read()
        case "append":
            return Address("log", key), Append(entry=command["entry"])
        case "entries":
            return Address("log", key), Entries()
        case "place":
            return Address("shelf", key), Place(key=command["at"].encode(), value=command["value"])
        case "publish":
            return Address("herald", key), Publish(label=command.get("label", ""))
    raise ValueError(command)


def answer(number: int, result: Result) -> None:
    if isinstance(result, outcome.Value):
        say(id=number, value=result.value)
    else:
        say(id=number, error=type(result.error).__name__, sentence=str(result.error))


async def hear(runtime: SharedRuntime, topics: list[str], number: int) -> None:
    with runtime.subscriber(0.01) as subscriber:
        for topic in topics:
            subscriber.add(topic)
        say(id=number, value=None)
        async for topic in subscriber:
            say(heard=topic)


async def tell_role(runtime: SharedRuntime) -> None:
    if runtime.role == "attached":
        await runtime.wait_until_owner()
        say(role="owner")


async def ask_rows(runtime: SharedRuntime, number: int) -> None:
    try:
        say(id=number, value=[value for _, _, value in await runtime.query(Rows())])
    except GreenroomError as error:
        say(id=number, error=type(error).__name__, sentence=str(error))


async def main(folder: str, options: RuntimeOptions) -> None:
    async with (
        open_shared_runtime(folder, options=options, **SHARED) as runtime,
        trio.open_nursery() as nursery,
    ):
        say(role=runtime.role)
        nursery.start_soon(tell_role, runtime)
        received = b""
        async for part in trio.lowlevel.FdStream(0):
            *lines, received = (received + part).split(b"\n")
            for line in lines:
                command = json.loads(line)
                number = command["id"]
                match command["do"]:
                    case "rows":
                        nursery.start_soon(ask_rows, runtime, number)
                    case "hear":
                        nursery.start_soon(hear, runtime, command["topics"], number)
                    case "statistics":
                        relay = runtime.statistics().relay
                        assert relay is not None
                        say(id=number, value={name: getattr(relay, name) for name in relay.__struct_fields__})
                    case _:
                        try:
                            runtime.post(*message_of(command), partial(answer, number), principal="tool")
                        except GreenroomError as error:
                            answer(number, outcome.Error(error))
            runtime.run_ready()
        nursery.cancel_scope.cancel()


if __name__ == "__main__":
    try:
        trio.run(main, sys.argv[1], RuntimeOptions(**json.loads(sys.argv[2]) if len(sys.argv) > 2 else {}))
    except GreenroomError as ended:
        say(ended=type(ended).__name__, sentence=str(ended))
        sys.exit(1)
