"""Tell which findings are the person's own typed words, and order the model nothing about itself.

Such findings are given to later sessions before a review, so each doubt counts against them. A short sentence
that was pasted looks like a typed one.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from greenroom.actors.content.secrets.detect import LEFT_OUT_BEGINS
from greenroom.actors.content.text.private_parts import PRIVATE
from greenroom.actors.hooks.extraction.findings import Finding, Rule
from greenroom.actors.hooks.extraction.strip_quotes import split_sentences
from greenroom.actors.sessions.requests.hook_events import Turn

MOST_LINES: Final = 10
MOST_CHARACTERS: Final = 1_000
"""A turn with more lines or characters counts as pasted."""
RULES_OF_WORDS: Final[tuple[Rule, ...]] = ("decision", "preference", "remember")
"""The rules whose findings a person can have typed."""
_LAST_LATIN: Final = 0x24F
_MARKUP: Final = re.compile(
    r"^\s{0,3}(?:#{1,6}\s|>|\||```|~~~|(?:={3,}|-{3,}|\*{3,})\s*$)"  # heading, quotation, table, fence, rule
    r"|^\s*(?:[-*+\u2022]|[0-9]{1,3}[.)])\s"  # a list
    r"|^(?: {4}|\t)\s*\S"  # code
    r"|\*\*|</?[A-Za-z!][^<>\n]{0,200}>|<!--|&(?:#[0-9]+|[A-Za-z]{2,8});"
    r"|!?\[[^\]\n]{0,200}\](?:\(|:\s)|\[Pasted text|\w://|\bwww\.\w"
    r"|\b[\w-]+\.(?:com|net|org|io|dev|app|ai|example|xyz|info|biz|ru|cn|cloud|site|online|top)\b"
    r"|\S@\S+\.\w",
    re.MULTILINE,
)
"""A heading, a link, or other mark-up."""
_QUOTATION: Final = re.compile(
    r"\"[^\"]*\s[^\"]*(?:\"|\Z)|[\u201c\u201e\u00ab][^\u201c\u201d\u00bb]*\s[^\u201c\u201d\u00bb]*(?:[\u201c\u201d\u00bb]|\Z)"
    r"|(?<!\w)['\u2018][^'\u2018\u2019\n]*\s[^'\u2018\u2019\n]*['\u2019](?!\w)"
)
_REPORTS: Final = re.compile(
    r"\b(?:says?|said|tells?|told|wrote|writes|stated?|states|according to|copied|pasted|quot(?:e[sd]?|ing)"
    r"|laut|sagte?|schreibt)\b",
    re.IGNORECASE,
)
"""The words of others, in the person's sentence."""
_ORDER_WORDS: Final = (
    # its tools
    r"tools?|mcp|greenroom|(?:sub-?)?agents?|assistants?|werkzeuge?",
    r"curl|wget|netcat|ssh|scp|rsync|telnet|eval|base64|powershell|sudo|chmod|rm -\w+|(?:ba|z)?sh -c|downloads?",
    r"(?:run|runs|execute|do|follow|obey|accept)\b[^.]{0,20}\b(?:any|every|all|each|whatever|every ?thing|any ?thing)",
    r"whatever|no matter what",
    # permissions
    r"permi(?:t|ts|tted|ssions?)|allow(?:ed|s|list)?|approv\w+|confirm\w*|consent|grant\w*|authori[sz]\w+|den(?:y|ied)",
    r"sandbox\w*|bypass\w*|privileg\w*|trust\w*|full access|auto-?(?:approve|accept|run|confirm)\w*|yolo|no-verify",
    r"dangerously\S*|without (?:a )?(?:review|confirmation|approval|permission|question)|ask(?:s|ed|ing)?",
    r"berechtigung\w*|erlaub\w*|genehmig\w*|best\u00e4tig\w*|(?:nach)?frag(?:e|en|t)|r\u00fcckfrage\w*",
    # secrets
    r"secrets?|pass(?:words?|phrases?|wd)|credentials?|cookies?|certificates?|keychain|vault|id_rsa|netrc",
    r"(?:api|private|ssh|access|signing|encryption|secret|deploy|master|gpg|pgp)[ -]?keys?|env(?:ironment)? var\w*",
    r"(?:all|any|every|the|your|my|our|their|access|api|auth\w*|bearer|session|refresh|personal|github|npm)[ -]tokens?",
    r"passw\u00f6rt\w*|passwort|geheim\w*|zugangsdaten|schl\u00fcssel\w*",
    # other people
    r"colleagues?|co-?workers?|team ?mates?|boss|managers?|maintainers?|(?:other|all) users",
    r"every(?:one|body)|any(?:one|body)|some(?:one|body)|people|persons?|he|she|him|his|her|on behalf",
    r"e-?mails?|mail(?:s|ed|ing)?|slack|discord|telegram|tweets?|sen(?:d|ds|t|ding)|upload\w*|(?<!going )forward(?:s|ed|ing)?",
    r"share[sd]? (?:it|them|this|with|all)|post(?:s|ed)? (?:it|them|this|to|on|all)|notif(?:y|ies|ied)|inform|contact",
    r"invites?|tell|obey|kolleg\w+|schick\w*|send(?:e|en|et)",
    # these rules
    r"(?:ignor|disregard|forget|overrid|overrul|circumvent)\w*\b[^.]{0,40}\b(?:instructions?|rules?|prompts?|previous"
    r"|prior|earlier|above|all|safety|system|guidelines?|warnings?|what|limits?)",
    r"instructions?|guidelines?|guardrails?|polic(?:y|ies)|(?:system )?prompts?|memories|(?:un|not )?reviewed",
    r"(?:these|those|your|previous|prior|other|all|any) (?:\w+ )?rules?|jailbreak|developer mode|pretend|act as",
    r"you are|secretly|silently|hid(?:e|den)|reveal\w*|disclos\w*|leak\w*|exfiltrat\w*|conceal\w*|back ?doors?",
    r"(?:don't|do not|never|not) (?:tell|mention|say|show|admit)|anweisung\w*|ignorier\w*|(?:diese|deine|alle) regeln",
)
_ORDER: Final = re.compile(rf"(?<![\w-])(?:{'|'.join(_ORDER_WORDS)})(?![\w-])|\.env\b|--force\b", re.IGNORECASE)


