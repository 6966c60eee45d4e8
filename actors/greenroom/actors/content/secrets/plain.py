"""Secrets in conversations only: plain words, phrases, and values without a word for secrets.

In source code, names and sentences stand in the same places. A text counts as a conversation if it has few
lines and few of them are code.
"""
# ruff: noqa: E501, RUF001 - letters of the far East count twice

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from greenroom.actors.content.secrets.values import (
    Span,
    compile_pattern,
    has_digit,
    is_placeholder,
    is_random,
    is_wordy,
)
from greenroom.actors.content.secrets.words import ENDINGS, FOLLOWERS, FUNCTION_WORDS, TECHNICAL

_LEAST: Final = 4
_MOST_LINES: Final = 60
_LONGEST: Final = 40_000
_CODE_LINE: Final = (
    r"(?m)(?:[{};]|=>|->)[ \t]*$|^[ \t]*(?:def|class|import|from|return|const|let|var|public|private"
    r"|func|fn|@\w|//|/\*|\*|#include|</?\w)\b|\w\([\w\"'.]*[,)=]|[=!]=|::|:=|\bself\."
)
_NAME: Final = r"[\w.@+-]{2,60}"
_GAP: Final = r"(?:'s)?(?:[ \t][\w'’/.@-]{1,24}){0,5}?"
_OPEN: Final = r"[\"'`*_«„“‘「『(]{0,3}"
_IS: Final = (
    r"(?:[ \t]?(?:[:=：→]|[-=]>)[ \t]{0,3}|[ \t](?:[—–-][ \t]|(?:it'?s|is|was|now|to|be|ist|auf|lautet|war"
    r"|hei(?:ß|ss)t|est|c['’]est|es|era|è|é|to|jest|это|är|er|je|este|on|là|adalah|होता है|هي"
    r"|είναι)[ \t:]{1,3}"
    r"(?:(?:now|still|always|again|just|simply|literally|currently|jetzt|immer noch|weiterhin"
    r"|toujours|siempre|sempre|nog steeds|nadal|einfach|maintenant|ahora|ora|agora|nu|teraz"
    r"|теперь|artık|şu)[ \t:]{1,3})?)|[ \t]?(?:は|が|是|为|為|改成|改为|는|은|이|가)[ \t：:]?)"
)
_END: Final = (
    r"(?=[\"'`*_»“”’」』)]{0,3}(?:[,;!?)，。、；！？\n]|\.(?:\s|$)|$|[ \t](?:and|but|for|on|in|at|so|if|or|btw"
    r"|please|works?|setzen|ändern|und|aber|für|et|mais|pour|y|pero|para|e|ma|per|mas|en|maar"
    r"|voor|i|ale|и|но|а|для|ve|och|men"
    r"|[(—–-]|です|입니다|이고|예요|है)|です|だよ|だ|で|입니다|이고|예요|我|你|帮))"
)
_VALUE: Final = r"([^\s\"'`«»„“”‘’<>()\[\]{}「」『』，。、；：]{4,60}?)"
_LABEL: Final = (
    r"(?:user(?:name)?|benutzer(?:name)?|utilisateur|usuario|usuário|utente|gebruiker"
    r"|użytkownik|kullanıcı(?: adı)?|login|логин|用户名|账号|アカウント|아이디)"
)
_USERS: Final = (
    rf"{_LABEL}(?:[ \t][\w'-]{{1,12}}){{0,4}}[ \t:=：]{{1,3}}{_NAME}[ \t]{{0,2}}(?:[,;/，；\n]"
    rf"|and|und|et|y|e|en|i|и)[ \t]{{0,2}}"
    r"(?:the |das |la |el |a |o )?"
)
_USERS_ELSEWHERE: Final = (
    r"(?:(?:utente|usuario|usuário|gebruiker|benutzer|identifiant"
    r"|utilisateur)[ \t:]{1,3}[\w.@-]{2,60}[ \t,]{1,3}"
    r"|(?:ユーザー名|アカウント|登录名|账号|用户名|아이디)(?:是|は|는)?[ \t:：]{0,3}[\w.@-]{2,60}?[ \t，,、]{0,3})$"
)
_USING: Final = (
    r"\b(?:us[ae]|nutze|utilise|gebruik|użyj|using|with|mit|avec|con|com|met|med) (?:the "
    r"|das |le |la |o |a |il )?$"
)
_ABOUT: Final = (
    r"\b(?:hash|digest|checksum|length|länge|min|max|limit|size|field|column|policy|expir"
    r"|timeout|line|version"
    r"|issue|commit|primari|primary|foránea|manager|file|type|count|number of)"
)
_SPOKEN: Final = r"(?:[ \t][a-z0-9'’-]{1,16}){2,9}"
_PHRASE: Final = (
    r"(?:[ \t]?:|[ \t](?:is|ist|est|es|was|with|to)\b:?)[ \t]{1,3}[\"'“`]?"
    rf"([a-z0-9'’-]{{1,16}}{_SPOKEN})(?=[\"'”`.,;!\n]|$)"
)
_ACCESS: Final = (
    r"\b(?:log(?:ging|ged)?[ -]?in(?:to)?|login|sign(?:ing)?[ -]in|admin\w*|router|wi-?fi"
    r"|wlan|ssh|sudo|unlocks?"
    r"|decrypts?|encrypted|zip|vault|panel|portal|account|credentials?|creds|keypad|sticker"
    r"|registry|vpn|s?ftp|nas"
    r"|rdp|root|prompts?|asks|locked|hint|passw\w*|passcode|passwort|netflix|spotify|gmail"
    r"|einloggen|anmelden"
    r"|connexion|connecter|acceso|accesso|entrare|entrar|acessar|inloggen|zaloguj\w*|войти"
    r"|зайти|giriş|logga)\b"
    r"|登录|登陆|ログイン|로그인"
)
_CUED: Final = (
    r"(?:\b(?P<weak>is|it'?s|was|use|so|one's|to|ist|est|es|è|é|to|это|är|nutze|usa)"
    r"|\b(?P<strong>type|enter|answer with|opens with|tippe)|\b(?:try|with|mit|avec|con|com"
    r"|met|z|med)|[:=→])"
    r"[ \t]{1,3}[\"'`*_]{0,2}([A-Za-z0-9][^\s\"'`<>()\[\]{},;]{5,40}?)(?=[\"'`*_]{0,2}"
    r"(?:[,;:!?)]|\.?(?:\s|$)))"
)
_YEAR: Final = r"[A-Z][a-z]{3,}(?:19|20)[0-9]{2}[!.]?"
_THEN: Final = (
    r"(?<=[\s,(])([A-Z][\w!#$%&+?@^~.-]{6,40}?)[,.)]?[ \t](?:so |and |then |please |just )?"
    r"(?:try|use|type|enter)[ \t](?:that|it|this)\b"
)
_PRESSED: Final = (
    r"\b(?:type|enter|press|opens with|punch(?: in)?|dial|tippe|tapez?|marca|digita|wpisz"
    r"|набери)[ \t]([0-9]{4,8})\b"
)
_OTHER_CODE: Final = (
    r"(?:post\w*|zip|error|exit|status|country|area|plz|fehler|q|bar|source|key|pocztowy|błędu)[ -]?cod"
    r"|combination of|status|version"
)
_LEAST_RANDOM: Final = 20
_CALLED: Final = (
    r"(?<![^\s\"'`(])([^\s\"'`(),;]{6,140})[\"'`]?[ \t](?:is|are|ist|est|es|è|é)[ \t](?:the"
    r"|my|our|a|das|le|la|el|il|o)[ \t]"
    r"(?:[a-z]{2,12}[ \t]){0,2}(?:key|token|secret|password|login|credentials|creds"
    r"|passphrase|pw|pin|passwort"
    r"|mot de passe|contraseña|senha)\b"
)
_OF_USER: Final = (
    r"(?<![\w/:.@=-])(?:admin|root|administrator|guest|user|test|pi|sa|postgres|ubuntu|tomcat"
    r"|jenkins|deploy|support"
    r"|operator|(?:[Cc]redentials?|[Cc]reds|[Ll]ogins?)[ :]{1,3}[\w.@-]{2,40})[ \t]?[/:][ \t]?"
    r"([^\s\"'`/:,;<>(){}\[\]]{5,40}?)(?=[,;)\"'`]|\.?(?:\s|$))"
)
_QUESTION: Final = (
    r"(?:security (?:question|answer)|maiden name|sicherheitsfrage|pregunta de seguridad"
    r"|question (?:de sécurité|secrète)"
    rf"|first pet)[^\n:]{{0,60}}(?::|[ \t](?:is|ist|est|es)[ \t])[ \t]{{0,2}}{_OPEN}{_VALUE}{_END}"
)
_WORDS_OF_AS: Final = (" as ", " als ", " comme ", " como ", " come ")
_ANSWERS: Final = ("answer", "respond", "reply")
_QUESTIONS: Final = ("security ", "maiden", "sicherheitsfrage", "pregunta de", "question ", "first pet")
_SEEDS: Final = ("totp", "2fa", "otp", "authenticator", "mfa", "setup key", "seed")
_GROUPS: Final = (
    r"(?i:totp|2fa|otp|authenticator|mfa|setup key|seed)[^\n]{0,40}?(?<!\w)"
    r"((?:[A-Z2-7]{4}[ -]){3,7}[A-Z2-7]{4}|(?:[a-z2-7]{4}[ ]){3,7}[a-z2-7]{4})(?!\w)"
)
_ANSWERED: Final = (
    rf"\b(?:answer|respond|reply)(?:[ \t](?:it"
    rf"|that))?[ \t]with[ \t:]{{1,3}}[\"'“`]?([a-z0-9'’-]{{1,16}}{_SPOKEN})(?=[\"'”`.,;!\n]|$)"
)
_CORRECTED: Final = (
    r"(?:\b(?:it'?s|is|was|it should be|es heißt|c'est"
    r"|es)[ \t](?P<new>\S{6,40}?),?[ \t]not[ \t](?P<old>\S{5,40})"
    r"|\bnot[ \t](?P<old_>\S{5,40}?),?[ \t]but[ \t](?P<new_>\S{6,40}?)(?=[,.;:!?]?(?:\s|$)))"
)
_ALIKE: Final = 4
_AS: Final = (
    r"(?:use|take|try|enter|type|accept|set|put|want|expect|need|pick|give|choose|mets?|metti"
    r"|coloca|zet|ustaw|nimm|utilise|usa|pon|gebruik)s?"
    r"[ \t](?:just |up )?[\"'`]?([^\s\"'`]{6,40})[\"'`]?[ \t](?:as|als|comme|como|come)[ \t]"
    r"(?:the |my |our |its |your |das |le |la |el |il |a |o "
    r"|het )?(?:[a-z]{2,10} )?(?:pass(?:word|phrase|code)|pw|passwort"
    r"|mot de passe|contraseña|senha|wachtwoord)(?! ?(?:hash|hint|field|manager|policy|type|length))\b"
)
_VERBAL: Final = (
    r"(?:^|\n|[:.,-] ?|\b(?:use|enter|type|says|code|pin|otp|nutze|utilise"
    r"|usa) )([0-9]{4,8})[ \t](?:is your|is the code|to verify|as your|ist (?:dein|ihr)"
    r"|est votre|es tu)\b"
)
_CODE: Final = (
    r"(?:\bcombo|\bcombination|(?:\b|\w)(?:kode?n?|koodi|code)|\bcódigo|\bcodice|\bкода?"
    r"|\bunlock|コード|密码|密碼|暗証番号"
    r"|비밀번호|번호|\bпин|\bpini?)"
)
_OF: Final = (
    r"door|gate|keypad|alarm|safe\b|garage|locker|lock\b|vault|house|building|elevator|flat\b"
    r"|apartment|phone|\bsim\b|card"
    r"|bike|suitcase|tür|\btor\b|haus|tresor|porte|portail|immeuble|coffre|puerta|port[óo]n"
    r"|alarma|caja|cancello"
    r"|porta\b|allarme|cassaforte|portão|alarme|cofre|deur|poort|kluis|drzwi|bram|domofon"
    r"|sejf|двер|домофон|ворот"
    r"|сейф|подъезд|карт|kap[ıi]|kasa|dörr|\bhus|larm|ovi|oveen|port|mobil|telefon|ドア|玄関|金庫|门|門|保险|现관"
    r"|현관|금고|핸드폰"
)
_DIGITS: Final = r"(?:^|[\s:：=是は는码碼号])\"?((?=[0-9A-ZА-Я#*-]{0,12}[0-9][0-9A-ZА-Я#*-]{0,4}[0-9])[0-9A-ZА-Я#*-]{4,14})(?![\w%/]|\.[0-9])"
_WINDOW: Final = 60


