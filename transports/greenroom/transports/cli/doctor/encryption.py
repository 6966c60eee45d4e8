"""Encryption: whether the store is encrypted, and whether the key that opens it can be had."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from greenroom.runtime import StoreKeyError
from greenroom.transports.ops.cli.doctor.facts import Facts
from greenroom.transports.ops.cli.doctor.finding import Finding, ok, refused, warning
from greenroom.transports.ops.cli.support.open_store import encryption

_TOPIC: Final = "encryption"
_REMEDY: Final = "bring the key back to where it was, or name where it is with --encryption-key"


def check(facts: Facts) -> Iterator[Finding]:
    """Tell whether the key is the store's."""
    try:
        wanted = encryption(facts.settings)
        if wanted is not None:
            wanted.key()
        if facts.head is None:
            yield ok(_TOPIC, "the key that is named is there" if wanted else "no key is named")
            return
        if facts.head.is_encrypted:
            with facts.survey() as found:
                found.codec(wanted)
            yield ok(_TOPIC, "the store is encrypted, and the key that is named opens it")
            return
    except StoreKeyError as failure:
        yield refused(_TOPIC, failure, _REMEDY)
        return
    if facts.settings.encrypt:
        sentence = "the store is not encrypted and --encrypt is given; `greenroom encrypt` rewrites it"
        yield refused(_TOPIC, StoreKeyError(sentence), _REMEDY)
    elif wanted is not None:
        remedy = "rewrite it: greenroom encrypt"
        yield warning(_TOPIC, "a key is named, and the store is not encrypted", remedy)
    else:
        yield ok(_TOPIC, "the store is not encrypted; its files are for this user alone")
