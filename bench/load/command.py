"""Make a load at a fixed rate on an MCP server, and tell how long its answers took.

The rate is kept whatever the server does, and a call's time runs from the moment when it was due.
Templates may hold {n}, the call's number, {n%100}, its remainder, {client}, the client's number,
and what the calls of --before were answered, such as {session_id}. Greenroom's tools need
neither arguments nor preparation; other servers' are given with --tool.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from bench.client import ERAS
from bench.harness import WrongAnswerError
from bench.load.plan import LoadPlan, Step, read_mix, tasks_and_steps
from bench.load.run import run_load

EXAMPLES = """examples:
  python -m bench load --ws ws://127.0.0.1:8765/ --clients 200 --rate 2000 --seconds 60
  python -m bench load --stdio 'greenroom serve --data /tmp/load-{client}' --mix get_memory,set_memory
  python -m bench load --http http://127.0.0.1:8000/mcp --mix echo --tool 'echo={"text":"number {n}"}' \\
      --expect 'echo={"text":"number {n}"}'
"""


def main(arguments: Sequence[str]) -> int:
    """Run the command; return 1 if anything went wrong."""
    parser = _parser()
    chosen = parser.parse_args(arguments)
    try:
        pairs = {name: dict(map(_pair, getattr(chosen, name))) for name in ("tool", "expect")}
        before = [Step(*_pair(each)) for each in chosen.before]
        tasks, steps = tasks_and_steps(read_mix(chosen.mix), pairs["tool"], pairs["expect"], before)
    except ValueError as error:
        parser.error(str(error))
    plan = LoadPlan(
        url=chosen.ws or chosen.http or "",
        command=shlex.split(chosen.stdio or ""),
        era=chosen.era,
        clients=chosen.clients,
        rate=chosen.rate,
        seconds=chosen.seconds,
        tasks=tasks,
        before=steps,
        seed=chosen.seed,
    )
    try:
        outcome = run_load(plan, processes=chosen.processes, pids=chosen.pid, say=_say)
    except WrongAnswerError as error:
        print(f"load: {error}", file=sys.stderr)
        return 1
    finally:
        if sys.stderr.isatty():
            print(file=sys.stderr)
    print(msgspec.json.format(msgspec.json.encode(outcome.document()), indent=2).decode())
    return 1 if outcome.errors else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench load",
        description=__doc__,
        epilog=EXAMPLES,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    target = parser.add_mutually_exclusive_group(required=True)
    target.add_argument("--stdio", metavar="COMMAND", help="start this for each client; may hold {client}")
    target.add_argument("--ws", type=_url("ws"), metavar="URL", help="a server on WebSocket")
    target.add_argument("--http", type=_url("http"), metavar="URL", help="a server on streamable HTTP")
    parser.add_argument("--era", choices=ERAS, default="handshake", help="the protocol's era (%(default)s)")
    parser.add_argument(
        "--clients", type=_positive(int), default=1, metavar="N", help="connections (%(default)s)"
    )
    parser.add_argument(
        "--rate",
        type=_positive(float),
        default=100.0,
        metavar="R",
        help="calls a second, of all (%(default)s)",
    )
    parser.add_argument("--seconds", type=_positive(float), default=10.0, metavar="S", help="(%(default)s)")
    parser.add_argument(
        "--mix",
        default="get_memory=8,add_message=1,search_context=1",
        metavar="NAME=WEIGHT,…",
        help="tools, ping, tools/list or resources/list, and how often each is called (%(default)s)",
    )
    for name, what in (
        ("tool", "a tool's arguments, a template"),
        ("expect", "fields that a tool's answer must have, a template"),
        ("before", "a call that each client makes first, in the order given"),
    ):
        parser.add_argument(f"--{name}", action="append", default=[], metavar="NAME=JSON", help=what)
    parser.add_argument(
        "--processes", type=_positive(int), default=1, metavar="N", help="of the generator (%(default)s)"
    )
    parser.add_argument(
        "--pid", type=_process, action="append", default=[], metavar="PID", help="watch this server's memory"
    )
    parser.add_argument("--seed", type=int, default=1, help="of the order of clients and calls (%(default)s)")
    return parser


def _positive(number: type[int | float]) -> Callable[[str], int | float]:
    def positive(text: str) -> int | float:
        value = number(text)
        if not value > 0:
            raise argparse.ArgumentTypeError("must be above 0")
        return value

    return positive


def _url(scheme: str) -> Callable[[str], str]:
    def url(text: str) -> str:
        if not text.startswith(f"{scheme}://"):
            raise argparse.ArgumentTypeError(f"{text!r} is no {scheme}:// URL")
        return text

    return url


def _process(text: str) -> int:
    if not Path(f"/proc/{int(text)}/status").exists():
        raise argparse.ArgumentTypeError("there is no such process, or no /proc")
    return int(text)


def _pair(text: str) -> tuple[str, str]:
    name, equals, json = text.partition("=")
    if not equals or not json.lstrip().startswith("{"):
        raise ValueError(f"{text!r} is not NAME=JSON with an object")
    return name, json


def _say(line: str) -> None:
    """Tell a second: on a terminal over the one before."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{line}", end="", file=sys.stderr, flush=True)
    else:
        print(line, file=sys.stderr, flush=True)
