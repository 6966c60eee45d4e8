"""A query over source code: words, symbols, a path, an error, a commit."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from greenroom.actors.content.text.analyze import code_rules, spans, without_invisible
from greenroom.actors.content.text.words import symbol_name
from greenroom.actors.search.ranking.query import MOST_TERMS

_LONGEST: Final = 4
"""The most words that may form one name: "bind query params" is BindQueryParams."""
_CHORE: Final = 0.3
_COMMON: Final = """
fix fixes fixed fixing add adds added adding remove removes removed delete improve improves update updates
updated support supports handle handles handled handling implement implements implemented implementation
make makes use uses used using allow allows ensure avoid refactor rename move change changes clean cleanup
issue bug feat chore work works working internally
"""
_CHORES: Final = frozenset(_COMMON.split())
"""Words about the task rather than the source: they weigh `_CHORE`."""
_TESTS: Final = re.compile(
    r"\b(?:tests?|tested|testing|specs?|mocks?|fixtures?|assertions?|coverage)\b", re.IGNORECASE
)
_ASIDE: Final = re.compile(
    r"\b(?:examples?|samples?|demos?|docs?|documentation|website|www|vendor(?:ed)?|benchmarks?|bench"
    r"|tutorials?|scripts?|tools?|fuzz(?:ing)?|extras?|playground)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeQuery:
    """A parsed query.

    Attributes:
        terms: The weight of each of its terms, in order.
        names: Possible names of symbols, see `symbol_name`, each with the share of the words that form it.
        compounds: The terms of names that several words form.
    """

    terms: Mapping[str, float]
    words: Mapping[str, tuple[str, ...]]
    names: Mapping[str, float]
    compounds: tuple[str, ...]
    speaks_of_tests: bool
    speaks_of_aside: bool

    @classmethod
    def read(cls, text: str) -> CodeQuery:
        """Read a query as it was typed."""
        rules = code_rules()
        spelled = [word for _, _, word in spans(without_invisible(text))]
        tokens = [(word, rules.token(word).posted) for word in spelled[:MOST_TERMS]]
        known = [(word, posted) for word, posted in tokens if posted]
        terms: dict[str, float] = {}
        for word, posted in known:
            counts = _CHORE if word.lower() in _CHORES else 1.0
            for term in posted:
                terms[term] = max(counts, terms.get(term, 0.0))
        names: dict[str, float] = {}
        compounds: dict[str, None] = {}
        for start, (first, _) in enumerate(known):
            if first.lower() not in _CHORES:
                names[symbol_name(first)] = 1 / len(known)
            for end in range(start + 2, min(start + _LONGEST, len(known)) + 1):
                name = symbol_name("".join(word for word, _ in known[start:end]))
                names.setdefault(name, (end - start) / len(known))
                compounds.update(dict.fromkeys(rules.token(name).posted))
        return cls(
            terms=terms,
            words=dict(known),
            names=names,
            compounds=tuple(compounds),
            speaks_of_tests=_TESTS.search(text) is not None,
            speaks_of_aside=_ASIDE.search(text) is not None,
        )
