"""Secrets by the text before them: a name, a header, an address, or a keyword."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from greenroom.actors.content.secrets.statements import stated_secrets
from greenroom.actors.content.secrets.values import (
    Span,
    compile_pattern,
    has_digit,
    is_placeholder,
    is_random,
    is_wordy,
    stands_for_another,
)

_LONGEST_QUOTED: Final = 4_096
_LONGEST_BARE: Final = 512
"""A value has at most this many characters, in quotes or without them."""
_SHORT_PASSWORDS: Final = ("_pass", "-pass")
_PASSWORDS: Final = (
    *("password", "passwd", "passphrase", "passcode", "passwort", "kennwort", "pwd"),
    *_SHORT_PASSWORDS,
)
_PURPOSES: Final = (
    "access account api app auth encryption jwt license master private secret session shared signing"
)
_KEYS_FOR: Final = tuple(_PURPOSES.split())
_TOKENS: Final = (
    *(f"{what}{between}key" for what in _KEYS_FOR for between in ("_", "-", "")),
    *("secret", "token", "credentials", "credential", "?sig", "&sig", "-signature"),
)
_NAME: Final = f"(?:{'|'.join(map(re.escape, (*_PASSWORDS, *_TOKENS)))})(?![a-z])"
"""Each alternative begins with a literal letter, so that the search skips quickly."""
_BETWEEN: Final = (
    r"(?:[_-]?[0-9]{1,3}|[_-](?:prod|production|dev|test|staging|live|value|base64|b64))?"
    r"\\{0,3}[\"'`]?\]?"
    r"(?P<sign>[ \t]{0,8}(?:=>|:=|={1,2}|:)[ \t]{0,8}|>|[ \t]{1,4}(?:is|ist"
    r"|lautet):?[ \t]{1,4}|[ \t]{1,4})"
    r"\\{0,3}(?P<quote>[\"'`]?)"
)
_OF_NAME: Final = "abcdefghijklmnopqrstuvwxyz0123456789_-"
_LONGEST_NAME: Final = 60
_QUOTED: Final = {quote: rf"[^{quote}\r\n]{{1,{_LONGEST_QUOTED}}}" for quote in "\"'`"}
_BARE: Final = rf"[^\s\"'`<>]{{1,{_LONGEST_BARE}}}"
_NEXT_NAME: Final = r"[,;&|](?=[\w.-]{1,40}[=:])"
_CALL: Final = r"[\w$.:>?-]{0,80}[(\[{].*"
_MEMBER: Final = r"[A-Za-z_$]\w*(?:(?:\??\.|::|->)[A-Za-z_]\w*){1,20}"
_HEADER: Final = (
    r"authorization\\{0,3}[\"']?\]?[ \t]{0,4}[:=][ \t]{0,4}\\{0,3}[\"']?"
    r"(?:[a-z-]{2,20}[ \t]{1,4})?"
)
_BEARER: Final = r"bearer[ \t]{1,4}"
_COOKIE: Final = r"cookie\\{0,3}[\"']?:[ \t]{0,4}\\{0,3}[\"']?"
_HEADER_VALUE: Final = r"[A-Za-z0-9._~+/=:-]{8,4096}"
_COOKIES: Final = r"[\w.-]{1,80}=([^\s\"'\\]{6})[^\r\n\"'\\]{0,4096}"
_LEAST_BEARER: Final = 16
_PAIR: Final = r":(?<=\w:)([^\s/:@\"'<>()]{5,64})@[a-z][\w-]{0,60}+\.[a-z][\w.-]{1,60}+(?!@)"
_PAIR_USER: Final = r"(?<![\w/:@.=-])(?!mailto|b?cc$|to$|from$|npm$)[A-Za-z][\w.-]{1,40}$"
_MAILBOX: Final = (
    r"@(?<=[\w.+-]@)[\w-]{1,60}+\.[\w.-]{1,60}+(?:[:|]|[ ]/[ ]|[ ]and[ ]|, )"
    r"((?=[^\s]{0,40}[0-9])(?![a-z]+[-_]?[0-9]{1,4}(?:[\s\"',;]|$))[^\s\"':,/@]{8,64}"
    r"|[a-z]{16})(?=[\s\"',;]|$)"
)
_ADDRESS: Final = r"//[^\s/:@\"'<>]{0,100}:([^\s/\"'<>]{1,256})@"
_RUN: Final = r"[A-Za-z0-9+/_=-]{20,}"
_LONGEST_RUN: Final = 512
_TELLING: Final = (
    "passw|secret|credential|bearer|token|api[ _-]?key|access[ _-]?key|private[ _-]?key|auth[ _-]?key"
)
_DIGEST: Final = "hash|digest|sha[0-9]|commit|checksum|integrity|fingerprint|@$"
_NEAR: Final = 40
_LEAST_PASSWORD: Final = 3
_LEAST_NUMBER: Final = 4
_LEAST_TOKEN: Final = 6
_SENTENCE: Final = (
    r"(?i)(?:enter|your|the|must|at|please|type|password|this|use|choose|invalid|wrong|error|no)\b"
)
_MOST_WORDS: Final = 8


def named_secrets(text: str) -> Iterator[Span]:
    """Find secrets by the text before them."""
    folded = text.encode("ascii", "replace").lower().decode("ascii")  # as long as the text
    yield from _assigned(text, folded)
    yield from _in_headers(text, folded)
    if "@" in text:
        if "//" in text:
            yield from _passwords(text, _ADDRESS)
        yield from _passwords(text, _MAILBOX)
        for found in compile_pattern(_PAIR).finditer(text):
            user = text[max(0, found.start() - _LONGEST_NAME) : found.start()]
            if (
                has_digit(found[1])
                and not is_placeholder(found[1])
                and compile_pattern(_PAIR_USER).search(user)
            ):
                yield Span(*found.span(1), "password", 1)
    yield from stated_secrets(text, folded)
    yield from _near_keywords(text, folded)


class _Place(NamedTuple):
    """The context of a value: its name, and the characters before and after the name."""

    name: str
    before: str
    sign: str
    quote: str

    def has_password(self, value: str) -> bool:
        """Return whether a value that follows a name is a password."""
        if len(value) < _LEAST_PASSWORD or is_placeholder(value) or not self._assigns():
            return False
        if any(map(str.isspace, value)):
            is_option = self.sign == " " and self.name.startswith("--") and bool(self.quote)
            return (is_option or self.sign.strip() in {"=", ":"}) and _is_passphrase(value)
        if value.isdigit() and not self.quote:
            return len(value) >= _LEAST_NUMBER and not self.name.endswith(_SHORT_PASSWORDS)
        is_member = compile_pattern(_MEMBER).fullmatch(value) and not value[-2:].isdigit()
        return self._vouches(value) or (
            has_digit(value) and not (compile_pattern(_CALL).match(value) or is_member)
        )

    def has_token(self, value: str) -> bool:
        """Return whether a value that follows a name is a token or key."""
        if len(value) < _LEAST_TOKEN or is_placeholder(value) or not self._assigns():
            return False
        return (
            not any(map(str.isspace, value))
            and (
                not self.quote
                or not is_wordy(value)
                or (self.name.isupper() and has_digit(value))
                or self._is_secret_literal(value)
            )
            and (self._vouches(value) or (self.name.startswith("--") and has_digit(value)))
        )

    def _is_secret_literal(self, value: str) -> bool:
        """Return whether words with a number are a secret in code, not the secret's name."""
        return (
            "secret" in self.name.lower()
            and self.sign.strip() != ":"
            and has_digit(value)
            and "/" not in value
        )

    def _assigns(self) -> bool:
        match self.sign.strip():
            case ">":
                return self.before == "<" and not self.quote
            case "":
                return self.name.startswith("--")
        return self.before != "/"

    def _vouches(self, value: str) -> bool:
        """Return whether a value is quoted, in a shell variable, or neither words nor call."""
        is_option = (
            self.name.startswith("--") and self.sign == "=" and not compile_pattern(_CALL).match(value)
        )
        if self.quote or self.sign == ">" or is_option or (self.name.isupper() and self.sign == "="):
            return not value.startswith("/")
        return not is_wordy(value) and not compile_pattern(_CALL).match(value)


