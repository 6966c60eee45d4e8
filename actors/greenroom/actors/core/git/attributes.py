"""Rules in files of git: attributes that say who wrote a file, and fast patterns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

_MOST_STARS: Final = 3
_MOST_OF_SEVERAL: Final = 100
"""Rules become patterns; many stars could take exponential time, during which nothing else runs."""
MOST_RULES: Final = 200
_GENERATED: Final = "linguist-generated"
_VENDORED: Final = "linguist-vendored"
_NO: Final = ("false", "0", "no")


def drop_slow(lines: Iterable[str]) -> Iterator[str]:
    """Yield the rules that are fast to match, and a limited number of slower ones."""
    of_several = 0
    for line in lines:
        stars = line.replace("**", "*").count("*")
        of_several += stars > 1
        if stars <= 1 or (stars <= _MOST_STARS and of_several <= _MOST_OF_SEVERAL):
            yield line


def select_rules(text: str) -> tuple[str, ...]:
    """Return the lines of `.gitattributes` about generated and vendored files, at most `MOST_RULES`."""
    lines = (line.strip() for line in text.splitlines() if _GENERATED in line or _VENDORED in line)
    return tuple(line for line in lines if not line.startswith("#"))[:MOST_RULES]


class Attributes(NamedTuple):
    """The rules of a folder, ready to be applied."""

    generated: GitIgnoreSpec | None
    vendored: GitIgnoreSpec | None

    def is_generated(self, path: str) -> bool:
        """Return whether a program made the file, as the rules say."""
        return self.generated is not None and self.generated.match_file(path)

    def is_vendored(self, path: str) -> bool:
        """Return whether the file was fetched from elsewhere, as the rules say."""
        return self.vendored is not None and self.vendored.match_file(path)


@lru_cache(maxsize=16)
def parse_rules(lines: tuple[str, ...]) -> Attributes:
    """Parse lines of `.gitattributes`; the last rule that matches a path decides."""
    return Attributes(_spec(lines, _GENERATED), _spec(lines, _VENDORED))


def _spec(lines: Sequence[str], name: str) -> GitIgnoreSpec | None:
    rules = list(drop_slow(_patterns(lines, name)))
    if not rules:
        return None
    from pathspec import GitIgnoreSpec  # noqa: PLC0415  only such rules need it

    try:
        return GitIgnoreSpec.from_lines(rules)
    except ValueError:  # git rejects one of the rules, too
        return None


def _patterns(lines: Sequence[str], name: str) -> Iterator[str]:
    """Yield the patterns that set an attribute, and with ``!`` those that unset it."""
    for line in lines:
        pattern, *states = line.split()
        for state in states:
            told, _, value = state.partition("=")
            if told.lstrip("-!") == name:
                yield f"!{pattern}" if told != name or value.lower() in _NO else pattern
