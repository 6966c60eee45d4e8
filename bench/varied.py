"""Pages of Markdown as varied as real ones are: Greenroom's own, most words of which are drawn anew.

A word is one that came before, the likelier the more often it came, or a new one, ever more rarely: so the
vocabulary grows as that of real texts does (Heaps' law; 250,000 words in 100 MB), and few words are common.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

_WORD = re.compile(r"[A-Za-z]{3,}")
_COMMON = 400
"""Words that stay as they are."""
_NEW, _POWER = 18.0, -0.4
_SYLLABLES = [
    first + then for first in "bcdfghjklmnprstvwxz" for then in ("a", "e", "i", "o", "u", "ai", "er", "on")
]


def varied(pages: Sequence[str], size: int, seed: int = 18) -> Iterator[str]:
    """Yield pages, so many that they have ``size`` characters in all."""
    rng = random.Random(seed)
    known = Counter(word for page in pages for word in _WORD.findall(page))
    common = frozenset(word for word, _ in known.most_common(_COMMON))
    said = [word for word in known if word not in common]

    def drawn(found: re.Match[str]) -> str:
        word = found[0]
        if word in common:
            return word
        if rng.random() < _NEW * len(said) ** _POWER:
            word = "".join(rng.choice(_SYLLABLES) for _ in range(rng.randint(2, 4)))
        else:
            word = said[int(rng.random() * len(said))]
        said.append(word)
        return word

    written = number = 0
    while written < size:
        page = _WORD.sub(drawn, pages[number % len(pages)])
        written += len(page)
        number += 1
        yield page


def write_varied(folder: Path, pages: Sequence[str], size: int) -> tuple[int, int]:
    """Write such pages, a hundred in a folder; return how many there are, and their bytes."""
    count = written = 0
    for count, page in enumerate(varied(pages, size), 1):
        file = folder / str(count // 100) / f"{count}.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        written += file.write_bytes(page.encode())
    return count, written
