"""Stores of memories with questions whose answers are known, whatever they are made of.

A conversation of LoCoMo is a store, or all of them are one. Of worlds of notes each two are one, so a note
must be told from some 540. Ids are keys of memories, and are unique within a store.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

from bench import notes, trials

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from bench.locomo import Turn


class Memory(NamedTuple):
    """A memory as it is imported; what is None it does not have."""

    id: str
    text: str
    created_at: str
    author: str | None
    tags: Sequence[str] = ()
    conversation: str | None = None
    position: int | None = None


class Question(NamedTuple):
    """A question, and the ids of the memories that answer it, which may be none.

    Attributes:
        older: Ids of what once was the answer.
    """

    text: str
    relevant: Sequence[str]
    group: str
    older: Sequence[str] = ()


class Store(NamedTuple):
    """What is searched at once, and what is asked there."""

    name: str
    memories: Sequence[Memory]
    questions: Sequence[Question]


def conversations(folder: Path) -> list[Store]:
    """Return each conversation of a folder as a store; see `bench.trials`."""
    given = trials.load(folder)
    return [_conversation(given, name) for name in given.conversations]


def merged(stores: Sequence[Store]) -> Store:
    """Return one store of all, whose ids begin with the names of where they are from."""
    memories = [
        memory._replace(id=f"{store.name}.{memory.id}") for store in stores for memory in store.memories
    ]
    questions = [_prefixed(store.name, question) for store in stores for question in store.questions]
    return Store("-".join(store.name for store in stores), memories, questions)


def pairs_of_worlds(folder: Path) -> list[Store]:
    """Return a store for each two worlds of notes; each question is asked in two of three."""
    return [merged(pair) for pair in combinations(worlds(folder), 2)]


def worlds(folder: Path) -> list[Store]:
    """Return each world of notes as a store."""
    return [_world(world) for world in notes.load(folder)]


def _conversation(given: trials.Trials, name: str) -> Store:
    memories = [_memory(turn) for turn in given.turns if turn.conv == name]
    questions = [
        Question(query.question, [_key(turn) for turn in query.evidence], str(query.category))
        for query in given.queries
        if query.conv == name
    ]
    return Store(name, memories, questions)


def _memory(turn: Turn) -> Memory:
    return Memory(
        id=_key(turn.id),
        text=turn.text,
        created_at=f"{turn.date}Z",
        author=turn.speaker,
        conversation=f"{turn.conv}.{turn.session}",
        position=turn.position,
    )


def _key(turn: str) -> str:
    return turn.replace(":", ".")


def _world(world: notes.World) -> Store:
    memories = [
        Memory(note.key, note.content, note.created_at.isoformat(), note.created_by or None, note.tags)
        for note in world.notes
    ]
    asked = [Question(each.query, each.relevant, each.group, each.older) for each in world.questions]
    return Store(world.name, memories, asked)


def _prefixed(name: str, question: Question) -> Question:
    relevant, older = ([f"{name}.{each}" for each in ids] for ids in (question.relevant, question.older))
    return question._replace(relevant=relevant, older=older)


def lines(stores: Sequence[Store]) -> Iterator[dict[str, object]]:
    """Return what `greenroom import` reads; each store is a namespace of its own, `project:NAME`."""
    for store in stores:
        for memory in store.memories:
            line: dict[str, object] = {
                "key": memory.id,
                "content": memory.text,
                "namespace": f"project:{store.name}",
                "created_at": memory.created_at,
                "tags": list(memory.tags),
            }
            if memory.author is not None:
                line["created_by"] = memory.author
            if memory.conversation is not None:
                line |= {"conversation_id": memory.conversation, "position": memory.position}
            yield line
