"""Detect the language of texts by their scripts and most frequent words.

Queries have few words, so no trained model is used. A single letter shows a script, and common words show a
language in Latin letters.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from greenroom.actors.content.text.words import STOP_WORDS

ENGLISH: Final = "en"
LONGEST: Final = 2_000
"""At most this many characters of a text are read."""
_WORD: Final = re.compile(r"[^\W\d_]+")
_LATIN: Final = "LATIN"
_TOGETHER: Final = {"HIRAGANA": "CJK", "KATAKANA": "CJK"}
"""Scripts that stand in the same text."""
_SHARE: Final = 0.2
"""A text uses a script if at least this share of its letters have it."""

_ONLY_ENGLISH: Final = frozenset(["the", "of", "and", "to", "for", "with", "at", "by", "from", "on"])
"""Words that are more frequent in English than in the other languages that have them."""
_WORDS: Final[Mapping[str, str]] = {
    "de": "der die das den dem des ein eine einen einem einer und oder aber nicht kein keine ist sind war "
    "wird werden wurde hat haben ich du er sie es wir ihr sein mein unser wie was wer wo wann warum welche "
    "welcher welches wieviel auf aus bei mit nach von vom zu zum zur im für über unter zwischen durch gegen "
    "ohne um als wenn dass auch noch nur schon man sich gibt kann muss soll darf lange viel viele",
    "fr": "le la les un une des du de au aux et ou mais ne pas est sont était être avoir ont avons il elle "
    "ils elles nous vous je tu mon ma mes notre nos votre son sa ses leur ce cette ces que qui quoi quand où "
    "comment pourquoi quel quelle quels quelles combien dans sur sous avec sans pour par en entre chez on "
    "plus très aussi si se fait faut peut doit",
    "es": "el la los las un una unos unas de del al y o pero no es son está están era ser hay ha han he "
    "tiene yo tú él ella nosotros mi mis tu su sus nuestro nuestra este esta estos eso que qué quién cuándo "
    "cuando dónde donde cómo como cuál cuáles por para con sin en entre sobre desde hasta se lo le les más "
    "muy también si ya cuánto cuántos porque",
    "it": "il lo la i gli le un uno una di del della dello dei degli delle al alla ai nel nella e o ma non "
    "è sono era essere ha hanno ho abbiamo io tu lui lei noi voi mio mia nostro suo sua questo questa questi "
    "che chi cosa quando dove come perché quale quali quanto quanti per con senza in tra fra su sul sulla da "
    "dal dalla si ci più molto anche se",
    "pt": "o a os as um uma uns umas de do da dos das ao à no na nos nas e ou mas não é são está estão era "
    "ser há tem têm eu tu ele ela nós meu minha nosso nossa seu sua este esta isso que quem quando onde como "
    "qual quais quanto quantos por para pelo pela com sem em entre sobre desde até se mais muito também",
    "nl": "de het een en of maar niet geen is zijn was waren wordt worden werd heeft hebben ik jij je hij "
    "zij ze wij we jullie mijn ons onze uw dit dat deze die wat wie waar wanneer hoe waarom welke hoeveel op "
    "uit bij met naar van voor over onder tussen door tegen zonder om als ook nog maar er kan moet aan te",
    "sv": "en ett den det de och eller men inte är var vara har hade jag du han hon vi ni min vår din denna "
    "detta som vad vem när hur varför vilken vilket vilka på från med till av för över under mellan om att "
    "också kan ska måste finns många",
    "da": "en et den det de og eller men ikke er var være har havde jeg du han hun vi min vores din denne "
    "dette som hvad hvem hvor hvornår hvordan hvorfor hvilken hvilke på fra med til af for over under mellem "
    "om at også kan skal må findes mange",
    "pl": "i w we z ze na do od po za przez przy dla o u nie jest są był była było być ma mają ja ty on ona "
    "my wy mój nasz jego jej ich ten ta to te co kto kiedy gdzie jak dlaczego który która które ile czy się "
    "oraz lub ale też może jako",
    "cs": "a v ve z ze na do od po za při pro o u ne není je jsou byl byla bylo být má mají já ty on ona my "
    "vy můj náš jeho její jejich ten ta to ty co kdo kdy kde jak proč který která které kolik zda se si nebo "
    "ale také může jako",
    "fi": "ja tai mutta ei on ovat oli olla minä sinä hän me te he mitä kuka missä milloin miten miksi mikä "
    "mitkä kuinka monta että jos kun myös vain kuin se ne tämä nämä joka jotka",
    "tr": "ve veya ama değil bir bu şu o ben sen biz siz onlar ne kim nerede zaman nasıl neden hangi kaç "  # noqa: RUF001 - a Turkish letter
    "için ile gibi kadar daha çok da de mi mı mu mü var yok olan olarak",  # noqa: RUF001 - as above
    "ro": "și sau dar nu este sunt era fi are au eu tu el ea noi voi un o unei al ai ale cu din de la pe în "
    "pentru prin ce cine când unde cum care cât câte că dacă mai",
    "hu": "a az egy és vagy de nem van vannak volt lesz én te ő mi ti ők ki mit mikor hol hogyan miért "
    "melyik hány hogy ha is csak már még meg",
}


def is_another_language(query: str, texts: Iterable[str]) -> bool:
    """Return whether a query may be in another language than the texts.

    A query of only names and nouns counts as another language. Texts without common words count as English.
    """
    sample = " ".join(each[:LONGEST] for each in texts)
    own, theirs = _scripts(query[:LONGEST]), _scripts(sample)
    if not own:
        return False
    script, _ = own.most_common(1)[0]
    if theirs[script] < _SHARE * theirs.total():
        return True
    return script == _LATIN and language_of(query[:LONGEST]) != (language_of(sample) or ENGLISH)


def foreign_language(text: str) -> str | None:
    """Return a text's language or script; None for English and for an unclear text."""
    scripts = _scripts(text[:LONGEST])
    script = scripts.most_common(1)[0][0] if scripts else _LATIN
    if script != _LATIN:
        return script
    language = language_of(text[:LONGEST])
    return None if language == ENGLISH else language


