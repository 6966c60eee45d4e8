"""Why an answer is empty: every reason there is, with its code, its sentence and what to do about it."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final, NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from greenroom.actors.core.auth.scopes import tools_of

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

    def with_parameter(self, today: str, older: str) -> EmptyBecause:
        """Return the same with a parameter by its older name."""
        named = re.compile(rf"\b(fits|and|change|or) {re.escape(today)}\b")
        said = {
            "sentence": named.sub(rf"\1 {older}", self.sentence),
            "remedy": UNSET if self.remedy is UNSET else named.sub(rf"\1 {older}", self.remedy),
        }
        return msgspec.structs.replace(self, **said)


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
        "of the {what} that you may see here none fits {filters}{near}", "change {names}"
    ),
    "nothing_relevant": Reason("none of the {what} has to do with what was asked", "ask in other words"),
    "no_embedder": Reason(
        "by words none of the {what} has to do with what was asked, and nothing else compares: {why}",
        "ask in their words; `greenroom embedder install` gives the server a model for what words mean",
    ),
    "corpus_unknown": Reason(
        "there is no corpus {name!r} that you may see{near}",
        "`greenroom ingest` and ingest_documents make one",
        "ingest_documents",
    ),
    "no_such_text": Reason(
        "none of the {what} has the text as it stands", "mode semantic goes by words and meaning"
    ),
    "cut": Reason("not all was looked through: {why}", "ask again"),
    "indexing": Reason(
        "the index has {indexed} of {of} so far and goes on; ask again in a moment",
        "read_file reads any file now",
        "read_file",
    ),
    "not_read": Reason(
        "by syntax none of the {what} has to do with what was asked, and {why}",
        "code_search with a regular expression looks in all texts",
        "code_search",
    ),
    "index_off": Reason("nobody keeps an index of the folder here", "read_file reads any file", "read_file"),
    "not_indexed": Reason("{path} is not in the index, so nothing can be compared with it"),
    "stands_alone": Reason("of the workspace {target} knows only itself: {ways}"),
    "unknown_ids": Reason(
        "there are no {what} of these ids, or no more",
        "semantic_search finds passages and their ids",
        "semantic_search",
    ),
    "not_declared": Reason(
        "nothing is called {name!r}, neither of what is declared nor of what the documents repeat",
        "semantic_search finds what the texts say once; suggest_entities lists the names that they repeat: "
        "{count}",
        "suggest_entities",
    ),
    "all_declared": Reason("the documents repeat no names that nobody has declared"),
    "learning_off": Reason(
        "no {what} were recorded, and calls of tools are not: the server runs without learn-workflows",
        "record_workflow_step records one",
        "record_workflow_step",
    ),
    "nothing_repeated": Reason("of the {count} steps that were recorded none came again after others"),
    "nothing_new": Reason("no {what} that you may see came since", "ask again later"),
    "goes_on": Reason("none of the {what} that were looked at so far fits", "next_cursor goes on"),
    "no_more": Reason("the page before was the last", "begin again without {filters}"),
    "over_budget": Reason("none of the {what} that were found fits into max_tokens", "allow more tokens"),
    "unexplained": Reason("nothing was found, and it could not be looked up in time why", "ask again"),
}
"""Every reason, by its code. Who adds one says it here, and nowhere else."""

_MAKERS: Final[dict[str, Reason]] = {
    "sessions": Reason("", "start_session begins one", "start_session"),
    "messages": Reason("", "add_message says something", "add_message"),
    "memories": Reason("", "store_memory keeps one", "store_memory"),
    "keys of your own": Reason("", "set_memory keeps a value under a key", "set_memory"),
    "API keys": Reason("", "create_api_key makes one", "create_api_key"),
    "documents": Reason("", "ingest_documents takes some in", "ingest_documents"),
    "collections of documents": Reason("", "ingest_documents makes one", "ingest_documents"),
    "steps": Reason("", "record_workflow_step records one", "record_workflow_step"),
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


def no_match(
    scopes: Iterable[str], what: str, filters: Mapping[str, object], known: Callable[[str], Collection[str]]
) -> EmptyBecause:
    """Return that filters leave nothing of what there is.

    Args:
        scopes: As `because` has them.
        what: What was filtered.
        filters: The filters and their values.
        known: Returns what the caller may see of the values that a filter compares.
    """
    near = next(filter(None, (did_you_mean(value, known(name)) for name, value in filters.items())), "")
    said = " and ".join(_quoted(name, value) for name, value in filters.items())
    names = " or ".join(filters)
    return because(scopes, "filter_matches_nothing", what=what, filters=said, names=names, near=near)


def did_you_mean(wanted: object, known: Collection[str]) -> str:
    """Return the end of a sentence that names what is spelled nearly like a text, or one of several."""
    words = [wanted] if isinstance(wanted, str) else wanted if isinstance(wanted, list) else []
    folded = {each.casefold(): each for each in known}
    near = [
        folded[found]
        for word in words
        for found in difflib.get_close_matches(str(word)[:_LONGEST].casefold(), folded, n=2, cutoff=_NEAR)
        if folded[found] != word
    ]
    return f"; did you mean {' or '.join(map(repr, dict.fromkeys(near)))}?" if near else ""


def _quoted(name: str, value: object) -> str:
    """Return a filter as a sentence names it: with its value, if that is short."""
    text = repr(value) if isinstance(value, str) else msgspec.json.encode(value).decode()
    return f"{name} {text}" if len(text) <= _LONGEST else name