def plain_secrets(text: str, lowered: str, words: list[tuple[int, int]]) -> Iterator[Span]:
    """Find secrets of a conversation, see `is_talk`; ``lowered`` is as long as the text."""
    yield from _after_words(text, lowered, words)
    yield from _in_sentences(text, lowered, has_word=bool(words))
    if compile_pattern("[0-9]").search(text):
        yield from _codes(text, lowered)
        if compile_pattern(_ACCESS).search(lowered):
            yield from _cued(text)
    yield from _called(text, lowered)


def _in_sentences(text: str, lowered: str, *, has_word: bool) -> Iterator[Span]:
    """Find values before their word, phrases as answers, and answers to security questions."""
    for pattern, parts in ((_AS, _WORDS_OF_AS if has_word else ()), (_QUESTION, _QUESTIONS)):
        for found in compile_pattern(pattern).finditer(lowered) if _has(parts, lowered) else ():
            if _is_plain(text[slice(*found.span(1))]):
                yield _span(*found.span(1))
    for found in compile_pattern(_ANSWERED).finditer(lowered) if has_word and _has(_ANSWERS, lowered) else ():
        if _is_spoken(found[1], is_phrase=True, is_label=True):
            yield _span(*found.span(1))


def _has(parts: tuple[str, ...], lowered: str) -> bool:
    return any(part in lowered for part in parts)


