"""Secret words from a terminal or the environment, never from the command line."""

from __future__ import annotations

import getpass
import os
import sys
from functools import partial
from typing import Final

from greenroom.runtime import GreenroomError
from greenroom.transports.base.config.settings import PASSPHRASE_VARIABLE

_NO_TEXT: Final = "{} is not UTF-8; nothing was done"


class PassphraseError(GreenroomError):
    """No passphrase could be read; nothing was done."""


def read_passphrase(*, twice: bool, least: int = 0) -> str:
    """Return a passphrase of at least ``least`` characters; a new one is read twice."""
    words = os.environ.get(PASSPHRASE_VARIABLE)
    if words is None:
        ask = partial(ask_secret, variable=PASSPHRASE_VARIABLE, what="the passphrase")
        words = ask("Passphrase: ")
        if twice and ask("Again: ") != words:
            raise PassphraseError("the passphrases differ; nothing was exported")
    if not _is_text(words):
        raise PassphraseError(_NO_TEXT.format("the passphrase"))
    if len(words) < least:
        raise PassphraseError(
            f"the passphrase has {len(words)} characters, and {least} are needed; nothing was done"
        )
    return words


def ask_secret(prompt: str, variable: str, what: str) -> str:
    """Ask for secret words on the terminal, which does not show them."""
    if sys.stdin is None or not sys.stdin.isatty():
        raise PassphraseError(f"{what} is read from {variable}, or from a terminal")
    try:
        return getpass.getpass(prompt)
    except EOFError:
        raise PassphraseError(f"{what} was not given; nothing was done") from None
    except UnicodeDecodeError:
        raise PassphraseError(_NO_TEXT.format(what)) from None


def _is_text(words: str) -> bool:
    """Return whether words are UTF-8; the environment may hold any bytes."""
    try:
        words.encode()
    except UnicodeEncodeError:
        return False
    return True
