"""Numbers of people, accounts and cards, and seed phrases."""
# ruff: noqa: RUF001

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import cache
from typing import Final

from greenroom.actors.content.secrets.values import Span, compile_pattern

_IDENTITIES: Final = """
ssn social_security social_insurance itin national_insurance nino passport reisepass passeport pasaporte
passaporto passaporte paspoort паспорт driver's_licen drivers_licen driver_licen driving_licen führerschein
tax_id tax-id taxpayer_id steuer-id steueridentifikationsnummer sozialversicherungsnummer personalausweis
numéro_de_sécu dni nie nif curp cpf cnpj codice_fiscale carta_d'identità bsn burgerservicenummer pesel nip
personnummer henkilötunnus rodné_číslo снилс инн tc_kimlik aadhaar aadhar pan_card nhs medicare health_card
routing account_number sort_code bank_account kontonummer numéro_de_compte número_de_cuenta numero_di_conto
身份证 护照号 银行卡 银行账号 マイナンバー 口座番号 パスポート番号 주민등록번호 주민번호 여권번호 계좌번호
"""
"""Names of numbers that people and accounts have; an underscore stands for a space."""
_ACCOUNTS: Final = ("routing", "sort code")
"""If a text has one of these, its accounts are bank accounts."""
_BEHIND: Final = (
    r"[^\W\d_]{0,12}(?![^\W_])"
    r"(?:'s)?(?:[ \t](?:number|no\.?|nr\.?|numéro|número|numero|nummer|номер))?[ \t]{0,2}"
    r"(?:[:=：#是は는은]|is|ist|est|es|è|é|to|это|är|\(|号)?[ \t:]{0,3}[\"']?"
    r"((?=(?:[A-Z .-]{0,8}[0-9]){5})[A-Z0-9](?:[A-Z0-9]"
    r"|[ .-](?=[A-Z0-9])){5,24}[A-Z0-9])(?![\w%@/]|-[0-9A-Za-z])"
)
_MOST: Final = 60
_FEWEST_DIGITS: Final = 3
_IBAN: Final = r"(?<!\w)[A-Z]{2}[0-9]{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?(?!\w)"
_LONGEST: Final = 40_000
"""Texts with at most this many characters are searched for IBANs even without a word for IBANs."""
_LEAST_IBAN: Final = 15
_IBAN_CHECK: Final = 97

_SEED_WORDS: Final = os.path.join(os.path.dirname(__file__), "seed_words", "english.txt")  # noqa: PTH118, PTH120
_CARD: Final = (
    r"(?<![\w.,+/%#=&-])(?<!\w[:@])(?:[3-6][0-9]{3}([ -]?)[0-9]{4}\1[0-9]{4}\1[0-9]{4}"
    r"|3[47][0-9]{2}([ -]?)[0-9]{6}\2[0-9]{5})"
    r"(?![\w%/+-]|\.[0-9])"
)
_ISSUERS: Final = r"4|5[1-5]|2[2-7]|3[47]|3[068]|35|6011|64[4-9]|65|62|50|5[6-8]|6[37]"
_FEWEST_CARD_DIGITS: Final = 6
"""Distinct digits. Test numbers have fewer; real cards almost always have more."""
_TEST_NUMBERS: Final = """
378282246310005 371449635398431 3530111333300000 6011000990139424 5200828282828210 2223003122003222
"""
_FOR_TESTS: Final = frozenset(_TEST_NUMBERS.split())
_PHRASE: Final = (
    r"(?<![A-Za-z])(?:[0-9]{1,2}[.):]?\s{0,2})?[A-Za-z]{3,8}(?:[\s,;"
    r"|\"'`]{1,4}(?:[0-9]{1,2}[.):]?\s{0,2})?[A-Za-z]{3,8}){11,}+"
)
_SEED_WORD: Final = r"[A-Za-z]+"
_FEWEST_SEEDS: Final = 12


def personal_numbers(text: str, lowered: str) -> Iterator[Span]:
    """Find numbers of people, accounts and recovery; ``lowered`` is as long as the text."""
    stems = [stem for stem in _stems() if stem in lowered]
    if any(each in stems for each in _ACCOUNTS):
        stems.append("account")
    for stem in stems:
        for word in compile_pattern(rf"{re.escape(stem)}(?<![^\W_]{re.escape(stem)})").finditer(lowered):
            found = compile_pattern(_BEHIND).match(text, word.end(), word.end() + _MOST)
            if found and len({*found[1]}) >= _FEWEST_DIGITS and not _is_example(found[1]):
                yield Span(*found.span(1), "personal number", 1)
    if "iban" in lowered or len(text) < _LONGEST:
        for found in compile_pattern(_IBAN).finditer(text):
            if _is_checked(found[0].replace(" ", "")):
                yield Span(*found.span(), "bank account", 1)


@cache
def _stems() -> tuple[str, ...]:
    return tuple(stem.replace("_", " ") for stem in _IDENTITIES.split())


def _is_example(value: str) -> bool:
    digits = "".join(filter(str.isdigit, value))
    return digits in "01234567890" or digits in "09876543210"


def _is_checked(number: str) -> bool:
    """Return whether an IBAN's check digits are right."""
    if len(number) < _LEAST_IBAN:
        return False
    turned = number[4:] + number[:4]
    return int("".join(str(int(each, 36)) for each in turned)) % _IBAN_CHECK == 1


@cache
def _seed_words() -> frozenset[str]:
    with open(_SEED_WORDS, encoding="ascii") as file:  # noqa: PTH123 - likewise
        return frozenset(file.read().split())


def card_numbers(text: str) -> Iterator[Span]:
    """Find numbers of payment cards, by length, first digits and check digit."""
    for found in compile_pattern(_CARD).finditer(text):
        digits = "".join(filter(str.isdigit, found[0]))
        if (
            compile_pattern(_ISSUERS).match(digits)
            and len(set(digits)) >= _FEWEST_CARD_DIGITS
            and digits not in _FOR_TESTS
            and _passes_luhn(digits)
        ):
            yield Span(*found.span(), "card number", 1)


def _passes_luhn(digits: str) -> bool:
    """Return whether the last digit satisfies Luhn's formula."""
    numbers = [*map(int, reversed(digits))]
    doubled = (sum(divmod(2 * number, 10)) for number in numbers[1::2])
    return (sum(numbers[::2]) + sum(doubled)) % 10 == 0


def seed_phrases(text: str) -> Iterator[Span]:
    """Find seed phrases of wallets: twelve or more words from the list of seed words."""
    for run in compile_pattern(_PHRASE).finditer(text):
        words = [*compile_pattern(_SEED_WORD).finditer(text, *run.span())]
        known = [word[0].lower() in _seed_words() for word in words]
        first = 0
        for place, is_known in enumerate((*known, False)):
            if is_known:
                continue
            if place - first >= _FEWEST_SEEDS:
                yield Span(words[first].start(), words[place - 1].end(), "seed phrase")
            first = place + 1
