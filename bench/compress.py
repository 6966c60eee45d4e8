"""What compression keeps: how often the answer to a question is still in a text that was made shorter.

Nothing knows the questions while it shortens. A contender is given the bytes that it may keep, and all have
the same: `compress_text`, the first part of the text, and whole sentences drawn at random. Texts are:

- articles with questions whose answers stand in them, as SQuAD and XQuAD have them (`--data` with
  ``xquad.en.json``, or other languages): an answer is inside when its words stand there in their order, but
  for English words that every text has. Every second article was tuned on and is a row of its own.
- chats of LoCoMo (`--data` with ``memories.jsonl``) and the notes of `bench/notes`, of which is known which
  line answers, and not which of its words: what is told is the part of the line's terms, but for those that
  the question has, that is left of it.
"""

from __future__ import annotations

import random
import re
import string
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from bench import notes, trials
from bench.harness import Figure, Plan, Report, Table, check
from greenroom.actors.content.compression.compress import compress, terms
from greenroom.actors.content.text.analyze import STOP_WORDS

RATIOS = (0.35, 0.5, 0.7)
AIM = 0.9
_NOTES = Path(__file__).parent / "notes"
_NEGATIONS = frozenset({"no", "not", "nor", "only", "few"})
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_PUNCTUATION = str.maketrans("", "", string.punctuation + "\u2013\u2014\u2018\u2019\u201c\u201d")


class Text(NamedTuple):
    """A text, and for each question what tells how much of its answer is in what is left, 0 to 1."""

    text: str
    inside: Sequence[Callable[[str], float]]


class _Answer(msgspec.Struct):
    text: str


class _Question(msgspec.Struct):
    answers: list[_Answer]


class _Paragraph(msgspec.Struct):
    context: str
    qas: list[_Question]


class _Article(msgspec.Struct):
    paragraphs: list[_Paragraph]


class _Articles(msgspec.Struct):
    data: list[_Article]


def run(plan: Plan) -> Report:
    """Shorten every text by every contender, ask, and report."""
    rows: list[list[str | int | float | None]] = []
    figures: list[Figure] = []
    for name, texts in _sets(plan):
        for ratio in RATIOS if not plan.smoke else (0.5,):
            row = _row(texts, ratio)
            rows.append([name, ratio, *row])
            if ratio == 0.5 and ("unseen" in name or plan.smoke):
                figures.append(
                    Figure(what=f"answers still inside at 0.5, {name}", value=float(row[1] or 0), least=AIM)
                )
    columns = ["texts", "ratio", "questions", "compress_text", "first part", "random sentences", "ms a text"]
    return Report(tables=[Table(title="answers still inside", columns=columns, rows=rows)], figures=figures)


def _row(texts: Sequence[Text], ratio: float) -> list[str | int | float | None]:
    began = time.process_time()
    made = [compress(each.text, _room(each.text, ratio)).text for each in texts]
    took = (time.process_time() - began) / len(texts) * 1_000
    for each, shorter in zip(texts, made, strict=True):
        check(len(shorter.encode()) <= _room(each.text, ratio), "a compressed text is longer than it may be")
        check(compress(each.text, _room(each.text, ratio)).text == shorter, "two compressions differ")
        check(_is_extract(each.text, shorter), "a compressed text has words that the text has not")
    questions = sum(len(each.inside) for each in texts)
    others = [[make(each.text, ratio) for each in texts] for make in (_first_part, _random_sentences)]
    shares = [
        sum(inside(left) for each, left in zip(texts, kept, strict=True) for inside in each.inside)
        / questions
        for kept in (made, *others)
    ]
    return [questions, *(round(share, 3) for share in shares), took]


def _is_extract(text: str, shorter: str) -> bool:
    """Return whether all of a text's characters but space stand in another one, in their order."""
    characters = iter(text)
    return all(each in characters for each in shorter if not each.isspace())


def _room(text: str, ratio: float) -> int:
    return int(len(text.encode()) * ratio)


