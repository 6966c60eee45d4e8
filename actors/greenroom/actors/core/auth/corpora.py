"""Names of corpora: pure functions. `policy` decides who may see which.

A corpus belongs to a user, to a project or to all: its *owner* is ``user:alice``, ``project:atlas`` or
``all``, as in namespaces. Its full name is ``user:alice:docs``. A word alone means the caller's own corpus
with this name, else the corpus of all. A caller without a user owns the corpora of all.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

from greenroom.actors.core.auth.policy import ALL, corpora_owner
from greenroom.actors.core.auth.principal import Principal

CATALOGUE_KIND = "corpora"
CORPUS_KIND = "corpus"
DEFAULT_CORPUS: Final = "default"
EntityType = Literal["vendor", "library", "framework", "service"]


class CorpusId(NamedTuple):
    """A corpus: its owner, and its name there."""

    owner: str
    name: str

    def __str__(self) -> str:
        return f"{self.owner}:{self.name}"


def find_candidates(principal: Principal, name: str) -> tuple[CorpusId, ...]:
    """Return the corpora that a name may mean, most likely first; they need not exist."""
    owner, _, last = name.rpartition(":")
    if owner:
        return (CorpusId(owner, last),)
    return tuple(dict.fromkeys((CorpusId(corpora_owner(principal), last), CorpusId(ALL, last))))


def owner_of(key: str) -> str:
    """Return the owner in the key of a corpus's address."""
    return key.rpartition(":")[0]
