"""Secrets that are known by what stands before them: a name, a header, an address, or a telling word."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from greenroom.actors.content.secrets.values import (
    Span,
    has_digit,
    is_placeholder,
    is_random,
    is_wordy,
    stands_for_another,
)

_LONGEST_QUOTED: Final = 4_096
_LONGEST_BARE: Final = 512
"""Characters of a value that are looked at, in quotes and without."""
_SHORT_PASSWORDS: Final = ("_pass", "-pass")
_PASSWORDS: Final = (
    *("password", "passwd", "passphrase", "passcode", "passwort", "kennwort", "pwd"),
    *_SHORT_PASSWORDS,
)
_KEYS_FOR: Final = (
    *("access", "account", "api", "auth", "encryption", "jwt", "license", "master", "private", "secret"),
    *("session", "shared", "signing"),
)
_TOKENS: Final = (
    *(f"{what}{between}key" for what in _KEYS_FOR for between in ("_", "-", "")),
    *("secret", "token", "credentials", "credential", "?sig", "&sig", "-signature"),
)
_NAME: Final = re.compile(f"(?:{'|'.join(map(re.escape, (*_PASSWORDS, *_TOKENS)))})(?![a-z])")
"""Each begins with a letter, outside of any group, so that the search skips to the next of these letters."""
_BETWEEN: Final = re.compile(
    r"(?:[_-]?[0-9]{1,3}|[_-](?:prod|production|dev|test|staging|live|value|base64|b64))?"
    r"\\{0,3}[\"'`\]]?"
    r"(?P<sign>[ \t]{0,8}(?:=>|:=|={1,2}|:)[ \t]{0,8}|>|[ \t]{1,4}(?:is|ist|lautet):?[ \t]{1,4}|[ \t]{1,4})"
    r"\\{0,3}(?P<quote>[\"'`]?)"
)
_OF_NAME: Final = "abcdefghijklmnopqrstuvwxyz0123456789_-"
_LONGEST_NAME: Final = 60
_QUOTED: Final = {quote: re.compile(rf"[^{quote}\r\n]{{1,{_LONGEST_QUOTED}}}") for quote in "\"'`"}
_BARE: Final = re.compile(rf"[^\s\"'`<>]{{1,{_LONGEST_BARE}}}")
_NEXT_NAME: Final = re.compile(r"[,;&|](?=[\w.-]{1,40}[=:])")
_CALL: Final = re.compile(r"[\w$.:>?-]{0,80}[(\[{].*")
_MEMBER: Final = re.compile(r"[A-Za-z_$]\w*(?:(?:\??\.|::|->)[A-Za-z_]\w*){1,20}")
_HEADER: Final = re.compile(
    r"authorization\\{0,3}[\"']?[ \t]{0,4}[:=][ \t]{0,4}\\{0,3}[\"']?(?:[a-z-]{2,20}[ \t]{1,4})?"
)
_BEARER: Final = re.compile(r"bearer[ \t]{1,4}")
_COOKIE: Final = re.compile(r"cookie\\{0,3}[\"']?:[ \t]{0,4}\\{0,3}[\"']?")
_HEADER_VALUE: Final = re.compile(r"[A-Za-z0-9._~+/=:-]{8,4096}")
_COOKIES: Final = re.compile(r"[\w.-]{1,80}=([^\s\"'\\]{6})[^\r\n\"'\\]{0,4096}")
_LEAST_BEARER: Final = 16
_ADDRESS: Final = re.compile(r"://[^\s/:@\"'<>]{0,100}:([^\s/\"'<>]{1,256})@")
_USER: Final = re.compile(r"\s(?:-u|--user)[ =]{0,2}[\"']?[^\s:\"']{0,100}[\"']?:[\"']?([^\s\"']{3,256})")
_RUN: Final = re.compile(r"[A-Za-z0-9+/_=-]{20,}")
_LONGEST_RUN: Final = 512
_TELLING: Final = re.compile(
    "passw|secret|credential|bearer|token|api[ _-]?key|access[ _-]?key|private[ _-]?key|auth[ _-]?key"
)
_DIGEST: Final = re.compile("hash|digest|sha[0-9]|commit|checksum|integrity|fingerprint|@$")
_NEAR: Final = 40
_LEAST_PASSWORD: Final = 3
_LEAST_NUMBER: Final = 4
_LEAST_TOKEN: Final = 6
_MOST_WORDS: Final = 8


def named_secrets(text: str) -> Iterator[Span]:
    """Find secrets by what stands before them."""
    folded = text.encode("ascii", "replace").lower().decode("ascii")  # as long as the text
    yield from _assigned(text, folded)
    yield from _in_headers(text, folded)
    if "://" in text:
        yield from _passwords(text, _ADDRESS)
    if "curl" in folded:
        yield from _passwords(text, _USER)
    yield from _near_telling_words(text, folded)


class _Place(NamedTuple):
    """Where a value stands.

    Attributes:
        name: The whole name before it.
        before: The character before that, if there is one.
        sign: What stands between them, with the space around it.
        quote: What opens the value, if anything does.
    """

    name: str
    before: str
    sign: str
    quote: str

    def has_password(self, value: str) -> bool:
        """Return whether a value is a password, as the name before it says that there is one."""
        if len(value) < _LEAST_PASSWORD or is_placeholder(value) or not self._assigns():
            return False
        if any(map(str.isspace, value)):
            return self.sign.strip() in {"=", ":"} and _is_passphrase(value)
        if value.isdigit() and not self.quote:
            return len(value) >= _LEAST_NUMBER and not self.name.endswith(_SHORT_PASSWORDS)
        return self._vouches(value) or (
            has_digit(value) and not (_CALL.match(value) or _MEMBER.fullmatch(value))
        )

    def has_token(self, value: str) -> bool:
        """Return whether a value is a token or key, as the name before it says that there is one."""
        if len(value) < _LEAST_TOKEN or is_placeholder(value) or not self._assigns():
            return False
        return (
            not any(map(str.isspace, value))
            and (not self.quote or not is_wordy(value))
            and self._vouches(value)
        )

    def _assigns(self) -> bool:
        match self.sign.strip():
            case ">":
                return self.before == "<" and not self.quote
            case "":
                return self.name.startswith("--")
        return self.before != "/"

    def _vouches(self, value: str) -> bool:
        """Return whether the value is in quotes, of a shell's variable, or neither words nor a call."""
        if self.quote or self.sign == ">" or (self.name.isupper() and self.sign == "="):
            return not value.startswith("/")
        return not is_wordy(value) and not _CALL.match(value)


