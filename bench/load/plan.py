"""What a load consists of, and how the command line says it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from bench.client import Era

METHODS: Final = frozenset({"ping", "tools/list", "resources/list"})
"""What a mix can hold beside tools."""


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of call of a mix.

    Attributes:
        name: The tool, or one of `METHODS`.
        weight: How often it is called, beside the others.
        arguments: A template of the JSON object of its arguments or parameters.
        expected: A template of a JSON object whose fields the answer must have.
    """

    name: str
    weight: int = 1
    arguments: str = "{}"
    expected: str = "{}"


class Step(msgspec.Struct, frozen=True):
    """A call that each client makes before the clock runs.

    What its answer holds under a name, a text or a number, stands for that name in later templates.
    """

    tool: str
    arguments: str


class LoadPlan(msgspec.Struct, frozen=True, kw_only=True):
    """A whole load.

    Attributes:
        url: The server's ``ws://`` or ``http://`` URL; or
        command: the command that starts a server on stdio for each client, with `{client}` in it.
        era: The protocol's era.
        clients: How many clients there are; each is a connection.
        rate: The calls a second of all clients together.
        seconds: For how long.
        tasks: What they call.
        before: What each calls first.
        seed: Of the order of clients and tasks.
    """

    url: str = ""
    command: Sequence[str] = ()
    era: Era = "handshake"
    clients: int = 1
    rate: float = 100.0
    seconds: float = 10.0
    tasks: Sequence[Task]
    before: Sequence[Step] = ()
    seed: int = 1


class Share(msgspec.Struct, frozen=True):
    """The part of one worker: of ``workers``, the one with this index."""

    plan: LoadPlan
    index: int
    workers: int


_NOTE: Final = "remember the milk, the bread and the tea of "
_SESSION: Final = Step("create_session", '{"purpose":"load of client {client}"}')
_VALUES: Final = tuple(
    Step("set_memory", f'{{"key":"load-{key}","value":{{"number":{key},"note":"{_NOTE}{{client}}"}}}}')
    for key in range(4)
)
_FIRST: Final = tuple(
    Step("add_message", f'{{"session_id":"{{session_id}}","content":"{_NOTE}day {day}"}}') for day in range(5)
)
_FINE: Final = '{"success":true}'

GREENROOM: Final[Mapping[str, tuple[Task, tuple[Step, ...]]]] = {
    "get_memory": (
        Task(
            name="get_memory",
            arguments='{"key":"load-{n%4}"}',
            expected='{"value":{"number":{n%4},"note":"' + _NOTE + '{client}"}}',
        ),
        _VALUES,
    ),
    "set_memory": (
        Task(
            name="set_memory",
            arguments='{"key":"written-{n%4}","value":{"number":{n}}}',
            expected='{"key":"written-{n%4}","success":true}',
        ),
        (),
    ),
    "add_message": (
        Task(
            name="add_message",
            arguments='{"session_id":"{session_id}","content":"message {n}: ' + _NOTE + 'day {n%7}"}',
            expected=_FINE,
        ),
        (_SESSION,),
    ),
    "search_context": (
        Task(
            name="search_context",
            arguments='{"session_id":"{session_id}","query":"remembr the bread of day {n%7}"}',
            expected=_FINE,
        ),
        (_SESSION, *_FIRST),
    ),
    "get_session": (
        Task(name="get_session", arguments='{"session_id":"{session_id}"}', expected=_FINE),
        (_SESSION,),
    ),
}
"""Greenroom's tools, whose arguments and preparation need not be given."""


def read_mix(text: str) -> dict[str, int]:
    """Return the weights that a text like ``get_memory=8,add_message=1`` gives; without a number, 1.

    Raises:
        ValueError: it is no such text.
    """
    mix: dict[str, int] = {}
    for part in text.split(","):
        name, _, weight = part.strip().partition("=")
        if not name or name in mix or not (weight or "1").isdecimal() or int(weight or 1) < 1:
            raise ValueError(f"{part!r} is not NAME=WEIGHT, each name once and each weight 1 or more")
        mix[name] = int(weight or 1)
    return mix


def tasks_and_steps(
    mix: Mapping[str, int], arguments: Mapping[str, str], expected: Mapping[str, str], before: Sequence[Step]
) -> tuple[list[Task], list[Step]]:
    """Return what is called, and before: what is said of a tool, else what is known of Greenroom's."""
    tasks = []
    steps: dict[Step, None] = {}
    for name, weight in mix.items():
        unknown: tuple[Task, tuple[Step, ...]] = Task(name=name), ()
        task, first = unknown if name in arguments else GREENROOM.get(name, unknown)
        steps |= dict.fromkeys(first)
        task = msgspec.structs.replace(
            task,
            weight=weight,
            arguments=arguments.get(name, task.arguments),
            expected=expected.get(name, task.expected),
        )
        tasks.append(task)
    return tasks, [*steps, *before]