def is_talk(text: str) -> bool:
    """Return whether a text is a conversation: it has few lines and almost no code."""
    lines = text.count("\n") + 1
    if lines > _MOST_LINES or len(text) > _LONGEST:
        return False
    return 3 * sum(1 for _ in compile_pattern(_CODE_LINE).finditer(text)) <= lines


def _after_words(text: str, lowered: str, words: list[tuple[int, int]]) -> Iterator[Span]:
    done = 0
    for start, first in words:
        if start < done:
            continue
        word = lowered[start:first]
        is_pass = word == "pass"
        if not is_pass and (found := compile_pattern(_GAP + _PHRASE).match(lowered, first, first + 140)):
            is_phrase = "phrase" in word
            if _is_spoken(
                found[1],
                is_phrase=is_phrase,
                is_label=not {*":\"'`“"}.isdisjoint(lowered[first : found.start(1)]),
            ):
                yield _span(*found.span(1))
                done = found.end()
                continue
        found = compile_pattern(_GAP + _IS + _OPEN + _VALUE + _END).match(lowered, first, first + 140)
        if found and is_pass and compile_pattern(_TO).search(lowered[first : found.start(1)]):
            continue
        if found is not None and compile_pattern(_ABOUT).search(lowered, first, found.start(1)):
            continue
        before = lowered[max(0, start - 90) : start]
        is_used = compile_pattern(_USING).search(before) is not None
        users = (_USERS + "$", _USERS_ELSEWHERE)
        if found is None and (is_used or any(compile_pattern(each).search(before) for each in users)):
            found = compile_pattern(rf"[ \t:=：]{{1,3}}{_OPEN}{_VALUE}(?=[\"'`,;.\s]|$)").match(
                lowered, first
            )
        if (
            found
            and not (is_used and found[1].isalpha())
            and (word[0] < "\u3000" or found[1].isascii())
            and (not is_pass or has_digit(found[1]) or compile_pattern(_ACCESS).search(lowered))
            and _is_plain(
                text[slice(*found.span(1))], is_eastern=word[0] >= "\u3000", is_labelled=":" in found[0]
            )
        ):
            yield _span(*found.span(1))
            done = found.end()


