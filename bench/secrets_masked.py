"""Lines of files in a workspace, written by hand: of how many secrets the value is masked, and what stays."""

from __future__ import annotations

import lzma
from pathlib import Path

import msgspec

from bench.harness import Table
from greenroom.actors.content.documents import mask_bytes

LINES = Path(__file__).parent / "secrets_by_hand" / "masked-lines.jsonl.xz"


class Line(msgspec.Struct, frozen=True):
    """A line of a file; ``secret``: the value in it, None where there is none."""

    path: str
    line: str
    secret: str | None = None


def masked_lines() -> Table:
    """Return how many values of secrets are masked, and how many lines without one stay as they are."""
    with lzma.open(LINES) as file:
        lines = [msgspec.json.decode(each, type=Line) for each in file]
    shown = [(each, mask_bytes(each.line.encode()).data.decode()) for each in lines]
    secrets = [each.secret not in text for each, text in shown if each.secret is not None]
    others = [each.line == text for each, text in shown if each.secret is None]
    return Table(
        title="lines of files in a workspace, written by hand",
        columns=["what", "lines", "as it should be"],
        rows=[
            ["a value is masked", len(secrets), sum(secrets)],
            ["a line without one stays", len(others), sum(others)],
        ],
    )
