"""Why a reply is empty: every reason, with its code, its sentence and its remedy."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final, NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from greenroom.actors.core.auth.scopes import tools_of

_LONGEST: Final = 200
"""The most characters of a quoted value."""
_NEAR: Final = 0.6


class EmptyBecause(msgspec.Struct, frozen=True, kw_only=True):
    """Why a reply is empty, and the remedy, if the caller can do anything."""

    code: str
    sentence: str
    remedy: str | UnsetType = UNSET

    def with_parameter(self, today: str, older: str) -> EmptyBecause:
        """Return the same reason with the older name of a parameter."""
        named = re.compile(rf"\b(fits|and|change|or) {re.escape(today)}\b")
        texts = {
            "sentence": named.sub(rf"\1 {older}", self.sentence),
            "remedy": UNSET if self.remedy is UNSET else named.sub(rf"\1 {older}", self.remedy),
        }
        return msgspec.structs.replace(self, **texts)


class Reason(NamedTuple):
    """A reason why a reply is empty; braces stand for the arguments of `explain_empty`.

    Callers who may not call the tool that the remedy names get no remedy.
    """

    sentence: str
    remedy: str = ""
    tool: str = ""


REASONS: Final[dict[str, Reason]] = {
    "nothing_stored": Reason("there are no {what} here that you may see"),
    "filter_matches_nothing": Reason(
        "of the {what} that you may see here none fits {filters}{near}", "change {names}"
    ),
    "nothing_relevant": Reason("none of the {what} has to do with the query", "ask in other words"),
    "no_embedder": Reason(
        "by words none of the {what} has to do with the query, and nothing else compares: {why}",
        "ask in their words; `greenroom embedder install` gives the server a model for what words mean",
    ),
    "corpus_unknown": Reason(
        "there is no corpus {name!r} that you may see{near}",
        "ingest_documents makes one",
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
        "by syntax none of the {what} has to do with the query, and {why}",
        "code_search with a regular expression looks in all texts",
        "code_search",
    ),
    "index_off": Reason("no process indexes the folder here", "read_file reads any file", "read_file"),
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
    "all_declared": Reason("all names that the documents repeat are declared"),
    "learning_off": Reason(
        "no {what} were recorded, and calls of tools are not: the server runs without learn-workflows",
        "record_workflow_step records one",
        "record_workflow_step",
    ),
    "nothing_repeated": Reason("of the {count} steps that were recorded none came again after others"),
    "nothing_new": Reason("no {what} that you may see came since", "ask again later"),
    "goes_on": Reason("none of the {what} that were looked at so far fits", "next_cursor goes on"),
    "no_more": Reason("the page before was the last", "begin again without {filters}"),
    "damaged": Reason(
        "what there may be cannot be read: {why}",
        "`greenroom doctor` says what is damaged; `greenroom repair` saves the rest",
    ),
    "over_budget": Reason("none of the {what} that were found fits into max_tokens", "allow more tokens"),
    "unexplained": Reason("nothing was found, and it could not be looked up in time why", "ask again"),
}
"""Every reason, by its code. Add new ones only here."""

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
"""The remedy if nothing of a kind is stored yet."""


def explain_empty(scopes: Iterable[str], code: str, **facts: object) -> EmptyBecause:
    """Return the reason for an empty reply by its code, one of `REASONS`.

    The remedy names only tools that the caller's scopes open.
    """
    reason = REASONS[code]
    advice = _MAKERS.get(str(facts.get("what")), reason) if code == "nothing_stored" else reason
    is_open = not advice.tool or advice.tool in tools_of(frozenset(scopes))
    return EmptyBecause(
        code=code,
        sentence=reason.sentence.format(**facts),
        remedy=advice.remedy.format(**facts) if advice.remedy and is_open else UNSET,
    )


def explain_no_match(
    scopes: Iterable[str], what: str, filters: Mapping[str, object], known: Callable[[str], Collection[str]]
) -> EmptyBecause:
    """Return the reason that filters match none of the visible values; ``known`` lists these."""
    near = next(filter(None, (suggest_spelling(value, known(name)) for name, value in filters.items())), "")
    quoted = " and ".join(_quoted(name, value) for name, value in filters.items())
    names = " or ".join(filters)
    return explain_empty(scopes, "filter_matches_nothing", what=what, filters=quoted, names=names, near=near)


def suggest_spelling(wanted: object, known: Collection[str]) -> str:
    """Return the end of a sentence that suggests known names with a similar spelling."""
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
    """Return a filter for a sentence, with its value if the value is short."""
    text = repr(value) if isinstance(value, str) else msgspec.json.encode(value).decode()
    return f"{name} {text}" if len(text) <= _LONGEST else name