def _is_spoken(phrase: str, *, is_phrase: bool, is_label: bool) -> bool:
    """Return whether the words after a word for a password are a passphrase."""
    words = phrase.split()
    is_sure = is_phrase and is_label
    if words[0] in _REFERRING or (not is_sure and describes_password(words[0])):
        return False
    number = next((place for place, word in enumerate(words) if word.isdigit()), None)
    if number is not None:
        return "least" not in words and not compile_pattern(_UNITS).match(" ".join(words[number + 1 :]))
    least = _FEWEST_WORDS - is_phrase
    return len(words) >= least and (is_phrase or is_label) and {"is", "are", "you"}.isdisjoint(words[:2])


_FEWEST_WORDS: Final = 4
_REFERRING: Final = frozenset(
    ("see", "ask", "check", "look", "the", "your", "not", "required", "optional", "none", "empty")
)
_TO: Final = r"\b(?:to|är|er|en)\b"
_UNITS: Final = (
    r"(?:char|letter|digit|day|time|minute|second|hour|month|year|attempt|try|tries|word|byte"
    r"|bit|line|user|zeich"
    r"|tage|caract|jours|días|giorni|dias|dagen|znak|дн|симв|gün)"
)


def describes_password(word: str) -> bool:
    """Return whether a lower-case word describes a password, and is not a password itself."""
    return word in FOLLOWERS or (word.isalpha() and compile_pattern(ENDINGS).fullmatch(word) is not None)


