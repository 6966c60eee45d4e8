"""Find decisions, preferences and things to remember by the words that people use for them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from greenroom.actors.hooks.extraction.findings import Finding, Rule, finding
from greenroom.actors.hooks.extraction.strip_quotes import Sentence, split_sentences
from greenroom.actors.sessions.requests.hook_events import Turn

_LEAST_WORDS: Final = 3
_MOST_ACCEPTING: Final = 2
"""A turn that only accepts a proposal has at most this many sentences."""
_OPENING: Final = (
    r"(?:(?:ok(?:ay)?|so|right|fine|good|great|perfect|thanks|alright|all right|then|and|but|also|oh|yes|yeah"
    r"|well|now|please|bitte|hey|btw|by the way|one more thing|as discussed|for this project"
    r"|in this (?:project|repo|repository)"
    r"|(?:one|two|three|some|a few) (?:more )?(?:things?|notes?|points?|rules?)"
    r"|(?:after|in|during) (?:[\w']+ ){0,4}(?:discussions?|meetings?|calls?|reviews?|talks?))"
    r"\b[,.:;!-]*\s+){0,4}"
)
"""Words that may precede a statement in its sentence."""
_ACTS: Final = (
    r"(?:use|run|add|write|commit|push|put|keep|create|make|ask|check|test|format|start|include|name|call|import"
    r"|log|return|touch|edit|change|delete|remove|install|deploy|merge|rebase|squash|skip|hard-?code|mock|print"
    r"|ignore|follow|document|explain|show|read|reply|answer|respond|speak|sign|tag|bump|pin|store|save|set"
    r"|leave|raise|catch|suppress|wrap|quote|escape|validate|verify|close|open|send|expose|mention|indent|lint|assume"
    r"|guess|invent|translate|generate|rename|move|copy|modify|update|upgrade|throw|insert|sort|prefix|declare"
    r"|define|force-push|prefer|stage|cache|trust|rely|round|release|publish|approve|review)"
)
"""Verbs of a rule with "always" or "never". ``never mind`` and ``always nice`` are no rules."""
_TAKES: Final = (
    r"(?:use|go with|take|keep|store|put|write|adopt|ship|build|call|name|run|deploy|support|return)"
)
_WE_DO: Final = r"(?:let's|let us|we'll|we will|we are going to|we're going to)"
_REMEMBER: Final = (
    r"(?:remember|keep in mind|bear in mind|don't forget|do not forget|make a note)(?: that|:)\s+"
)
_LASTING: Final = r"(?!(?:I|you)\b(?! (?:must|should|need|have to|can't|cannot|prefer|want|like)\b))"
"""Excludes single events, as in "remember that you broke it"."""
_MERKEN: Final = (
    r"(?:merke? dir|notiere? dir|denke? daran|vergiss nicht|beachte)(?: bitte)?[,:]\s*(?:dass\s+)?"
)
_IMMER: Final = (
    r"(?:verwende|benutze|nutze?|schreibe?|nimm|starte|teste|frage?) (?:bitte )?(?:immer|nie(?:mals)?)"
)
_DECIDED: Final = (
    r"(?:we|I)(?:'ve| have)?(?: now| just| finally| already| also)* (?:decided|agreed|settled)"
    r" (?:to|on|upon|that|against|not to|for)"
)
_ENTSCHIEDEN: Final = r"wir haben (?:uns )?(?:daf\u00fcr )?(?:entschieden|beschlossen|geeinigt),?"
_MOVES: Final = r"(?:go with|stick (?:with|to)|switch to|move to|migrate to|standardi[sz]e on)"
_STATEMENTS: Final[tuple[tuple[Rule, str], ...]] = (
    ("remember", rf"{_REMEMBER}(?P<statement>{_LASTING}(?P<what>.+))"),
    ("remember", r"(?P<statement>(?:remember|don't forget|do not forget) to (?P<what>.+))"),
    ("remember", rf"{_MERKEN}(?P<statement>(?P<what>.+))"),
    (
        "preference",
        rf"(?P<statement>(?:you (?:should|must) )?(?:always|never|don't ever) {_ACTS}\b (?P<what>.+))",
    ),
    ("preference", r"(?P<statement>I(?:'d| would)?(?: strongly| really| much| always)? prefer (?P<what>.+))"),
    ("preference", r"(?P<statement>(?:from now on|in (?:the )?future|going forward),? (?P<what>.+))"),
    ("preference", rf"(?P<statement>(?:ich bevorzuge|{_IMMER}) (?P<what>.+))"),
    ("decision", rf"(?P<statement>(?:{_DECIDED}|{_ENTSCHIEDEN}) (?P<what>.+))"),
    (
        "decision",
        r"(?:decision|decided|agreed|entscheidung|entschieden|beschlossen):\s+(?P<statement>(?P<what>.+))",
    ),
    (
        "decision",
        rf"(?P<statement>{_WE_DO} {_TAKES} (?P<what>.+ (?:instead of|rather than|over|and not) .+))",
    ),
    ("decision", rf"(?P<statement>{_WE_DO} {_MOVES} (?P<what>.+))"),
)
"""Patterns. Group `statement` is the statement; `what` is its object, which may not be a mere pronoun."""
_PROPOSALS: Final = (
    r"(?P<statement>I(?:'d| would)? (?:suggest|recommend|propose) (?P<what>.+))",
    r"my (?:suggestion|recommendation|proposal)(?: is|:) (?P<statement>(?P<what>.+))",
)
_RULES: Final = tuple((rule, re.compile(_OPENING + pattern, re.IGNORECASE)) for rule, pattern in _STATEMENTS)
_PROPOSED: Final = tuple(re.compile(_OPENING + pattern, re.IGNORECASE) for pattern in _PROPOSALS)
_POINTS_ELSEWHERE: Final = re.compile(
    r"\b(?:here|above(?! [0-9])|below(?! [0-9])|former|latter|yours|mine|these|those|hier|oben|unten)\b"
    r"|\bthere\b(?! (?:is|are|was|were|will|must|can|may))"
    r"|\bthis\b(?! (?:project|repo|repository|code ?base|workspace|team|company)\b)"
    r"|\bthe (?:first|second|third|other|last|same|previous|next|new|old)(?: (?:one|ones|option|approach"
    r"|version|variant|idea|way|suggestion|proposal))?(?:[.,;!]|$)"
    r"|\b(?:option|approach|variant|plan|variante) [A-Z0-9]\b"
    r"|\b(?:your|that|his|her|their|my) (?:suggestion|version|idea|approach|proposal|plan|way|one)\b"
    r"|\b(?:the|this|that) ones?\b",
    re.IGNORECASE,
)
_PRONOUN: Final = r"(?:it|that(?! (?:are|is|has|have|do|does|can)\b)|them|they|he|she|him|her|es|das|sie|ihn)"
_STANDS_FOR_NOTHING: Final = re.compile(
    rf"(?:\W*[\w']+\W+){{0,2}}{_PRONOUN}\b|.*\b(?:of|than|over|with|not|to|statt) {_PRONOUN}\b(?! \w+ )",
    re.IGNORECASE,
)
_IS_CUT: Final = re.compile(
    r"[:,;(\u2013-]$|\b(?:a|an|and|are|as|at|but|by|for|from|if|in|into|is|of|on|or|that|the|to|under|und|via"
    r"|when|which|with)$",
    re.IGNORECASE,
)
"""A statement that ends like this continues in the next line, which is a list or code."""
_HEDGES: Final = re.compile(
    r"\b(?:maybe|perhaps|not sure|i think|i guess|might|or not|joke|joking|mistake|what if|vielleicht)\b",
    re.IGNORECASE,
)
_ACCEPTING: Final = re.compile(
    r"(?:(?:yes|yep|yeah|ok(?:ay)?|sure|agreed|perfect|great|sounds good|go ahead|do (?:it|that|so)|please do"
    r"|lgtm|exactly|correct|fine|good|makes sense|ja|gut|einverstanden|passt|mach das|let's do (?:it|that)"
    r"|please|thanks|thank you|then|with that)\b[,.! ]*)+",
    re.IGNORECASE,
)


def find_in_words(turns: Sequence[Turn]) -> Iterator[Finding]:
    """Yield the statements that the person made or accepted."""
    proposed: list[str] = []
    for place, turn in enumerate(turns):
        if turn.role == "user" and turn.text:
            sentences = list(split_sentences(turn.text))
            if len(proposed) == 1 and _accepts(sentences):
                yield finding("decision", f"Agreed: {proposed[0]}", place)
            proposed = []
            yield from _statements(sentences, place)
        elif turn.role == "assistant" and turn.text:
            proposed = _proposals(split_sentences(turn.text))


def _accepts(sentences: list[Sentence]) -> bool:
    return 0 < len(sentences) <= _MOST_ACCEPTING and all(
        _ACCEPTING.fullmatch(each.text) for each in sentences
    )


def _statements(sentences: list[Sentence], place: int) -> Iterator[Finding]:
    for sentence in sentences:
        for rule, pattern in _RULES:
            if (statement := _match_statement(sentence, pattern)) is not None:
                yield finding(rule, statement, place)
                break


def _proposals(sentences: Iterator[Sentence]) -> list[str]:
    """Return the model's proposed decisions; with several, it is unclear which one the person accepts."""
    patterns = (*_PROPOSED, *(pattern for rule, pattern in _RULES if rule == "decision"))
    words = [
        next(filter(None, (_match_statement(each, pattern) for pattern in patterns)), None)
        for each in sentences
    ]
    return [each for each in words if each is not None]


def _match_statement(sentence: Sentence, pattern: re.Pattern[str]) -> str | None:
    """Return a sentence's statement if it fits a pattern and is clear without context."""
    found = None if sentence.asks or _HEDGES.search(sentence.text) else pattern.fullmatch(sentence.text)
    if (
        found is None
        or _POINTS_ELSEWHERE.search(found["statement"])
        or _STANDS_FOR_NOTHING.match(found["what"])
    ):
        return None
    statement = found["statement"].strip()
    is_whole = len(statement.split()) >= _LEAST_WORDS and not _IS_CUT.search(statement)
    return statement[0].upper() + statement[1:] if is_whole else None