def typed_in(findings: Iterable[Finding], turns: Sequence[Turn], before: Sequence[Turn] = ()) -> list[Finding]:
    """Return the findings that the person typed, in order; ``before`` are turns that were carried over."""
    waiting = {
        _plain(each.text): each
        for each in findings
        if each.rule in RULES_OF_WORDS and not orders_model(each.text)
    }
    typed: list[Finding] = []
    others: list[str] = []
    for turn in (*before, *turns):
        if turn.role != "user":
            others.append(_plain(turn.text))
            continue
        if not waiting or is_pasted(turn.text):
            continue
        words = _plain(" ".join(_own_words(turn.text)))
        for text in [each for each in waiting if each in words]:
            if not any(text in other for other in others):
                typed.append(waiting.pop(text))
    return sorted(typed, key=lambda each: each.turn)


def is_pasted(text: str) -> bool:
    """Return whether a turn may have pasted text: it is long, or has what people do not type."""
    return (
        len(text) > MOST_CHARACTERS
        or len(text.strip().splitlines()) > MOST_LINES
        or _MARKUP.search(text) is not None
        or _has_hidden(text)
    )


def orders_model(statement: str) -> bool:
    """Return whether a statement may be an order about tools, permissions, secrets, people or these rules.

    The words of others that a person reports count, too. So do letters that could disguise a word.
    """
    return (
        _ORDER.search(statement) is not None
        or _REPORTS.search(statement) is not None
        or LEFT_OUT_BEGINS in statement
        or PRIVATE in statement
        or any(ord(each) > _LAST_LATIN and each.isalpha() for each in statement)
    )


def _own_words(text: str) -> Iterator[str]:
    for sentence in split_sentences(_QUOTATION.sub("\u2026", text)):
        yield sentence.text


def _has_hidden(text: str) -> bool:
    """Return whether a text has characters that come from pages and programs, not from a keyboard."""
    return any(
        each == "\u00a0" or unicodedata.category(each) in {"Cc", "Cf", "Co", "Cs", "Zl", "Zp"}
        for each in text
        if each not in "\n\r\t"
    )


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())