def _first_part(text: str, ratio: float) -> str:
    return text.encode()[: _room(text, ratio)].decode(errors="ignore")


def _random_sentences(text: str, ratio: float) -> str:
    """Return sentences in their order, and in their paragraphs."""
    parts = [
        (at, part) for at, said in enumerate(text.split("\n\n")) for part in _SENTENCE.split(said) if part
    ]
    order = list(range(len(parts)))
    random.Random(1).shuffle(order)
    room, kept = _room(text, ratio), set()
    for at in order:
        size = len(parts[at][1].encode()) + 2
        if size <= room:
            room -= size
            kept.add(at)
    paragraphs: dict[int, list[str]] = {}
    for at in sorted(kept):
        paragraphs.setdefault(parts[at][0], []).append(parts[at][1])
    return "\n\n".join(" ".join(each) for each in paragraphs.values())


def _sets(plan: Plan) -> Iterator[tuple[str, list[Text]]]:
    yield "notes", _smaller(plan, [_of_notes(world) for world in notes.load(_NOTES)])
    if plan.data is None:
        return
    if (plan.data / "memories.jsonl").exists():
        yield "chats", _smaller(plan, list(_of_chats(trials.load(plan.data))))
    for path in sorted(plan.data.glob("*.json")):
        if not path.name.startswith(("xquad.", "squad.")):
            continue
        articles = [_of_article(each) for each in msgspec.json.decode(path.read_bytes(), type=_Articles).data]
        name = path.stem
        if name.endswith(".en"):
            yield f"{name}, tuned on", _smaller(plan, articles[::2])
            articles = articles[1::2]
        yield f"{name}, unseen", _smaller(plan, articles)


def _smaller(plan: Plan, texts: list[Text]) -> list[Text]:
    return texts[: plan.size(len(texts), 2)]


def _of_article(article: _Article) -> Text:
    text = "\n\n".join(paragraph.context for paragraph in article.paragraphs)
    answers = [[each.text for each in qa.answers] for part in article.paragraphs for qa in part.qas]
    return Text(text, [_has_one(each) for each in answers])


def _has_one(answers: Sequence[str]) -> Callable[[str], float]:
    wanted = [_plain(each) for each in answers]
    return lambda left: any(each in _plain(left) for each in wanted)


def _plain(text: str) -> str:
    """Return the words of a text that say something, between spaces."""
    words = text.lower().translate(_PUNCTUATION).split()
    said = " ".join(word for word in words if word not in STOP_WORDS or word in _NEGATIONS)
    return f" {said} " if text.isascii() or " " in said else said


def _of_chats(given: trials.Trials) -> Iterator[Text]:
    chats: dict[tuple[str, int], dict[str, str]] = {}
    for turn in given.turns:
        chats.setdefault((turn.conv, turn.session), {})[turn.id] = turn.text
    for (conv, _), turns in chats.items():
        asked = [
            (query.question, evidence)
            for query in given.queries
            if query.conv == conv
            for evidence in query.evidence
            if evidence in turns
        ]
        if asked:
            inside = [_has_line(question, turns[each]) for question, each in asked]
            yield Text("\n\n".join(turns.values()), inside)


def _of_notes(world: notes.World) -> Text:
    said = {note.key: " ".join(note.content.split()) for note in world.notes}
    asked = [(question.query, key) for question in world.questions for key in question.relevant]
    return Text("\n\n".join(said.values()), [_has_line(query, said[key]) for query, key in asked])


def _has_line(question: str, line: str) -> Callable[[str], float]:
    """Return what tells how many of a line's terms are left in one paragraph with no other words."""
    wanted = {term.key for term in terms(line)} - {term.key for term in terms(question)}
    words = set(line.split())

    def inside(left: str) -> float:
        parts = (part for part in left.split("\n\n") if words.issuperset(part.split()))
        found = max((len(wanted & {term.key for term in terms(part)}) for part in parts), default=0)
        return found / len(wanted) if wanted else 1.0

    return inside
