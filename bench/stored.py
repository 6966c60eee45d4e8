"""Everything that is there in the end, as one process of a troupe tells it while nothing else is open."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from bench.client import PATIENCE
from bench.harness import check
from bench.history import Stored
from bench.troupe import Member, told, wait_for_any

PAGE: Final = 1_000
AT_ONCE: Final = 16


def log(reader: Member, name: str) -> list[Stored]:
    """Return the messages of a session."""
    found: list[Stored] = []
    cursor: dict[str, str] = {}
    while True:
        page = call(reader, "get_messages", {"session_id": name, "limit": PAGE, **cursor})
        found += [Stored(each["message_id"], each["content"], each["sender"]) for each in page["messages"]]
        if page["next_cursor"] is None:
            return found
        cursor = {"cursor": page["next_cursor"]}


def register(reader: Member, name: str) -> list[Stored]:
    """Return the versions of an entry of the reader's memory."""
    if not call(reader, "list_memory", {"prefix": name})["entries"]:
        return []
    newest = call(reader, "get_memory", {"key": name})["version"]
    versions = [{"key": name, "version": version} for version in range(1, newest + 1)]
    return [Stored(each["version"], each["value"]) for each in call_all(reader, "get_memory", versions)]


def call(member: Member, tool: str, arguments: dict[str, Any]) -> Any:
    """Return what a call is answered."""
    return call_all(member, tool, [arguments])[0]


def call_all(member: Member, tool: str, calls: Sequence[dict[str, Any]]) -> list[Any]:
    """Return what calls are answered, some of which are open at once.

    Raises:
        WrongAnswerError: one failed.
    """
    found: dict[int | str | None, Any] = {}
    numbers = []
    for at in range(0, len(calls), AT_ONCE):
        some = [member.ask(tool, arguments) for arguments in calls[at : at + AT_ONCE]]
        numbers += some
        while not found.keys() >= set(some):
            member.channel.flush()
            check(wait_for_any([member], PATIENCE), f"{member.name} does not answer")
            for answer in member.receive():
                went_well, words = told(answer)
                check(went_well, f"{tool} was answered with {words}")
                found[answer.id] = words
            check(not member.channel.ended, f"{member.name} has ended")
    return [found[number] for number in numbers]
