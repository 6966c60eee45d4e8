"""Decisions, preferences and what is to be remembered, by the words in which people say them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from greenroom.actors.hooks.findings import Finding, Rule, finding
from greenroom.actors.hooks.own_words import Sentence, own_sentences
from greenroom.actors.schemas.hooks import Turn

_LEAST_WORDS: Final = 4
_OPENING: Final = (
    r"(?:(?:ok(?:ay)?|so|right|fine|good|great|alright|all right|then|and|but|also|yes|yeah|well|now|please|bitte"
    r"|note|hey|btw|by the way|one more thing|for this project|in this (?:project|repo|repository))\b[,:.;!-]*\s+){0,3}"
)
_VERBS: Final = (
    r"(?:use|run|add|write|commit|push|put|keep|create|make|ask|check|test|format|start|include|name|call|import|log"
    r"|return|touch|edit|change|delete|remove|install|deploy|merge|rebase|squash|skip|hard-?code|mock|print|ignore"
    r"|follow|document|explain|show|read|reply|answer|respond|speak|sign|tag|bump|pin|store|save|set|leave|raise|catch"
    r"|suppress|wrap|quote|escape|validate|verify|close|open|send|expose|mention|lint|give|assume|guess|invent"
    r"|translate|generate|rename|move|copy|modify|update|upgrade|throw|work|insert|sort|prefix|prefer|declare|define)"
)
_STATEMENTS: Final[tuple[tuple[Rule, str], ...]] = (
    (
        "remember",
        r"(?:remember|note|keep in mind|bear in mind|don't forget|do not forget)(?: that|:)\s+(?P<said>.+)",
    ),
    ("remember", r"(?P<said>(?:remember|don't forget|do not forget) to .+)"),
    ("remember", r"(?:merk(?:e)? dir|denk(?:e)? daran|vergiss nicht)[,:]\s*(?:dass\s+)?(?P<said>.+)"),
    ("preference", rf"(?P<said>(?:you (?:should|must) )?(?:always|never|don't ever) {_VERBS}\b.+)"),
    ("preference", r"(?P<said>I(?:'d| would)?(?: strongly| really| much)? prefer .+)"),
    ("preference", r"(?P<said>(?:from now on|in (?:the )?future|going forward),? .+)"),
    (
        "preference",
        r"(?P<said>ich bevorzuge .+|(?:verwende|benutze|nutze|schreib(?:e)?|nimm) (?:immer|nie(?:mals)?) .+)",
    ),
    (
        "decision",
        r"(?P<said>(?:we|I)(?:'ve| have)?(?: now| just| finally| already)? (?:decided|agreed|settled)"
        r" (?:to|on|that|against|not to|for) .+)",
    ),
    ("decision", r"(?:decision|decided|entscheidung|entschieden):\s+(?P<said>.+)"),
    ("decision", r"(?P<said>wir haben (?:uns )?(?:entschieden|beschlossen),? .+)"),
    (
        "decision",
        r"(?P<said>(?:let's|let us|we'll|we will|we are going to|we're going to) (?:use|go with|take|keep|store|put|write|adopt)"
        r" .+ (?:instead of|rather than|over|and not) .+)",
    ),
    (
        "decision",
        r"(?P<said>(?:let's|let us|we'll|we will) (?:go with|stick (?:with|to)|switch to|standardi[sz]e on) .+)",
    ),
)
_RULES: Final = tuple((rule, re.compile(_OPENING + pattern, re.IGNORECASE)) for rule, pattern in _STATEMENTS)
_DANGLING: Final = re.compile(
    r"\b(?:it|this|that|these|those|them|they|he|she|him|her|one|ones|here|there|above|below|former|latter"
    r"|option|first|second|third|other|yours?|mine|suggestion|approach|way)\b(?! (?:project|repo|repository|code ?base)\b)",
    re.IGNORECASE,
)
_ACCEPTED: Final = re.compile(
    r"(?:(?:yes|yep|yeah|ok(?:ay)?|sure|agreed|perfect|great|sounds good|go ahead|do (?:it|that)|please do|lgtm|ja|gut"
    r"|einverstanden|passt|exactly|correct|fine|good|makes sense)\b[,.! ]*(?:please|thanks|with that|let's do (?:it|that))?[,.! ]*)+",
    re.IGNORECASE,
)


def found_in_words(turns: Sequence[Turn]) -> Iterator[Finding]:
    """Yield what the person said, or accepted, that is worth a memory."""
    proposed: list[Finding] = []
    for place, turn in enumerate(turns):
        if turn.role == "user" and turn.text:
            sentences = list(own_sentences(turn.text))
            if len(proposed) == 1 and sentences and _accepts(sentences):
                yield proposed[0]
            proposed = []
            yield from _statements(sentences, place)
        elif turn.role == "assistant" and turn.text:
            proposed = [
                each for each in _statements(list(own_sentences(turn.text)), place) if each.rule == "decision"
            ]


def _accepts(sentences: list[Sentence]) -> bool:
    return len(sentences) <= 2 and all(_ACCEPTED.fullmatch(each.text) is not None for each in sentences)


def _statements(sentences: list[Sentence], place: int) -> Iterator[Finding]:
    for sentence in sentences:
        if sentence.asks:
            continue
        for rule, pattern in _RULES:
            found = pattern.fullmatch(sentence.text)
            if found is not None:
                said = found["said"].strip()
                if len(said.split()) >= _LEAST_WORDS and not _DANGLING.search(said):
                    yield finding(rule, said[0].upper() + said[1:], place)
                break
