"""Notes with questions whose answers are known: a world is `NAME.memories.jsonl` and `NAME.queries.jsonl`.

A line of the first is a memory as `greenroom import` takes it; one of the second a question, the keys of the
memories that answer it, and its group. Of the group `nothing` no memory is an answer.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from pathlib import Path

PRESENT = datetime.fromisoformat("2026-11-18T15:00:00+00:00")
"""When the questions are asked; a Wednesday."""


class Note(msgspec.Struct, frozen=True):
    """A line of the memories."""

    key: str
    content: str
    created_at: datetime
    created_by: str = ""
    tags: list[str] = []


class Question(msgspec.Struct, frozen=True):
    """A line of the questions; ``older`` are notes that once were the answer."""

    query: str
    relevant: list[str]
    group: str
    older: list[str] = []


class World(msgspec.Struct, frozen=True):
    """The notes of one store, and questions about them."""

    name: str
    notes: list[Note]
    questions: list[Question]


def load(folder: Path) -> list[World]:
    """Return the worlds of a folder, by name."""
    return [_world(path) for path in sorted(folder.glob("*.memories.jsonl"))]


def _world(path: Path) -> World:
    name = path.name.removesuffix(".memories.jsonl")
    asked = path.with_name(f"{name}.queries.jsonl")
    return World(
        name,
        msgspec.json.Decoder(Note).decode_lines(path.read_bytes()),
        msgspec.json.Decoder(Question).decode_lines(asked.read_bytes()),
    )
