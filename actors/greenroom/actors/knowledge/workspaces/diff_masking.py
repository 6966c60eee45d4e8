"""Mask secrets in git's differences, by the marks in both whole versions of a file.

A difference alone is not enough: a line far above may mark another as a secret. A line that differs from its
version at that line number is never shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from greenroom.actors.content.documents import Marks, mask_text
from greenroom.actors.content.secrets.detect import LEFT_OUT_BEGINS

_HUNK: Final = re.compile(r"(@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@)(.*)", re.DOTALL)
_HEADING: Final = 20
"""git shows 80 bytes of a line above a hunk: at least so many characters."""
_BOTH: Final = f"{LEFT_OUT_BEGINS}line]"


class Version(NamedTuple):
    """The lines of a file, unmasked and masked; both empty for a missing version."""

    own: list[str]
    shown: list[str]


def make_version(data: bytes, marks: Marks) -> Version:
    """Make the version of a file from its bytes and marks."""
    return Version(*(each.decode(errors="replace").split("\n") for each in (data, marks.put_into(data))))


class DifferentError(Exception):
    """A line of a difference does not match its file's version."""


def mask_diff(diff: str, old: Version, new: Version) -> str:
    """Mask a file's difference in git's unified format.

    Raises:
        DifferentError: Its lines do not match the versions.
    """
    return "\n".join(_mask_lines(diff, old, new))


def _mask_lines(diff: str, old: Version, new: Version) -> Iterator[str]:
    hidden = {
        own[:_HEADING].rstrip()
        for version in (old, new)
        for own, shown in zip(version.own, version.shown, strict=True)
        if own != shown
    }
    at_old = at_new = 0
    *lines, end = diff.split("\n")
    for line in lines:
        if hunk := _HUNK.fullmatch(line):
            at_old, at_new = int(hunk[2]), int(hunk[3])
            yield hunk[1] + ("" if hunk[4].strip()[:_HEADING].rstrip() in hidden else hunk[4])
        elif not at_old and not at_new:
            yield mask_text(line)
        elif line.startswith("\\"):
            yield line
        else:
            kind = line[:1]
            if kind not in {" ", "-", "+"}:
                raise DifferentError
            shown = [_mask_line(old, at_old, line[1:])] if kind != "+" else []
            shown += [_mask_line(new, at_new, line[1:])] if kind != "-" else []
            at_old, at_new = at_old + (kind != "+"), at_new + (kind != "-")
            marked = {each for each in shown if each != line[1:]}
            yield kind + (_BOTH if len(marked) > 1 else (*marked, line[1:])[0])
    yield mask_text(end)


def _mask_line(version: Version, number: int, line: str) -> str:
    """Return the masked line; it may lack the carriage return that its file has."""
    own = version.own[number - 1] if 0 < number <= len(version.own) else None
    if own is None or own.rstrip("\r") != line.rstrip("\r"):
        raise DifferentError
    return line if version.shown[number - 1] == own else version.shown[number - 1]
