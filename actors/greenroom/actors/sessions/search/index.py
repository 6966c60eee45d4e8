"""The index that a session keeps in memory, and the search over it. Needs numpy: import it to search."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from greenroom.actors.content.text.analyze import Token, asks, stretches, tokens
from greenroom.actors.core.base.unicode_forms import composed
from greenroom.actors.core.replies.memory_types import QueryVectors, TimeSpan, Vectors
from greenroom.actors.index import QUESTION, TEMPORAL, Document
from greenroom.actors.ranking import RankQuery, View
from greenroom.actors.search.index.arrays import pack
from greenroom.actors.search.index.corpus import Corpus
from greenroom.actors.search.index.document import Analysed, Field, is_temporal
from greenroom.actors.search.ranking import rank
from greenroom.actors.sessions.search.messages import Messages
from greenroom.actors.sessions.search.query_expansion import expand
from greenroom.actors.sessions.search.scores import PHRASE, Reasons, Scores, no_scores, reasons, score
from greenroom.runtime import Slices

Mask = npt.NDArray[np.bool_]

_STRETCH = 2_048  # characters prepared without a pause (0.5 ms; 5 ms if each is one of the worst)
_LOOK = 250_000  # characters looked through for a phrase between two looks at the clock
_INSIDE_WORD = 70.0
_LEAST = 0.01
_SEALED_ROWS, _SEALED_SHARE = 64, 0.25
"""Rows, and part of all rows, from which a search first puts new ones in order: that halves their memory."""
_ROW_BYTES = 16  # a row's slots in the lists


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRequest:
    """A search request: the query, and among which messages to look.

    Attributes:
        text: The query as typed.
        partitions: The visibility classes that the asker may see; unknown ones are empty.
        oldest_id: Older messages do not exist for this search.
        threshold: Least score of a match, 0-100.
        limit: Most matches wanted.
        metadata: Whether the metadata's values are searched too.
        words: The query without its times; None: all of it.
        times: The times that it names in its own words; what names a date is taken as it stands.
        vectors: The query's; None to go by words alone. Only its sentence's count, or those of its words
            where it has none: messages have no vectors of tokens.
    """

    text: str
    partitions: Collection[Hashable]
    oldest_id: int = 0
    threshold: float = 60.0
    limit: int = 10
    metadata: bool = True
    words: str | None = None
    times: tuple[TimeSpan, ...] = ()
    vectors: QueryVectors | None = None


class Key(NamedTuple):
    """Where a message lies."""

    id: int
    partition: Any


class Match(NamedTuple):
    """One message found.

    Attributes:
        id: The message's id.
        score: 0-100, two decimals; 100 is the query as a phrase.
    """

    id: int
    score: float


class SearchIndex:
    """Messages of one session, prepared for searching.

    Each message stands on one *partition*, its visibility class. A search looks at the
    partitions that it is given, from an oldest id on, and its result is what an index
    of these messages alone would give.
    """

    def __init__(self) -> None:
        """Make an empty index."""
        self._corpus = Corpus()
        self._texts: list[str] = []
        self._metadata: list[str] = []
        self._lowest, self._highest = 0, -1
        self._key_bytes = 0
        self._view: tuple[tuple[int, bool], Messages, View] | None = None  # of the search before

    def __len__(self) -> int:
        """Return the number of messages."""
        return len(self._texts)

    def add(
        self,
        id: int,
        partition: Hashable,
        sender: str,
        content: str,
        metadata: str = "",
        *,
        created_at: int = 0,
    ) -> None:
        """Add one message at once, see `add_in_slices`."""
        for _ in self.add_in_slices(id, partition, sender, content, metadata, _never, created_at=created_at):
            pass  # pragma: no cover - it never yields

    def add_in_slices(
        self,
        id: int,
        partition: Hashable,
        sender: str,
        content: str,
        metadata: str,
        should_yield: Callable[[], bool],
        *,
        created_at: int = 0,
    ) -> Slices[None]:
        """Add one message; a partition's message of the same id stays as it is.

        Yields when ``should_yield()``, for the message may be long. Nothing else may be done with the
        index before the generator has returned.

        Args:
            id: 0 to 2**63 - 1, greater for newer messages. Any order is correct; newest last and
                newest first are fast.
            partition: The visibility class.
            sender: The sender's name.
            content: The text.
            metadata: The metadata's values as text, see `metadata_text`.
            should_yield: Whether to yield.
            created_at: When it was written, in microseconds since 1970.
        """
        if self._holds(id, partition):
            return
        text, terms = yield from _prepare(content, should_yield)
        values, value_terms = yield from _prepare(metadata, should_yield)
        names = tokens(sender)
        temporal = yield from is_temporal(terms, should_yield)
        document = Document(
            id=len(self._texts) + 1,
            partition=partition,
            namespace="",
            text="",
            author=sender,
            position=id,
            created_at=created_at,
        )
        every: dict[Field, Counter[str]] = {
            "text": terms,
            "tags": value_terms,
            "author": Counter(term for token in names for term in token.posted),
        }
        flags = (QUESTION if asks(content) else 0) | (TEMPORAL if temporal else 0)
        counts = {field: counted for field, counted in every.items() if counted}
        yield from self._corpus.add_analysed(document, Analysed(counts, flags), should_yield)
        # The sender stands before the text, behind a mark that no phrase contains.
        self._texts.append(f" {_phrase_key(names)} \n {text} ")
        self._metadata.append(f" {values} " if values else "")
        self._key_bytes += _ROW_BYTES + sys.getsizeof(self._texts[-1])
        if values:
            self._key_bytes += sys.getsizeof(self._metadata[-1])
        yield from self._corpus.compact(should_yield)

    def set_vectors(self, space: str, vectors: Mapping[int, Vectors]) -> None:
        """Give messages their vectors in a space, by their ids; unknown ones are passed over."""
        ids = np.fromiter(vectors, np.int64, len(vectors))
        rows = np.flatnonzero(np.isin(self._corpus.position, ids))
        if len(rows):
            found = [(int(row) + 1, vectors[int(self._corpus.position[row])]) for row in rows]
            numbers, values, scales, _ = pack(found)
            self._corpus.set_vectors(space, numbers, values, scales)

    def without_vectors(self, space: str, limit: int, request: SearchRequest | None = None) -> list[Key]:
        """Return the newest messages without a vector in a space; of those that a request sees, if given."""
        corpus = self._corpus
        rows = np.flatnonzero(self._lacking(space, request))
        rows = rows[np.argsort(-corpus.position[rows], kind="stable")[:limit]]
        return [Key(int(corpus.position[row]), corpus.partitions[corpus.partition[row]]) for row in rows]

    def count_without(self, space: str, request: SearchRequest | None = None) -> int:
        """Return how many messages have none; of those that a request sees, if given."""
        return int(np.count_nonzero(self._lacking(space, request)))

    def added_since(self, count: int) -> list[int]:
        """Return the ids of the messages that were added after the first ``count``."""
        found: list[int] = self._corpus.position[count:].tolist()
        return found

    def drop_vectors(self, space: str) -> None:
        """Forget the vectors of a space."""
        self._corpus.drop_vectors(space)

    def resident_bytes(self) -> int:
        """Return an estimate of the memory that the index holds, in bytes."""
        view = 0 if self._view is None else self._view[2].resident_bytes()
        return self._key_bytes + self._corpus.resident_bytes() + view

    def search(self, request: SearchRequest, should_yield: Callable[[], bool]) -> Slices[list[Match]]:
        """Return the matches, best first; yields when ``should_yield()``.

        Equal scores: the stronger (of phrases: by who is named), then the shorter message (by powers of
        two), then the newer.
        The index must not be added to before the generator has returned.
        """
        scores = yield from self._scored(request, should_yield)
        return self._best(scores, request)

    def explain(
        self, request: SearchRequest, about: int | None, should_yield: Callable[[], bool]
    ) -> Slices[tuple[list[tuple[Match, Reasons]], tuple[Match, Reasons] | None]]:
        """Return the matches with their reasons, and the message of an id, whatever its score.

        That is None where no message has it that the request sees.
        """
        scores = yield from self._scored(request, should_yield, explain=True)
        seen = self._seen(request)
        matches: list[tuple[Match, Reasons]] = []
        for match in self._best(scores, request):
            (row,) = np.flatnonzero(seen & (self._corpus.position == match.id)).tolist()
            matches.append((match, reasons(scores, row)))
            if should_yield():
                yield
        if about is None:
            return matches, None
        rows: list[int] = np.flatnonzero(seen & (self._corpus.position == about)).tolist()
        if not rows:
            return matches, None
        row = rows[0]
        return matches, (Match(about, round(float(scores.score[row]), 2)), reasons(scores, row))

    def _scored(
        self, request: SearchRequest, should_yield: Callable[[], bool], *, explain: bool = False
    ) -> Slices[Scores]:
        """Return the scores of all messages."""
        corpus = self._corpus
        if corpus.tail_rows >= max(_SEALED_ROWS, _SEALED_SHARE * corpus.size):
            yield from corpus.seal(should_yield)
        messages, view = self._viewed(request)
        visible = view.visible
        if not view.count:
            return no_scores(corpus.size)
        query = RankQuery.read(request.text, request.vectors)
        if request.words is not None and not query.dates:  # a date may be said in metadata, too
            query = RankQuery.read(request.words, request.vectors, times=request.times)
        expanded = yield from expand(messages, view, query.terms, should_yield)
        if expanded.terms or query.dates or query.times or query.vectors is not None:
            query = replace(query, terms=expanded.terms)
            ranked = yield from rank(view, query, visible, should_yield, limit=corpus.size)
            scores = yield from score(view, ranked, expanded.unknown, should_yield, explain=explain)
        else:
            scores = no_scores(corpus.size)
        if should_yield():
            yield
        phrase = _phrase_key(tokens(request.text))
        keys = [self._texts, self._metadata] if request.metadata else [self._texts]
        yield from _raise_phrases(scores, phrase, keys, visible, should_yield)
        return scores

    def _viewed(self, request: SearchRequest) -> tuple[Messages, View]:
        """Return the messages for a request, of which nothing is learned yet, and what of them it may see."""
        key = self._corpus.arrangement, request.metadata
        seen = self._seen(request)
        # The oldest id moves with the clock, and what it lets be seen hardly ever.
        if self._view is None or self._view[0] != key or not np.array_equal(self._view[2].visible, seen):
            messages = Messages(self._corpus, metadata=request.metadata)
            self._view = key, messages, View(messages, seen)
        _, messages, view = self._view
        messages.forget()
        return messages, view

    def _seen(self, request: SearchRequest) -> Mask:
        """Return which rows exist for a request."""
        corpus = self._corpus
        allowed = np.zeros(len(corpus.partitions), np.bool_)
        for partition in request.partitions:
            number = corpus.names["partition"].find(partition)
            if number is not None:
                allowed[number] = True
        seen: Mask = allowed[corpus.partition] & (corpus.position >= request.oldest_id)
        return seen

    def _lacking(self, space: str, request: SearchRequest | None) -> Mask:
        missing = np.ones(self._corpus.size, np.bool_) if request is None else self._seen(request)
        found = self._corpus.vectors(space)
        return missing if found is None else missing & ~found[2]

    def _holds(self, id: int, partition: Hashable) -> bool:
        """Return whether a message is known, and take note of its id."""
        if self._lowest <= id <= self._highest:
            number = self._corpus.names["partition"].find(partition)
            same = (self._corpus.position == id) & (self._corpus.partition == number)
            return number is not None and bool(same.any())
        self._lowest = id if not self._texts else min(self._lowest, id)
        self._highest = max(self._highest, id)
        return False

    def _best(self, scores: Scores, request: SearchRequest) -> list[Match]:
        """Return the best matches of all."""
        rounded = np.round(scores.score, 2)
        rows = np.flatnonzero(rounded >= max(request.threshold, _LEAST))
        if len(rows) > request.limit:
            least = np.partition(rounded[rows], len(rows) - request.limit)[len(rows) - request.limit]
            rows = rows[rounded[rows] >= least]
        is_phrase = rounded[rows] == PHRASE
        strength = np.round(np.where(is_phrase, scores.own[rows], scores.strength[rows]), 6)
        lengths = np.array([len(self._texts[row]).bit_length() for row in rows], np.int32)
        ids = self._corpus.position[rows]
        order = np.lexsort((-ids, lengths, -strength, -rounded[rows]))[: request.limit]
        return [Match(int(ids[place]), float(rounded[rows[place]])) for place in order]


def _never() -> bool:
    return False


def _prepare(text: str, should_yield: Callable[[], bool]) -> Slices[tuple[str, Counter[str]]]:
    """Return the phrase key of ``text``, and how often it has each term."""
    pieces: list[str] = []
    terms: Counter[str] = Counter()
    for stretch in stretches(composed(text), _STRETCH):
        found = tokens(stretch)
        pieces.append(_phrase_key(found))
        terms.update([term for _, _, posted in found for term in posted])
        if should_yield():
            yield
    return " ".join(pieces), terms


def _phrase_key(found: Sequence[Token]) -> str:
    """Return the pieces of ``found``, joined by single blanks."""
    return " ".join([piece for piece, _, _ in found if piece])


def _raise_phrases(
    scores: Scores,
    phrase: str,
    keys: Sequence[Sequence[str]],
    visible: Mask,
    should_yield: Callable[[], bool],
) -> Slices[None]:
    """Raise the scores of the messages that hold the query as it stands.

    A query of which no message has a word (stop words, symbols) is looked for in all, failing
    that also inside of words.
    """
    if scores.shared:
        rows = np.flatnonzero(scores.candidates & visible)
        scores.score[(yield from _holding(f" {phrase} ", rows, keys, should_yield))] = PHRASE
    elif phrase:
        rows = np.flatnonzero(visible)
        whole = yield from _holding(f" {phrase} ", rows, keys, should_yield)
        scores.score[whole] = PHRASE
        if not whole:
            inside = yield from _holding(phrase, rows, keys, should_yield)
            scores.score[inside] = _INSIDE_WORD


def _holding(
    phrase: str, rows: Iterable[int], keys: Sequence[Sequence[str]], should_yield: Callable[[], bool]
) -> Slices[list[int]]:
    """Return the rows whose keys have ``phrase`` in them."""
    found: list[int] = []
    looked = 0
    for row in rows:
        for key in keys:
            looked += 100 + len(key[row])
            if phrase in key[row]:
                found.append(row)
                break
        if looked > _LOOK:
            looked = 0
            if should_yield():
                yield
    return found