def _is_plain(value: str, *, is_eastern: bool = False, is_labelled: bool = False) -> bool:
    """Return whether a value may be a password, even as a plain word."""
    bare = value.strip(".,;:!?*_").lower()
    is_said = bare in FOLLOWERS if is_eastern else describes_password(bare)
    if len(bare) < _LEAST or is_said or bare in FUNCTION_WORDS or is_placeholder(value):
        return False
    if compile_pattern(TECHNICAL).fullmatch(value.rstrip(".!")) or value[0] in "/~$<%{-&#":
        return False
    if "_" in value and not is_labelled and value.islower() and value.isidentifier() and is_wordy(value):
        return False
    return not compile_pattern(r"[&?]\w+=").search(value)


def _codes(text: str, lowered: str) -> Iterator[Span]:
    done = 0
    for word in compile_pattern(_CODE).finditer(lowered):
        if word.start() < done:
            continue
        done = end = min(len(text), word.end() + _WINDOW)
        around = lowered[max(0, word.start() - 24) : end]
        is_other = compile_pattern(_OTHER_CODE).search(lowered, max(0, word.start() - 14), word.end() + 3)
        is_code = not is_other and compile_pattern(_OF).search(around)
        digits = compile_pattern(_DIGITS).search(text, word.end(), end) if is_code else None
        if digits and "\n\n" not in text[word.end() : digits.start(1)]:
            yield _span(*digits.span(1), "code")
    for found in compile_pattern(_PRESSED).finditer(lowered):
        if compile_pattern(_OF).search(lowered, max(0, found.start() - _WINDOW), found.end() + _WINDOW):
            yield _span(*found.span(1), "code")
    if "verif" in lowered or "code" in lowered:
        for found in compile_pattern(_VERBAL).finditer(lowered):
            yield _span(*found.span(1), "code")


