"""Names of corpora: pure functions. Who may see which says `policy`.

A corpus belongs to a user, to a project or to all: its *owner* is ``user:alice``, ``project:atlas`` or
``all``, as in the names of namespaces. In full it is called ``user:alice:docs``. A word alone means one's own
corpus of that name, and where there is none that of all. Who has no user owns what belongs to all.
"""

from __future__ import annotations

from typing import NamedTuple

from greenroom.actors.core.auth.policy import ALL, corpora_owner
from greenroom.actors.core.auth.principal import Principal

CATALOGUE_KIND = "corpora"
CORPUS_KIND = "corpus"


class CorpusId(NamedTuple):
    """A corpus: whose it is, and its name there."""

    owner: str
    name: str

    def __str__(self) -> str:
        return f"{self.owner}:{self.name}"


def meant(principal: Principal, name: str) -> tuple[CorpusId, ...]:
    """Return the corpora that a name may mean, the likeliest first; there may be none of any of them."""
    owner, _, last = name.rpartition(":")
    if owner:
        return (CorpusId(owner, last),)
    return tuple(dict.fromkeys((CorpusId(corpora_owner(principal), last), CorpusId(ALL, last))))


def owner_of(key: str) -> str:
    """Return the owner in the key of a corpus's address."""
    return key.rpartition(":")[0]
