"""What a prompt itself shows: mere consent, or whether a memory may answer it.

These are words of languages, and their weights are small. In another language, or where they mislead, the
nearness to a memory decides.
"""

from __future__ import annotations

import math
import re
from typing import Final

from greenroom.actors.content.text.analyze import STOP_WORDS, tokens

GENERAL: Final = -2.0
"""The weight of a question about the world, such as "what is", "explain" or "how do I"."""
ORDER: Final = -2.0
"""The weight of an order to make or change something."""
OURS: Final = 1.0
"""The weight of a question about what this person or team has or does, or still does."""

# Each word by itself, so that the time to read a prompt does not depend on how they can be combined.
_WORDS_OF_CONSENT: Final = """
y yes yep yeah yup ok okay k no nope nah sure right good great perfect nice fine cool awesome excellent
please
thanks thank thx you continue resume go on ahead carry keep going proceed do it that this so try again
retry done
next stop wait commit push correct exactly agreed absolutely definitely alright lgtm let lets us works
for me to
sounds looks all now then and just with
ja jo nein nee doch weiter mach mache machen gerne gern bitte danke genau gut klar alles passt stimmt
richtig
super prima los leg fertig nochmal noch mal einmal das es und jetzt dann tu fang an fahre fort
oui non vas continuez merci bien parfait accord allez fais le
sí si sigue adelante vale gracias hazlo continúa de acuerdo perfecto por favor claro
sì avanti continua procedi grazie va bene perfetto certo
sim não continue pode continuar segue obrigado ga door graag dank goed tak nie dalej dziękuję
да нет дальше продолжай спасибо давай хорошо はい 続けて お願いします 好的 继续 谢谢
"""
_CONSENT: Final = frozenset(_WORDS_OF_CONSENT.split())
_MOST_WORDS: Final = 10
_MOST_CHARACTERS: Final = 200
_COMMAND: Final = re.compile(r"\s*(?:/[A-Za-z][\w:.-]*(?:\s.*)?|!.*)", re.DOTALL)
_WORD: Final = re.compile(r"[^\W_]+")

_GENERAL: Final = re.compile(
    r"\W*(?:(?:please |can you |could you )?explain\b|erklär|explique|explica"
    r"|(?:what|what'?s|is|are)\b.*\bdiffer"
    r"|(?:what (?:does|do|is|are)|what's|is there an?|was (?:ist|sind|bedeutet|heißt))\b"
    r"(?!.*\b(?:we|our|us|my|wir|uns\w*)\b)"
    r"|how (?:(?:do|can|would) (?:i|you)|to)\b|wie (?:kann|mache?) (?:ich|man)\b)",
    re.IGNORECASE | re.DOTALL,
)
_OURS: Final = re.compile(
    r"\b(?:we|our|ours|us|again|still|nowadays|these days|currently|at present|allowed"
    r"|wir|uns|unsere?\w*|noch|nochmal|erlaubt)\b",
    re.IGNORECASE,
)
_ORDERS: Final = """
add adapt align allow apply build bump calculate change check clean close commit compare compress convert
correct
count create debug delete deploy describe design document draft draw encrypt export extract fill find fix
format
generate give implement improve import insert install limit link list log look make mark measure merge
mock move
normalize open optimize parse pin plan plot port post print profile put read reduce refactor reformat
remove rename
render reorder replace reset resize resolve restyle restructure return review revert rewrite roll round
run scan
send set show shorten simplify solve sort speed split squash start store stream suggest sum summarise
summarize
switch tell test tidy track translate turn type undo unify update upgrade use validate wrap write
schreib schreibe bau baue füge behebe benenne mach mache aktualisiere übersetze prüfe räum räume ändere
erstelle
lösche entferne ersetze zeig zeige sortiere formatiere verschiebe implementiere finde teste gib
"""
_FIRST: Final = frozenset(_ORDERS.split())
_BEFORE: Final = frozenset(
    (
        "please",
        "now",
        "then",
        "ok",
        "also",
        "and",
        "so",
        "can",
        "could",
        "you",
        "bitte",
        "jetzt",
        "dann",
        "und",
    )
)
_BEGINNING: Final = 80
_SHORT: Final = 2


def is_trivial(prompt: str) -> bool:
    """Return whether a prompt is only consent, a choice, or a client's command."""
    if _COMMAND.fullmatch(prompt):
        return True
    if len(prompt.strip()) > _MOST_CHARACTERS:
        return False
    words = _WORD.findall(prompt.lower())
    is_choice = (each in _CONSENT or (len(each) == 1 and each.isascii() and each != "i") for each in words)
    return len(words) <= _MOST_WORDS and all(is_choice)


def weigh_prompt(prompt: str, of_words: float) -> float:
    """Return what the words of a prompt show about whether a memory answers it.

    ``of_words`` is the weight of the logarithm of the number of telling words.
    """
    terms = {term for token in tokens(prompt) for term in token.posted}
    telling = [term for term in terms if term not in STOP_WORDS and len(term) > _SHORT]
    weight = of_words * math.log1p(len(telling))
    if _GENERAL.match(prompt):
        weight += GENERAL
    if _is_order(prompt):
        weight += ORDER
    if _OURS.search(prompt):
        weight += OURS
    return weight


def _is_order(prompt: str) -> bool:
    """Return whether a prompt begins with an order to make or change something."""
    words = _WORD.findall(prompt[:_BEGINNING].lower())
    return next((word in _FIRST for word in words if word not in _BEFORE), False)