def _is_passphrase(value: str) -> bool:
    return value.islower() and is_wordy(value) and len(value.split()) <= _MOST_WORDS


def _passwords(text: str, pattern: re.Pattern[str]) -> Iterator[Span]:
    for found in pattern.finditer(text):
        if not (found[1].isdigit() or is_placeholder(found[1])):
            yield Span(*found.span(1), "password", 1)


def _assigned(text: str, folded: str) -> Iterator[Span]:
    judged = 0  # up to where the last value without quotes went
    for found in _NAME.finditer(folded):
        between = _BETWEEN.match(folded, found.end())
        if between is None or found.start() < judged:
            continue
        quote, first = between["quote"], between.end()
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
    """Return the value that begins at a place, up to its quote or to what cannot be part of it."""
    found = (_QUOTED[quote] if quote else _BARE).match(text, first)
    if found is None:
        return ""
    if quote:
        return found[0].rstrip("\\")
    return _NEXT_NAME.split(found[0], maxsplit=1)[0].rstrip(",;&|)]}.\\")


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


def _after(
    header: re.Pattern[str], folded: str, pattern: re.Pattern[str], text: str
) -> Iterator[re.Match[str]]:
    """Yield the values that stand right behind a header, none within another."""
    done = 0
    for found in header.finditer(folded):
        value = pattern.match(text, found.end()) if found.start() >= done else None
        if value is not None:
            done = value.end()
            yield value


def _near_telling_words(text: str, folded: str) -> Iterator[Span]:
    for run in _RUN.finditer(text):
        if run.end() - run.start() > _LONGEST_RUN:
            continue
        first = max(0, run.start() - _NEAR)
        line = folded[max(first, folded.rfind("\n", first, run.start()) + 1) : run.start()]
        if _TELLING.search(line) and not ("passw" not in line and _DIGEST.search(line)) and is_random(run[0]):
            yield Span(*run.span(), "random value", 2)
