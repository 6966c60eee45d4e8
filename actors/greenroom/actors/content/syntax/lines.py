"""The line numbers of byte offsets."""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import Final

_LINE_END: Final = re.compile(rb"\n")


class Lines:
    """The lines of a file's bytes, from 1."""

    def __init__(self, data: bytes) -> None:
        self.starts = [0, *(end.end() for end in _LINE_END.finditer(data))]

    def of(self, offset: int) -> int:
        """Return the line of a byte."""
        return bisect_right(self.starts, offset)

    def start_of(self, line: int) -> int:
        """Return the start of a line."""
        return self.starts[line - 1]
