"""The questions of `greenroom setup`: which clients, which tools, whether hooks, and consent."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final, TypeVar

from greenroom.transports.clients.setup.change import SetupError, find_entry
from greenroom.transports.clients.setup.faults import start_of
from greenroom.transports.clients.setup.files import read
from greenroom.transports.clients.table import CLIENTS, HOOK_CLIENTS, Client
from greenroom.transports.ops.cli.output import remark, say

T = TypeVar("T")
MORE_TOOLS: Final = ("core", "knowledge", "code")
"""The tool profiles with documents and code as well."""
DEFAULT_TOOLS: Final = ("core",)
_YES: Final = frozenset({"y", "yes"})
_NO: Final = frozenset({"n", "no"})


class CancelledError(SetupError):
    """The user ended the input instead of answering."""


def can_ask() -> bool:
    """Whether there is a terminal to ask on."""
    return sys.stdin is not None and sys.stdin.isatty()


def list_found(names: Sequence[str]) -> None:
    """Print the clients that were found, with their numbers."""
    say("found here:")
    wide = max(map(len, names))
    for number, name in enumerate(names, start=1):
        say(f"  {number:>2}  {name:<{wide}}  {CLIENTS[name].title}{_state(CLIENTS[name])}")


def _state(client: Client) -> str:
    try:
        return "" if find_entry(client, read(client.path())) is None else ", set up"
    except SetupError:
        return ", its file cannot be read"


def ask_clients(names: Sequence[str]) -> list[str]:
    """Ask which of these clients to set up."""
    return _ask(
        "Which ones? Numbers with commas or spaces, or all [all]:", lambda typed: _chosen(typed, names)
    )


def _chosen(typed: str, names: Sequence[str]) -> list[str] | str:
    """Return the chosen clients, or what is wrong."""
    numbered = {str(number): name for number, name in enumerate(names, start=1)}
    known = numbered | {name: name for name in names}
    words = [word for word in re.split(r"[\s,;]+", typed.lower()) if word]
    if not words or "all" in words:
        return list(names)
    if unknown := [word for word in words if word not in known]:
        return f"{unknown[0]!r} is none of the numbers 1 to {len(names)}"
    return list(dict.fromkeys(known[word] for word in words))


def ask_tools(names: Sequence[str]) -> tuple[str, ...] | None:
    """Ask which tools these clients get; None keeps what each has."""
    from greenroom.transports.mcp.tools.tool_profiles import PROFILES  # noqa: PLC0415 - slow, and only to ask

    def count(profiles: Sequence[str]) -> int:
        return len({tool for each in profiles for tool in PROFILES[each].tools or ()})

    choices = {"": None, "1": DEFAULT_TOOLS, "2": MORE_TOOLS}
    default = "as set up" if any(map(_has_more_tools, names)) else "1"
    remark("\nWhat shall your agents have?")
    remark(f"   1  sessions and memories ({count(DEFAULT_TOOLS)} tools)")
    remark(f"   2  documents and code as well ({count(MORE_TOOLS)} tools)")
    return _ask(f"1 or 2 [{default}]:", lambda typed: choices.get(typed, "type 1 or 2"))


def _has_more_tools(name: str) -> bool:
    with suppress(SetupError):  # which is reported when the file is to be changed
        return name in CLIENTS and held_tools(CLIENTS[name]) is not None
    return False


def held_tools(client: Client) -> str | None:
    """Return the tool profiles in a client's entry; None if it names none."""
    start = start_of(client, find_entry(client, read(client.path())))
    return None if start is None else start.value_of("--tools")


def ask_hooks(names: Sequence[str]) -> list[str]:
    """Ask whether to set up the hooks of those clients that have any."""
    having = [name for name in names if name in HOOK_CLIENTS]
    if not having:
        return []
    titles = " and ".join(CLIENTS[name].title for name in having)
    remark(f"\nHooks begin each session of {titles} with what is known, whether the agent asks or not.")
    remark(
        "They keep the conversation, commands and file names: on this machine alone, without known secrets."
    )
    return having if _ask("Set up hooks? [y/N]:", lambda typed: _is_yes(typed, default=False)) else []


def ask_consent(question: str) -> bool:
    """Ask for consent to changes that were shown."""
    return _ask(f"\n{question} [Y/n]:", lambda typed: _is_yes(typed, default=True))


def _is_yes(typed: str, *, default: bool) -> bool | str:
    word = typed.lower()
    if not word:
        return default
    return word in _YES if word in _YES | _NO else "type y or n"


def _ask(question: str, read_answer: Callable[[str], T | str]) -> T:
    """Ask until there is an answer; what is wrong with one is a text."""
    while True:
        sys.stderr.write(f"{question} ")
        sys.stderr.flush()
        typed = sys.stdin.readline()
        if not typed:
            remark("")
            raise CancelledError("nothing was written")
        answer = read_answer(typed.strip())
        if not isinstance(answer, str):
            return answer
        remark(answer)
