"""The in-memory search index of a session.

It needs numpy: import it only to search.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from greenroom.actors.content.text.analyze import Token, is_question, stretches, tokens
from greenroom.actors.core.base.unicode_forms import compose
from greenroom.actors.core.replies.memory_types import TimeSpan
from greenroom.actors.search.embedding.vector_messages import QueryVectors, Vectors
from greenroom.actors.search.index import QUESTION, TEMPORAL, Document
from greenroom.actors.search.index.arrays import pack
from greenroom.actors.search.index.corpus import Corpus
from greenroom.actors.search.index.document import Analysed, Field, is_temporal
from greenroom.actors.search.ranking.query import RankQuery
from greenroom.actors.search.ranking.rank import rank
from greenroom.actors.search.ranking.view import View
from greenroom.actors.sessions.search.messages import Messages, expand
from greenroom.actors.sessions.search.scores import PHRASE, Reasons, Scores, no_scores, reasons, score
from greenroom.runtime import Slices, finish

Mask = npt.NDArray[np.bool_]

_STRETCH = 2_048  # characters prepared without a pause (0.5 ms, at worst 5 ms)
_LOOK = 250_000  # characters searched for a phrase without a pause
_INSIDE_WORD = 70.0
_LEAST = 0.01
_SEALED_ROWS, _SEALED_SHARE = 64, 0.25
"""With this number and share of new rows, a search first sorts these rows, which halves their memory."""
_ROW_BYTES = 16  # memory of a row's slots in the lists


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRequest:
    """A search request: the query, and the messages in scope.

    Attributes:
        words: The query without times; None means the whole query.
        times: The times that the query names in words; dates are read from ``text``.
        vectors: The vectors of the query; None to search by words only. The search uses the sentence vector,
            or else the word vectors, because messages have no token vectors.
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
    """A message with its partition."""

    id: int
    partition: Any


class Match(NamedTuple):
    """A match with its score, 0-100; 100 if it contains the query as a phrase."""

    id: int
    score: float


