"""Decide which memories may be given without a request: likelier answers than chance brings.

Each memory that a search found has a score:

    score = nearness + half of (log odds + 2) + what the prompt itself shows

The nearness is by how many standard deviations the prompt is nearer to the memory than ordinary prompts are,
and the odds are those of the search. A memory is given if its score reaches the bar, which 3 % of the
ordinary prompts reach among these very memories. So the bar adapts to their number and topic. Without
vectors, the probability of the search decides alone; and so it does, by words, for a prompt in another
language than English, which these vectors do not know. `bench hook_context` measures both.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Final

from greenroom.actors.content.text.languages import foreign_language, strip_common_words
from greenroom.actors.core.auth.namespaces import PROJECT, memory_address, segment, user_namespace
from greenroom.actors.core.auth.principal import Principal
from greenroom.actors.memories.recall.prompt_cues import weigh_prompt
from greenroom.actors.memories.recall.scatter_gather import Root
from greenroom.actors.memories.recall.search_all_roots import SearchResult, SearchSpec, chance_of
from greenroom.actors.memories.requests.replies import FoundMemory
from greenroom.actors.search.embedding.rows import MINILM

ABOVE_BAR: Final = 0.03
"""The part of the ordinary prompts that exceeds the bar."""
FAR: Final = 3.0
"""After the first `FIRST` memories, others must exceed the bar by this much."""
FIRST: Final = 2
LEAST_CHANCE: Final = 0.4
LEAST_OF_FEW: Final = 0.2
FEW: Final = 100
"""Without vectors: the least probability of a memory; `LEAST_OF_FEW` if at most `FEW` are visible.

With more memories, it is likelier that one resembles a text by chance.
"""
OF_WORDS: Final = 1.0
OF_WORDS_IN_SENTENCES: Final = 0.5
"""The weight of how much a prompt says; MiniLM's vectors show more of that themselves."""
BAR: Final = 0.5
"""The bar in the injection log, where a score is between 0 and 1."""
_ODDS: Final = 0.5
_ORDINARY_ODDS: Final = 2.0
_WORST_ODDS: Final = -4.0


def near_roots(principal: Principal, *projects: str) -> list[Root]:
    """Return the namespace roots from which hooks may inject: the user's and the project's.

    A project may have several ids: the present one, and those that older versions gave to its folder.
    """
    names = [user_namespace(principal), *(PROJECT + segment(each) for each in projects if each)]
    return [Root(name, memory_address(name)) for name in names]


def for_a_prompt(
    search: SearchSpec, prompt: str, principal: Principal, projects: Sequence[str]
) -> SearchSpec:
    """Return a search near a project for what answers a prompt.

    The project may have several ids. In another language than English the common words of that language do
    not count: in a store with few texts of that language they would be rare ones.
    """
    language = foreign_language(prompt)
    query = prompt if language is None else strip_common_words(prompt, language)
    return search._replace(
        query=query if query.strip() else prompt,
        roots=near_roots(principal, *projects),
        unasked_for=projects,
        foreign=language is not None,
    )


class Judge:
    """Decides which of a search's hits are likely enough to answer a prompt.

    Attributes:
        least: The least figure that `figure_of` must reach.
    """

    def __init__(self, prompt: str, outcome: SearchResult) -> None:
        compared = [each for each in outcome.found if each.ordinary]
        of_words = OF_WORDS_IN_SENTENCES if (outcome.space or "").startswith(MINILM) else OF_WORDS
        self._cue = weigh_prompt(prompt, of_words)
        self._bar: float | None = None
        if compared:
            best = [max(some) for some in zip(*(each.ordinary for each in compared), strict=True)]
            share = min(each.compared for each in compared)
            self._bar = _quantile(
                [near + cue for near, cue in zip(best, _cues(of_words), strict=True)], share
            )
        seen = sum(found.counts.get("project", 0) for found in outcome.found)
        self._least_chance = LEAST_OF_FEW if seen <= FEW else LEAST_CHANCE
        self.least = self._least_chance if self._bar is None else BAR

    def figure_of(self, hit: FoundMemory) -> float:
        """Return how likely a hit is, from 0 to 1; without vectors, its probability."""
        above = self._above(hit)
        return chance_of(hit) if above is None else 1 / (1 + math.exp(-max(-30.0, min(30.0, above))))

    def likely(self, hits: Sequence[FoundMemory]) -> list[FoundMemory]:
        """Return the hits that are likely enough, the likeliest first."""
        enough = [(self._above(hit), hit) for hit in hits]
        kept = [
            (0.0 if above is None else above, hit)
            for above, hit in enough
            if (chance_of(hit) >= self._least_chance if above is None else above >= 0)
        ]
        kept.sort(key=lambda each: -each[0])
        return [
            hit
            for place, (above, hit) in enumerate(kept)
            if self._bar is None or place < FIRST or above >= FAR
        ]

    def _above(self, hit: FoundMemory) -> float | None:
        """Return by how much a hit exceeds the bar; None without vectors."""
        if self._bar is None or hit.nearness is None or not hit.odds:
            return None
        odds = max(_WORST_ODDS, math.log(hit.odds)) + _ORDINARY_ODDS
        return hit.nearness + _ODDS * odds + self._cue - self._bar


@functools.cache
def _cues(of_words: float) -> tuple[float, ...]:
    """Return what each ordinary prompt itself shows."""
    from greenroom.actors.search.ranking.ordinary import prompts  # noqa: PLC0415 - needs numpy, loaded by now

    return tuple(weigh_prompt(each, of_words) for each in prompts())


def _quantile(scores: list[float], share: float) -> float:
    """Return the bar.

    Of many memories only a share was compared, so the others may exceed it as well.
    """
    scores.sort(reverse=True)
    return scores[int(ABOVE_BAR * share * len(scores))]
