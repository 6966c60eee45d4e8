"""Recognise orders to the model about itself, which wait for a review."""

from __future__ import annotations

import re
from typing import Final

from greenroom.actors.content.secrets.detect import LEFT_OUT_BEGINS
from greenroom.actors.content.text.private_parts import PRIVATE

_LAST_LATIN: Final = 0x24F
_ANY: Final = r"(?:any|every|all|each|whatever|every ?thing|any ?thing)"
_KEYS: Final = r"(?:api|private|ssh|access|signing|encryption|secret|deploy|master|gpg|pgp)"
_WHOSE: Final = r"(?:all|any|every|the|your|my|our|their|access|api|auth\w*|bearer|session|refresh|personal)"
_OF_RULES: Final = (
    r"(?:instructions?|rules?|prompts?|previous|prior|earlier|above|all|safety|system|guidelines?"
    r"|warnings?|what)"
)
_WORDS: Final = (
    # its tools
    r"tools?|mcp|greenroom|(?:sub-?)?agents?|assistants?|werkzeuge?|whatever|no matter what",
    r"curl|wget|netcat|ssh|scp|rsync|telnet|eval|base64|powershell|sudo|chmod|rm -\w+|(?:ba|z)?sh -c",
    rf"downloads?|(?:run|runs|execute|do|follow|obey|accept)\b[^.]{{0,20}}\b{_ANY}",
    # permissions
    r"permi(?:t|ts|tted|ssions?)|allow(?:ed|s|list)?|approv\w+|confirm\w*|consent|grant\w*|authori[sz]\w+",
    r"deny|denied|sandbox\w*|bypass\w*|privileg\w*|trust\w*|full access|yolo|no-verify|dangerously\S*",
    r"auto-?(?:approve|accept|run|confirm)\w*|ask(?:s|ed|ing)?",
    r"without (?:a )?(?:review|confirmation|approval|permission|question)",
    r"berechtigung\w*|erlaub\w*|genehmig\w*|best\u00e4tig\w*|(?:nach)?frag(?:e|en|t)|r\u00fcckfrage\w*",
    # secrets
    r"secrets?|pass(?:words?|phrases?|wd)|credentials?|cookies?|certificates?|keychain|vault|id_rsa|netrc",
    rf"{_KEYS}[ -]?keys?|{_WHOSE}[ -]tokens?|env(?:ironment)? var\w*",
    r"passw\u00f6rt\w*|passwort|geheim\w*|zugangsdaten|schl\u00fcssel\w*",
    # other people
    r"colleagues?|co-?workers?|team ?mates?|boss|managers?|maintainers?|(?:other|all) users|on behalf",
    r"(?:every|any|some)(?:one|body)|people|persons?|he|she|him|his|her|kolleg\w+",
    r"e-?mails?|mail(?:s|ed|ing)?|slack|discord|telegram|tweets?|sen(?:d|ds|t|ding)|upload\w*",
    r"(?<!going )forward(?:s|ed|ing)?|notif(?:y|ies|ied)|inform|contact|invites?|tell|obey",
    r"(?:share[sd]?|post(?:s|ed)?) (?:it|them|this|with|to|on|all)|schick\w*|send(?:e|en|et)",
    # these rules
    rf"(?:ignor|disregard|forget|overrid|overrul|circumvent)\w*\b[^.]{{0,40}}\b{_OF_RULES}",
    r"instructions?|guidelines?|guardrails?|polic(?:y|ies)|prompts?|memories|(?:un|not )?reviewed",
    r"(?:these|those|your|previous|prior|other|all|any) (?:\w+ )?rules?|jailbreak|developer mode",
    r"pretend|act as|you are|secretly|silently|hid(?:e|den)|reveal\w*|disclos\w*|leak\w*|exfiltrat\w*",
    r"conceal\w*|back ?doors?|(?:don't|do not|never|not) (?:tell|mention|say|show|admit)",
    r"anweisung\w*|ignorier\w*|(?:diese|deine|alle) regeln",
)
_ORDER: Final = re.compile(
    rf"(?<![\w-])(?:{'|'.join(_WORDS)})(?![\w-])|\.env\b|--force\b",
    re.IGNORECASE,
)
_REPORT: Final = re.compile(
    r"\b(?:says?|said|tells?|told|wrote|writes|states?|stated|according to|copied|pasted|quot(?:e[sd]?|ing)"
    r"|laut|sagte?|schreibt)\b",
    re.IGNORECASE,
)
"""The words of others, in the person's sentence."""


def orders_model(statement: str) -> bool:
    """Return whether a statement may be an order to the model about itself.

    Its tools, permissions, secrets, other people and these rules are meant. The words of others that a person
    reports count, too, and so do letters that could disguise a word.
    """
    return (
        _ORDER.search(statement) is not None
        or _REPORT.search(statement) is not None
        or LEFT_OUT_BEGINS in statement
        or PRIVATE in statement
        or any(ord(each) > _LAST_LATIN and each.isalpha() for each in statement)
    )