class SearchIndex:
    """An index of the messages of one session.

    Each message is in one *partition*, its visibility class. A search covers some partitions from an oldest
    id on. Its result is the same as from an index of these messages only.
    """

    def __init__(self) -> None:
        self._corpus = Corpus()
        self._texts: list[str] = []
        self._metadata: list[str] = []
        self._lowest, self._highest = 0, -1
        self._key_bytes = 0
        self._view: tuple[tuple[int, bool], Messages, View] | None = None  # of the previous search

    def __len__(self) -> int:
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
        """Add one message without yielding, see `add_in_slices`."""
        finish(self.add_in_slices(id, partition, sender, content, metadata, created_at=created_at))

    def add_in_slices(
        self,
        id: int,
        partition: Hashable,
        sender: str,
        content: str,
        metadata: str,
        *,
        created_at: int = 0,
    ) -> Slices[None]:
        """Add one message; an existing message with the same id and partition stays.

        The message may be long. Do not use the index before the generator returns.

        Args:
            id: 0 to 2**63 - 1, greater for newer messages. Any order is correct; newest last and
                newest first are fast.
            partition: The visibility class.
            sender: The sender's name.
            content: The text.
            metadata: The metadata's values as text, see `metadata_text`.
            created_at: When it was written (microseconds since 1970).
        """
        if self._holds(id, partition):
            return
        text, terms = yield from _prepare(content)
        values, value_terms = yield from _prepare(metadata)
        names = tokens(sender)
        temporal = yield from is_temporal(terms)
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
        flags = (QUESTION if is_question(content) else 0) | (TEMPORAL if temporal else 0)
        counts = {field: counted for field, counted in every.items() if counted}
        yield from self._corpus.add_analysed(document, Analysed(counts, flags))
        # A mark that no phrase contains separates the sender from the text.
        self._texts.append(f" {_phrase_key(names)} \n {text} ")
        self._metadata.append(f" {values} " if values else "")
        self._key_bytes += _ROW_BYTES + sys.getsizeof(self._texts[-1])
        if values:
            self._key_bytes += sys.getsizeof(self._metadata[-1])
        yield from self._corpus.compact()

    def set_vectors(self, space: str, vectors: Mapping[int, Vectors]) -> None:
        """Set the vectors of messages in a space by id; ignore unknown ids."""
        ids = np.fromiter(vectors, np.int64, len(vectors))
        rows = np.flatnonzero(np.isin(self._corpus.position, ids))
        if len(rows):
            found = [(int(row) + 1, vectors[int(self._corpus.position[row])]) for row in rows]
            numbers, values, scales, _ = pack(found)
            self._corpus.set_vectors(space, numbers, values, scales)

    def without_vectors(self, space: str, limit: int, request: SearchRequest | None = None) -> list[Key]:
        """Return the newest messages without a vector, in scope of a request if given."""
        corpus = self._corpus
        rows = np.flatnonzero(self._lacks_vector(space, request))
        rows = rows[np.argsort(-corpus.position[rows], kind="stable")[:limit]]
        return [Key(int(corpus.position[row]), corpus.partitions[corpus.partition[row]]) for row in rows]

    def count_without(self, space: str, request: SearchRequest | None = None) -> int:
        """Return the number of messages without a vector, in scope of a request if given."""
        return int(np.count_nonzero(self._lacks_vector(space, request)))

    def added_since(self, count: int) -> list[int]:
        """Return the ids of the messages added after the first ``count``."""
        found: list[int] = self._corpus.position[count:].tolist()
        return found

    def drop_vectors(self, space: str) -> None:
        """Drop the vectors of a space."""
        self._corpus.drop_vectors(space)

    def resident_bytes(self) -> int:
        """Return an estimate of the memory in use, in bytes."""
        view = 0 if self._view is None else self._view[2].resident_bytes()
        return self._key_bytes + self._corpus.resident_bytes() + view

    def search(self, request: SearchRequest) -> Slices[list[Match]]:
        """Return the matches, best first.

        Of equal scores the stronger message is first (for phrases: by the named sender), then the shorter one
            (by powers of two), then the newer one. Do not add to the index before the generator returns.
        """
        scores = yield from self._score_rows(request)
        return self._best(scores, request)

    def explain(
        self, request: SearchRequest, about: int | None
    ) -> Slices[tuple[list[tuple[Match, Reasons]], tuple[Match, Reasons] | None]]:
        """Return the matches with reasons, and the message ``about`` whatever its score.

        The latter is None if no message in scope has the id ``about``.
        """
        scores = yield from self._score_rows(request, explain=True)
        seen = self._visible_rows(request)
        matches: list[tuple[Match, Reasons]] = []
        for match in self._best(scores, request):
            (row,) = np.flatnonzero(seen & (self._corpus.position == match.id)).tolist()
            matches.append((match, reasons(scores, row)))
            yield
        if about is None:
            return matches, None
        rows: list[int] = np.flatnonzero(seen & (self._corpus.position == about)).tolist()
        if not rows:
            return matches, None
        row = rows[0]
        return matches, (Match(about, round(float(scores.score[row]), 2)), reasons(scores, row))

    def _score_rows(self, request: SearchRequest, *, explain: bool = False) -> Slices[Scores]:
        corpus = self._corpus
        if corpus.tail_rows >= max(_SEALED_ROWS, _SEALED_SHARE * corpus.size):
            yield from corpus.seal()
        messages, view = self._view_for(request)
        visible = view.visible
        if not view.count:
            return no_scores(corpus.size)
        query = RankQuery.read(request.text, request.vectors)
        if request.words is not None and not query.dates:  # metadata may contain a date too
            query = RankQuery.read(request.words, request.vectors, times=request.times)
        expanded = yield from expand(messages, view, query.terms)
        if expanded.terms or query.dates or query.times or query.vectors is not None:
            query = replace(query, terms=expanded.terms)
            ranked = yield from rank(view, query, visible, limit=corpus.size)
            scores = yield from score(view, ranked, expanded.unknown, explain=explain)
        else:
            scores = no_scores(corpus.size)
        yield
        phrase = _phrase_key(tokens(request.text))
        keys = [self._texts, self._metadata] if request.metadata else [self._texts]
        yield from _raise_phrases(scores, phrase, keys, visible)
        return scores

    def _view_for(self, request: SearchRequest) -> tuple[Messages, View]:
        """Return the messages without learned terms, and the view of a request."""
        key = self._corpus.arrangement, request.metadata
        seen = self._visible_rows(request)
        # The oldest id moves with the clock, but the visible rows rarely change.
        if self._view is None or self._view[0] != key or not np.array_equal(self._view[2].visible, seen):
            messages = Messages(self._corpus, metadata=request.metadata)
            self._view = key, messages, View(messages, seen)
        _, messages, view = self._view
        messages.forget()
        return messages, view

    def _visible_rows(self, request: SearchRequest) -> Mask:
        corpus = self._corpus
        allowed = np.zeros(len(corpus.partitions), np.bool_)
        for partition in request.partitions:
            number = corpus.names["partition"].find(partition)
            if number is not None:
                allowed[number] = True
        seen: Mask = allowed[corpus.partition] & (corpus.position >= request.oldest_id)
        return seen

    def _lacks_vector(self, space: str, request: SearchRequest | None) -> Mask:
        missing = np.ones(self._corpus.size, np.bool_) if request is None else self._visible_rows(request)
        found = self._corpus.vectors(space)
        return missing if found is None else missing & ~found[2]

    def _holds(self, id: int, partition: Hashable) -> bool:
        """Return whether the index has a message, and record its id."""
        if self._lowest <= id <= self._highest:
            number = self._corpus.names["partition"].find(partition)
            same = (self._corpus.position == id) & (self._corpus.partition == number)
            return number is not None and bool(same.any())
        self._lowest = id if not self._texts else min(self._lowest, id)
        self._highest = max(self._highest, id)
        return False

    def _best(self, scores: Scores, request: SearchRequest) -> list[Match]:
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


def _prepare(text: str) -> Slices[tuple[str, Counter[str]]]:
    pieces: list[str] = []
    terms: Counter[str] = Counter()
    for stretch in stretches(compose(text), _STRETCH):
        found = tokens(stretch)
        pieces.append(_phrase_key(found))
        terms.update([term for _, _, posted in found for term in posted])
        yield
    return " ".join(pieces), terms


def _phrase_key(found: Sequence[Token]) -> str:
    return " ".join([piece for piece, _, _ in found if piece])


def _raise_phrases(
    scores: Scores,
    phrase: str,
    keys: Sequence[Sequence[str]],
    visible: Mask,
) -> Slices[None]:
    """Raise the scores of messages that contain the query literally.

    If no message has a word of the query (stop words, symbols), all messages are searched: first for the
    query as whole words, then for the query inside words.
    """
    if scores.shared:
        rows = np.flatnonzero(scores.candidates & visible)
        scores.score[(yield from _holding(f" {phrase} ", rows, keys))] = PHRASE
    elif phrase:
        rows = np.flatnonzero(visible)
        whole = yield from _holding(f" {phrase} ", rows, keys)
        scores.score[whole] = PHRASE
        if not whole:
            inside = yield from _holding(phrase, rows, keys)
            scores.score[inside] = _INSIDE_WORD


def _holding(phrase: str, rows: Iterable[int], keys: Sequence[Sequence[str]]) -> Slices[list[int]]:
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
            yield
    return found
