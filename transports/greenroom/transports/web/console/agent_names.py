"""Names of agents for people, without the digits of their user.

Where two agents of one page share a name, the first digits tell them apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final, NamedTuple

_TAIL: Final = re.compile(r"\.([0-9a-f]{16})\Z")
_TAIL_IN_JSON: Final = re.compile(rb'\.[0-9a-f]{16}"')
_LONGEST: Final = 400
"""The most bytes of an id in JSON."""
_MOST: Final = 1_000
"""The most ids of a page that are compared."""
_SHORT: Final = 4


class AgentName(NamedTuple):
    """The parts of an agent's name."""

    name: str
    digits: str  # the beginning of the digits that tell it from another one of this name; usually empty


class AgentNames:
    """The names of the agents of one page."""

    def __init__(self, replies: Iterable[bytes] = ()) -> None:
        """Find the agents in the replies, as JSON, of which the page is made."""
        texts = list(replies)
        self._digits: dict[str, set[str]] = {}
        for name, digits in islice(_agents_in(texts), _MOST):
            self._digits.setdefault(name, set()).add(digits)
        for name, known in self._digits.items():
            if any(f'"{name}"'.encode() in text for text in texts):
                known.add("")  # an agent whose id is only the name

    def of(self, agent: str) -> AgentName:
        """Return the name of an agent's id."""
        tail = _TAIL.search(agent)
        if tail is None or not tail.start():
            return AgentName(agent, "")
        name, digits = agent[: tail.start()], tail[1]
        others = self._digits.get(name, set()) - {digits}
        if not others:
            return AgentName(name, "")
        length = _SHORT
        while any(each.startswith(digits[:length]) for each in others):
            length += 1
        return AgentName(name, digits[:length])


def _agents_in(texts: Iterable[bytes]) -> Iterator[tuple[str, str]]:
    """Yield name and digits of each JSON string that may be an agent's id."""
    for text in texts:
        for tail in _TAIL_IN_JSON.finditer(text):
            begin = text.rfind(b'"', max(0, tail.start() - _LONGEST), tail.start()) + 1
            if begin:
                yield text[begin : tail.start()].decode(errors="replace"), tail[0][1:-1].decode()
