"""Why an answer is empty: every reason there is, with its code, its sentence and what to do about it."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable
from typing import Final, NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from greenroom.actors.auth.scopes import tools_of

_LONGEST: Final = 200
"""Characters of a value that a sentence quotes."""
_NEAR: Final = 0.6


class EmptyBecause(msgspec.Struct, frozen=True, kw_only=True):
    """Why an answer is empty.

    Attributes:
        code: One of `REASONS`.
        sentence: The reason, for people and models.
        remedy: What to do about it; absent where there is nothing that the caller could do.
    """

    code: str
    sentence: str
    remedy: str | UnsetType = UNSET


class Reason(NamedTuple):
    """A reason why an answer is empty; braces stand for what `because` is given.

    Attributes:
        sentence: The reason.
        remedy: What to do about it; empty for nothing.
        tool: The tool that the remedy names: who may not call it is not given the remedy.
    """

    sentence: str
    remedy: str = ""
    tool: str = ""


REASONS: Final[dict[str, Reason]] = {
    "nothing_stored": Reason("there are no {what} here that you may see"),
    "filter_matches_nothing": Reason(
        "of the {what} that you may see here none fits {filters}{near}", "change {filters}"
    ),
    "nothing_relevant": Reason("no {what} has to do with what was asked", "ask in other words"),
    "no_more": Reason("the page before was the last", "begin again without {filters}"),
    "over_budget": Reason("none of the {what} that were found fits into max_tokens", "allow more tokens"),
    "unexplained": Reason("nothing was found, and it could not be looked up in time why", "ask again"),
}
"""Every reason, by its code. Who adds one says it here, and nowhere else."""

_MAKERS: Final[dict[str, Reason]] = {
    "sessions": Reason("", "start_session begins one", "start_session"),
    "messages": Reason("", "add_message says something", "add_message"),
    "memories": Reason("", "store_memory keeps one", "store_memory"),
}
"""How there come to be some of what is not stored yet."""


def because(scopes: Iterable[str], code: str, **said: object) -> EmptyBecause:
    """Return the reason of a code.

    Args:
        scopes: Those of the caller, who is advised to call no other tools than these open.
        code: One of `REASONS`.
        said: What its sentence and its remedy leave open.
    """
    reason = REASONS[code]
    advice = _MAKERS.get(str(said.get("what")), reason) if code == "nothing_stored" else reason
    is_open = not advice.tool or advice.tool in tools_of(frozenset(scopes))
    return EmptyBecause(
        code=code,
        sentence=reason.sentence.format(**said),
        remedy=advice.remedy.format(**said) if advice.remedy and is_open else UNSET,
    )


def did_you_mean(wanted: object, known: Collection[str]) -> str:
    """Return the end of a sentence that names what is spelled nearly like a value, or nothing.

    Args:
        wanted: A text, or several; other values are like nothing.
        known: What the caller may see of such values.
    """
    words = [wanted] if isinstance(wanted, str) else wanted if isinstance(wanted, list) else []
    folded = {each.casefold(): each for each in known}
    near = [
        folded[found]
        for word in words
        for found in difflib.get_close_matches(str(word)[:_LONGEST].casefold(), folded, n=2, cutoff=_NEAR)
        if folded[found] != word
    ]
    return f"; did you mean {' or '.join(map(repr, dict.fromkeys(near)))}?" if near else ""


def quoted(name: str, value: object) -> str:
    """Return a filter as a sentence names it: with its value, if that is short."""
    text = repr(value) if isinstance(value, str) else msgspec.json.encode(value).decode()
    return f"{name} {text}" if len(text) <= _LONGEST else name