def _called(text: str, lowered: str) -> Iterator[Span]:
    """Find values before their description, beside a user name, or in groups of a seed."""
    is_called = _has((" is ", " are ", " ist ", " est ", " es ", " è ", " é "), lowered)
    for found in compile_pattern(_CALLED).finditer(lowered) if is_called else ():
        value = text[slice(*found.span(1))]
        if (is_random(value) if len(value) >= _LEAST_RANDOM else has_digit(value)) and _is_plain(value):
            yield _span(*found.span(1))
    if compile_pattern(r"[0-9!#$%&*+?^~]").search(text) and ("/" in text or ":" in text):
        for found in compile_pattern(_OF_USER).finditer(text):
            if _is_plain(found[1]) and compile_pattern(r"[0-9]|\w[!#$%&*+?@^~]").search(found[1]):
                yield _span(*found.span(1))
    for found in compile_pattern(_GROUPS).finditer(text) if _has(_SEEDS, lowered) else ():
        if sum(map(str.isdigit, found[1])) > 1:
            yield _span(*found.span(1), "secret value")


def _cued(text: str) -> Iterator[Span]:
    """Find values without a name, in a text that is about access."""
    for found in compile_pattern(_THEN).finditer(text):
        if _is_lone(found[1]):
            yield _span(*found.span(1))
    for found in compile_pattern(_CUED).finditer(text):
        value = found[3]
        if (found["strong"] and compile_pattern(r"[A-Za-z]{5,}[0-9]{1,4}").fullmatch(value)) or (
            _is_lone(value)
            and not (found["weak"] and is_wordy(value) and not compile_pattern(_YEAR).fullmatch(value))
        ):
            yield _span(*found.span(3))
    for found in compile_pattern(_CORRECTED).finditer(text):
        which = "new" if found["new"] else "new_"
        new, old = found[which], found["old"] or found["old_"]
        is_spelling = compile_pattern("[^A-Za-z]+").sub("", new) != compile_pattern("[^A-Za-z]+").sub("", old)
        if (
            is_spelling
            and new[:_ALIKE].lower() == old[:_ALIKE].lower()
            and has_digit(new)
            and compile_pattern(TECHNICAL).fullmatch(new) is None
        ):
            yield _span(*found.span(which))


def _is_lone(value: str) -> bool:
    """Return whether a value looks like an invented password: letters with digits, a year, marks."""
    value = value.rstrip(".,;:!?")
    if is_placeholder(value) or compile_pattern(TECHNICAL).fullmatch(value) or not has_digit(value):
        return False
    return compile_pattern(_DRAWN).fullmatch(value) is not None


_DRAWN: Final = (
    r"(?=.*[A-Za-z])(?:"
    r"[A-Z]?[a-z]+[A-Z]\w*[0-9]{1,3}|[A-Z][a-z]{3,}[0-9]{4}"  # tulipFarm9, Matilda2011
    r"|(?=.*[a-z])(?=.*[A-Z])(?=.*[0-9]+[A-Za-z])[A-Za-z0-9]{7,16}"
    r"|(?=.*[a-z])(?=.*[A-Z])[A-Za-z0-9]+(?:[-_.][A-Za-z0-9]+){1,4}"
    r"|[A-Za-z0-9]+[!#$%&+?@^~][\w!#$%&+?@^~.-]*"
    r")"
)


def _span(first: int, last: int, kind: str = "password") -> Span:
    return Span(first, last, kind, 1)