def strip_common_words(text: str, language: str) -> str:
    """Return a text without the most frequent words of a language."""
    common = {_plain(word) for word in _WORDS.get(language, "").split()}
    return _WORD.sub(lambda found: " " if _plain(found[0].casefold()) in common else found[0], text)


def language_of(text: str) -> str | None:
    """Return the language of a text in Latin letters, by common words; None if unclear."""
    counts: Counter[str] = Counter()
    for word in _WORD.findall(text.casefold()):
        counts.update(_LANGUAGES.get(_plain(word), ()))
    (first, most), (_, next_most) = [*counts.most_common(2), (None, 0), (None, 0)][:2]
    return first if most > next_most else None


def _plain(word: str) -> str:
    """Return a word without accents, which are often left out."""
    if word.isascii():
        return word
    return "".join(each for each in unicodedata.normalize("NFD", word) if not unicodedata.combining(each))


def _scripts(text: str) -> Counter[str]:
    """Count the letters of a text by script."""
    letters = Counter(each for each in text if each.isalpha())
    scripts: Counter[str] = Counter()
    for letter, times in letters.items():
        script = _LATIN if letter.isascii() else unicodedata.name(letter, "").partition(" ")[0]
        scripts[_TOGETHER.get(script, script)] += times
    return scripts


def _by_word() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {word: [ENGLISH] for word in STOP_WORDS}
    for language, words in _WORDS.items():
        for word in dict.fromkeys(_plain(each) for each in words.split()):
            if word not in _ONLY_ENGLISH:
                found.setdefault(word, []).append(language)
    return found


_LANGUAGES: Final = _by_word()