def _is_passphrase(value: str) -> bool:
    """Return whether a value with spaces is a password: lower-case words, or with digits."""
    words = value.split()
    if len(words) > _MOST_WORDS or value[-1] in ".:?!" or set("%{<[$") & set(value):
        return False
    return (value.islower() and is_wordy(value)) or (
        has_digit(value) and not compile_pattern(_SENTENCE).match(value)
    )


def _passwords(text: str, pattern: str) -> Iterator[Span]:
    for found in compile_pattern(pattern).finditer(text):
        if not (found[1].isdigit() or is_placeholder(found[1])):
            yield Span(*found.span(1), "password", 1)


def _assigned(text: str, folded: str) -> Iterator[Span]:
    judged = 0  # the end of the last unquoted value
    for found in compile_pattern(_NAME).finditer(folded):
        if found.start() < judged:
            continue
        between = between_literal(folded, *found.span()) or compile_pattern(_BETWEEN).match(
            folded, found.end()
        )
        if between is None:
            continue
        quote, first = between["quote"], between.end()
        if text.startswith("${", first):  # it may contain a default
            continue
        value = _value(text, first, quote)
        judged = judged if quote else first + len(value)
        window = folded[max(0, found.start() - _LONGEST_NAME) : found.start()]
        begin = found.start() - len(window) + len(window.rstrip(_OF_NAME))
        place = _Place(text[begin : found.end()], text[begin - 1 : begin], between["sign"], quote)
        if found[0] in _PASSWORDS:
            if place.has_password(value):
                yield Span(first, first + len(value), "password", 1)
        elif place.has_token(value):
            yield Span(first, first + len(value), "secret value", 1)


def _value(text: str, first: int, quote: str) -> str:
    """Return the value at a place, up to its quote or last possible character."""
    found = compile_pattern(_QUOTED[quote] if quote else _BARE).match(text, first)
    if found is None:
        return ""
    if quote:
        return found[0].rstrip("\\")
    return compile_pattern(_NEXT_NAME).split(found[0], maxsplit=1)[0].rstrip(",;&|)]}.\\")


