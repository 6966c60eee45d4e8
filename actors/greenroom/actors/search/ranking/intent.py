"""The state that a query is about: the present one, or a former one.

Words that hardly mean anything else show the state. More ambiguous words count only in a question: "drop the
note on the old key" is not about a former state. "Before" counts if the question is about the past. It does
not count in a task ("what must be checked before a release") or a time ("the day before yesterday").

Some words are part of a name: "the current directory", "the latest commit", "now()". There they do not count.
The list of such names is short and cannot be complete. A misread query changes little, see `supersession`.
"""

from __future__ import annotations

import re
from typing import Final, Literal

State = Literal["present", "past"]


def _any(*words: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{'|'.join(words)})\b", re.IGNORECASE)


_PRESENT: Final = _any(
    "now|nowadays|current|currently|presently|latest|newest|most recent|up[- ]to[- ]date|these days|so far",
    "at (?:the moment|present)|no longer|any ?more|any longer|instead|replaced",
    r"jetzt|heutzutage|derzeit|zurzeit|momentan|inzwischen|aktuell\w*|immer noch|noch immer|nicht mehr",
    r"maintenant|aujourd['\u2019]hui|actuel\w*|désormais|ahora|actualmente|todavía|ya no",
)
_PRESENT_IN_QUESTIONS: Final = _any("today|still|heute|noch|toujours|hoy")
_PAST: Final = _any(
    "previous|previously|former|formerly|original|originally|initially|at first|back then|in the past",
    r"(?<!is )(?<!are )(?<!be )used to|did .{1,80}\buse to",
    r"früher\w*|vorher|damals|ehemals|ehemalig\w*|ursprünglich\w*|auparavant|autrefois",
    "antes(?! de ayer)|anteriormente",
)
_PAST_IN_QUESTIONS: Final = _any(
    r"(?<!how )(?<!years )(?<!months )(?<!days )(?<!-)old|alt(?:e|er|es|en)|ancien\w*|antigu[oa]s?"
)
_BEFORE: Final = _any(
    r"(?<!day )(?<!week )(?<!month )(?<!year )before(?![\s-]+(?:last|yesterday)\b)|prior to"
)
_NAMED: Final = _any(
    r"current[\s-]+(?:working[\s-]+)?(?:director(?:y|ies)|dir|folder|path|shell|column|row|cursor|selection|file"
    r"|buffer|window|pane|tab|branch|terminal)s?",
    r"current[\s-]+(?:time|date|position|timestamp)s?(?!\s+(?:of|for)\b)",
    r"currently[\s-]+(?:running|executing|logged[\s-]+in|mounted|loaded|listening|connected|selected|staged"
    r"|checked[\s-]+out)",
    r"(?:latest|newest|most recent)[\s-]+(?:modified|changed|edited|created|updated|added|accessed|commit|tag"
    r"|file|snapshot)s?",
    r"now\s*(?=\()|from now(?!\s+on\b)|now and (?:then|again)",
    r"replaced\s+(?:by|with|in)|instead of\s+(?:an?|its|their|each|every|all|only|just|\w+ing)",
    r"aktuelle\w*\s+(?:arbeits)?(?:verzeichnis|ordner|datei|zeile|prozess|monat|jahr)\w*",
    r"(?:répertoire|dossier|fichier|processus)s?\s+actuels?",
    r"previous[\s-]+(?:command|director(?:y|ies)|folder|line|page|word|match|commit|job)s?",
    r"original[\s-]+(?:file|cop(?:y|ies)|order|timestamp|permission)s?",
)
"""Names that contain a word for a state."""
_TO_BE_DONE: Final = _any(
    "is|are|do|does|must|should|shall|can|may|need|needs|have to|has to|will|would|how to|remember"
)
_QUESTION: Final = re.compile(
    r"\?|^\W*(?:(?:on|in|at|by|from|to|with|via|for|of) )?(?:who|whom|whose|what|which|where|when|how"
    r"|wer|was|wo|welche\w*|wann|wie|qui|que|quel\w*|où|qué|quién|dónde|cuándo|cuál)\b",
    re.IGNORECASE,
)


def detect_state(text: str) -> State | None:
    """Return the state that a query is about; None if the query names none.

    "Where are the old machines now" is about the present, "what was there before the new ones" about the
    past, and "sort the files of the current directory" about neither.
    """
    text = _NAMED.sub(" ", text)
    is_question = _QUESTION.search(text) is not None
    if is_question and _BEFORE.search(text) is not None and _TO_BE_DONE.search(text) is None:
        return "past"
    if _PRESENT.search(text) or (is_question and _PRESENT_IN_QUESTIONS.search(text)):
        return "present"
    if _PAST.search(text) or (is_question and _PAST_IN_QUESTIONS.search(text)):
        return "past"
    return None
