"""The first pass over a source: which lines can be imported.

A line that passes here is not refused later. The second pass skips the lines that did not pass.
"""

from __future__ import annotations

import itertools
from array import array
from collections import Counter
from collections.abc import Iterator
from hashlib import blake2b, sha256
from typing import Final

from greenroom.actors.core.auth.principal import Principal
from greenroom.actors.memories.requests.import_lines import LineError, check_line, to_line_error
from greenroom.actors.memories.transfer.normalize import BadRecord, Item, Remark, SourceLine
from greenroom.runtime import Refusal

CHECKED_AT_ONCE: Final = 1_000
MOST_PROBLEMS: Final = 10
"""The check stops after this many problems that prevent an import."""
MOST_NAMED: Final = 100_000
"""At most this many left-out lines, and this many warnings, are reported; all are counted."""


class Survey:
    """The findings of the first pass.

    Args:
        principal: The importing principal.
        namespace: The namespace of lines that name none.
        is_strict: Whether a line that cannot be imported is a problem; otherwise it is left out.

    Attributes:
        lines: The number of lines that can be imported.
        namespaces: The number of lines by namespace.
        roots: The number of lines by root.
        places: The place of the first line of each root.
        problems: The first reasons why nothing can be imported.
        denied: The refusal of a line that the principal may not import.
        left_out: The first `MOST_NAMED` lines that are left out.
        digest: The digest of the lines that can be imported.
    """

    def __init__(self, principal: Principal, namespace: str, *, is_strict: bool) -> None:
        self._principal = principal
        self._namespace = namespace
        self._is_strict = is_strict
        self._read = 0
        self._seen: dict[bytes, int] = {}
        self._skipped = array("Q")  # the numbers, from 1, of lines that are refused or come twice
        self.lines = 0
        self.namespaces: Counter[str] = Counter()
        self.roots: dict[str, int] = {}
        self.places: dict[str, str] = {}
        self.problems: list[LineError] = []
        self.denied: Refusal | None = None
        self.left_out: list[LineError] = []
        self.left_out_count = 0
        self.remarks: list[Remark] = []
        self.digest = sha256()

    def check(self, items: Iterator[Item]) -> int | None:
        """Check some lines; return the bytes read so far, or None at the end."""
        passed = None
        for made in itertools.islice(items, CHECKED_AT_ONCE):
            passed = made.passed
            if isinstance(made, SourceLine):
                self._check_line(made)
            elif isinstance(made, BadRecord):
                self._leave_out(LineError(made.place, made.sentence, None))
            elif self._is_strict:
                self.problems.append(LineError(made.place, made.sentence, None))
            elif len(self.remarks) < MOST_NAMED:
                self.remarks.append(made)
            if len(self.problems) >= MOST_PROBLEMS:
                break
        return passed

    def end(self) -> None:
        """Release the data that only the check needs."""
        self._seen.clear()

    def sound_lines(self, items: Iterator[Item]) -> Iterator[SourceLine]:
        """Yield the lines that passed, when the same source is read again."""
        skipped = iter(self._skipped)
        skip = next(skipped, 0)
        lines = (each for each in items if isinstance(each, SourceLine))
        for number, line in enumerate(lines, start=1):
            if number == skip:
                skip = next(skipped, 0)
            else:
                yield line

    def _check_line(self, made: SourceLine) -> None:
        self._read += 1
        try:
            checked = check_line(made.raw, self._namespace, self._principal)
        except Refusal as refusal:
            if refusal.is_denial:  # it is about the principal, not about the line
                self.denied = refusal
                self.problems.append(to_line_error(made.place, refusal))
            else:
                self._skip(to_line_error(made.place, refusal))
            return
        mark = blake2b("\0".join(checked.identity).encode(), digest_size=12).digest()
        first = self._seen.setdefault(mark, self._read)
        if first == self._read:
            self.lines += 1
            self.namespaces[checked.namespace] += 1
            self.places.setdefault(checked.root, made.place)
            self.roots[checked.root] = self.roots.get(checked.root, 0) + 1
            self.digest.update(checked.raw)
            self.digest.update(b"\n")
        else:
            key = checked.identity[1]
            sentence = f"key: {key!r} is the key of memory {first:,} of this source, too; use each key once"
            self._skip(LineError(made.place, sentence, "key"))

    def _skip(self, problem: LineError) -> None:
        self._skipped.append(self._read)
        self._leave_out(problem)

    def _leave_out(self, problem: LineError) -> None:
        if self._is_strict:
            self.problems.append(problem)
            return
        self.left_out_count += 1
        if len(self.left_out) < MOST_NAMED:
            self.left_out.append(problem)