def _in_headers(text: str, folded: str) -> Iterator[Span]:
    if "authorization" in folded:
        for value in _after(_HEADER, folded, _HEADER_VALUE, text):
            if not is_placeholder(value[0]):
                yield Span(*value.span(), "authorization", 1)
    if "bearer" in folded:
        for value in _after(_BEARER, folded, _HEADER_VALUE, text):
            if len(value[0]) >= _LEAST_BEARER and not is_wordy(value[0]):
                yield Span(*value.span(), "authorization", 1)
    if "cookie" in folded:
        for value in _after(_COOKIE, folded, _COOKIES, text):
            if not stands_for_another(value[1]):
                yield Span(*value.span(), "cookie", 1)


def _after(header: str, folded: str, pattern: str, text: str) -> Iterator[re.Match[str]]:
    """Yield the values directly after a header, without overlaps."""
    done = 0
    for found in compile_pattern(header).finditer(folded):
        value = compile_pattern(pattern).match(text, found.end()) if found.start() >= done else None
        if value is not None:
            done = value.end()
            yield value


def _near_keywords(text: str, folded: str) -> Iterator[Span]:
    for run in compile_pattern(_RUN).finditer(text):
        if run.end() - run.start() > _LONGEST_RUN:
            continue
        first = max(0, run.start() - _NEAR)
        line = folded[max(first, folded.rfind("\n", first, run.start()) + 1) : run.start()]
        if (
            compile_pattern(_TELLING).search(line)
            and not ("passw" not in line and compile_pattern(_DIGEST).search(line))
            and is_random(run[0])
        ):
            yield Span(*run.span(), "random value", 2)


_DECLARED: Final = (
    r"(?:\\{0,3}[\"'`])?(?:\][ \t]{0,4})?(?:[ \t]{0,4}\[\w{0,40}\])?"
    r"(?:[ \t]{0,4}:[ \t]{0,4}[\w.|\[\]<> ]{1,60}?)?"
    r"(?P<sign>[ \t]{0,80}(?::=|=>|={1,2}|:)[ \t]{0,80})"
    r"(?:[bru]{1,2}(?=[\"']))?\\{0,3}(?P<quote>[\"'`])"
)
"""``char password[32] = "``, ``["password"] = "``, ``api_key: str = "``, ``password         = b"``."""
_OTHERWISE: Final = (
    r"\\{0,3}[\"']?[\])]{0,2}(?P<sign>\s{0,9}(?:\|\||\?\?|\?:|\bor\b)\s{0,9})\\{0,3}(?P<quote>[\"'`])"
)
"""``process.env.DB_PASSWORD || "``, ``getenv("DB_PASSWORD") or "``."""
_ARGUMENT: Final = (
    r"\\{0,3}[\"'](?P<sign>,\s{0,9})(?:(?:default|fallback)[ \t]{0,4}=[ \t]{0,4})?\\{0,3}(?P<quote>[\"'`])"
)
"""``getenv("DB_PASSWORD", "``, after a name as the first argument of a call."""
_ASKS: Final = (
    r"\b(?:getenv|get|env|config|setting|property|getproperty|setproperty|getstring)"
    r"\(\s{0,9}\\{0,3}[\"'][\w.-]{0,60}$"
)
_SHELL: Final = r"(?P<sign>:?[=-])(?P<quote>)"
_EXPANDS: Final = r"\$\{\w{0,60}$"
"""``${DB_PASSWORD:-``."""
_BLOCK: Final = r"(?P<sign>:)[ \t]{1,8}[|>][+-]?[ \t]{0,8}\r?\n[ \t]{1,40}(?P<quote>)"
"""``password: |``, and the value in the next line."""
_SETTER: Final = r"(?P<sign>\()\s{0,9}\\{0,3}(?P<quote>[\"'])"
_SETS: Final = r"(?:\.|set_?|with_?)$"
"""``.setPassword("``, ``.password("``."""
_ELEMENT: Final = r"(?P<sign>[\"']>)(?P<quote>)"
_OPENED: Final = r"<(?:entry|string|property|item|add|param|setting)\s{1,4}(?:key|name)=[\"'][\w.-]{0,60}$"
"""``<entry key="db.password">``."""
_CALLED: Final = 100
"""At most this many characters before a name are searched for the call or element around it."""


def between_literal(folded: str, first: int, last: int) -> re.Match[str] | None:
    """Match the text between a name and a literal in one of these forms."""
    for pattern in (_DECLARED, _OTHERWISE, _BLOCK):
        if found := compile_pattern(pattern).match(folded, last):
            return found
    for pattern, opening in ((_ARGUMENT, _ASKS), (_ELEMENT, _OPENED), (_SETTER, _SETS), (_SHELL, _EXPANDS)):
        found = compile_pattern(pattern).match(folded, last)
        if found and compile_pattern(opening).search(folded, max(0, first - _CALLED), first):
            return found
    return None
