"""Secrets that are known by what stands before them: a name, a header, an address, or a telling word nearby."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from greenroom.actors.hooks.secret_values import Span, is_harmless, is_random, is_wordy

LONGEST_VALUE: Final = 4_096
"""Characters of a value that are left out at most."""

_NAME: Final = re.compile(
    r"(?P<password>password|passwd|passphrase|passwort|kennwort|passcode|pwd|(?<=[_-])pass)"
    r"|client[_-]?secret|secret|token|credentials?|(?<=[?&])sig|signature"
    r"|(?:api|access|secret|private|auth|encryption|signing|account|master|session|shared|license|jwt)[_-]?key"
)
_BETWEEN: Final = re.compile(
    r"(?:[_-]?[0-9]{1,3}|[_-](?:prod|production|dev|test|staging|live|value|base64|b64))?"
    r"\\{0,3}[\"'`\]]?"
    r"(?P<sign>[ \t]{0,8}(?:=>|:=|={1,2}|:)[ \t]{0,8}|>|[ \t]{1,4}(?:is|ist|lautet):?[ \t]{1,4}|[ \t]{1,4})"
    r"\\{0,3}(?P<quote>[\"'`]?)"
)
_QUOTED: Final = {quote: re.compile(rf"[^{quote}\r\n]{{1,{LONGEST_VALUE}}}") for quote in "\"'`"}
_BARE: Final = re.compile(rf"[^\s\"'`,;<>|&\]}})]{{1,{LONGEST_VALUE}}}")
_HEADER: Final = re.compile(
    r"authorization\\{0,3}[\"']?[ \t]{0,4}[:=][ \t]{0,4}\\{0,3}[\"']?(?:[A-Za-z]{2,20}[ \t]{1,4})?",
    re.IGNORECASE,
)
_BEARER: Final = re.compile(r"bearer[ \t]{1,4}", re.IGNORECASE)
_COOKIE: Final = re.compile(r"cookie\\{0,3}[\"']?:[ \t]{0,4}\\{0,3}[\"']?", re.IGNORECASE)
_HEADER_VALUE: Final = re.compile(r"[A-Za-z0-9._~+/=:-]{8,4096}")
_COOKIES: Final = re.compile(r"[^\r\n\"'\\]{8,4096}")
_ADDRESS: Final = re.compile(r"://[^\s/:@\"'<>]{0,100}:([^\s/\"'<>]{1,256})@")
_USER: Final = re.compile(r"\s(?:-u|--user)[ =]{0,2}[\"']?[^\s:\"']{1,100}:([^\s\"']{3,256})")
_RUN: Final = re.compile(r"[A-Za-z0-9+/_=-]{20,}")
_LONGEST_RUN: Final = 512
_TELLING: Final = re.compile(
    r"passw|secret|credential|(?:api|access|private|auth)[ _-]?key|token\b|bearer", re.IGNORECASE
)
_NEAR: Final = 40
_OF_NAMES: Final = re.compile(r"passw|pwd|secret|token|key|cred|auth", re.IGNORECASE)
_EXPRESSION: Final = re.compile(r"[(\[{]|[A-Za-z_]\.[A-Za-z_]|::|->")


def named_secrets(text: str) -> Iterator[Span]:
    """Find secrets by what stands before them."""
    folded = text.encode("ascii", "replace").lower().decode("ascii")
    yield from _assigned(text, folded)
    yield from _in_headers(text, folded)
    if "://" in text:
        for found in _ADDRESS.finditer(text):
            if not is_placeholder(found[1]):
                yield Span(*found.span(1), "password", 1)
    if "curl" in folded:
        for found in _USER.finditer(text):
            if not found[1].isdigit() and not is_placeholder(found[1]):
                yield Span(*found.span(1), "password", 1)
    yield from _near_telling_words(text)


def is_placeholder(value: str) -> bool:
    """Return whether a value that has a secret's name is only another name of it."""
    return is_harmless_password(value) or (is_wordy(value) and _OF_NAMES.search(value) is not None)


def is_harmless_password(value: str) -> bool:
    """Return whether a password is none; it may be short, and of few letters."""
    return len(set(value)) < 2 or is_harmless(value + "#aZ09")


def _assigned(text: str, folded: str) -> Iterator[Span]:
    judged = 0  # up to where a value without quotes went
    for name in _NAME.finditer(folded):
        if name.start() < judged:
            continue
        between = _BETWEEN.match(folded, name.end())
        if between is None:
            continue
        quote = between["quote"]
        value = (_QUOTED[quote] if quote else _BARE).match(text, between.end())
        if value is None:
            continue
        first, last = value.span()
        judged = judged if quote else last
        last -= len(value[0]) - len(value[0].rstrip("\\."))
        begin = name.start()
        while begin > max(0, name.start() - 40) and (
            folded[begin - 1].isalnum() or folded[begin - 1] in "_-"
        ):
            begin -= 1
        if _is_secret(
            text[first:last], text[begin : name.end()], between["sign"], quote, name["password"] is not None
        ):
            yield Span(first, last, "password" if name["password"] else "secret value", 1)


def _is_secret(value: str, name: str, sign: str, quote: str, is_password: bool) -> bool:
    if len(value) < (3 if is_password else 6) or is_placeholder(value):
        return False
    if sign == ">":
        return "/" not in value[:1] and not value[0].isspace()
    if not sign.strip() and not name.startswith("--"):
        return False
    if any(map(str.isspace, value)):
        return (
            is_password
            and len(value.split()) <= 8
            and is_wordy(value)
            and value == value.lower()
            and sign.strip() in {"=", ":"}
        )
    if quote:
        return is_password or not is_wordy(value)
    if name.isupper() and sign == "=":
        return not value.startswith("/")
    if _EXPRESSION.search(value):
        return False
    return not is_wordy(value) or (is_password and any(map(str.isdigit, value)))


def _in_headers(text: str, folded: str) -> Iterator[Span]:
    if "authorization" in folded:
        for header in _HEADER.finditer(text):
            value = _HEADER_VALUE.match(text, header.end())
            if value is not None and not is_placeholder(value[0]):
                yield Span(*value.span(), "authorization", 1)
    if "bearer" in folded:
        for header in _BEARER.finditer(text):
            value = _HEADER_VALUE.match(text, header.end())
            if (
                value is not None
                and len(value[0]) >= 16
                and not is_harmless(value[0])
                and not is_wordy(value[0])
            ):
                yield Span(*value.span(), "authorization", 1)
    if "cookie" in folded:
        for header in _COOKIE.finditer(text):
            value = _COOKIES.match(text, header.end())
            if value is not None and "=" in value[0]:
                yield Span(*value.span(), "cookie", 1)


def _near_telling_words(text: str) -> Iterator[Span]:
    if not _TELLING.search(text):
        return
    for run in _RUN.finditer(text):
        if run.end() - run.start() <= _LONGEST_RUN:
            before = text[max(0, run.start() - _NEAR) : run.start()].rpartition("\n")[2]
            if _TELLING.search(before) and is_random(run[0]):
                yield Span(*run.span(), "random value", 2)
