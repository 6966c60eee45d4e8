"""Codes that `greenroom console` prints for the browser of its link. No I/O.

Invariants:

- Of a code its digest alone is kept, in memory, and at most one of each terminal.
- A code ends `CODE_SECONDS` after it was printed, when it is used, when another one is printed, and with the
  `WRONG_TRIES`th wrong try.
"""

from __future__ import annotations

import hmac
import secrets
from hashlib import sha256
from typing import Final

import trio

CODE_SECONDS: Final = 600.0
WRONG_TRIES: Final = 5
MOST_TERMINALS: Final = 1_024
"""Terminals that are remembered; the one that came longest ago is forgotten first."""
_LETTERS: Final = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
"""32 of them, without those that look like others: eight are 40 bits."""
_LENGTH: Final = 8
_AS_READ: Final = str.maketrans("OIL", "011", "- ")
_NOTHING: Final = bytes(32)


class PrintedCode:
    """A code that was printed.

    Attributes:
        digest: Of the code.
        until: When it ends, on trio's clock.
        wrong: How many wrong tries there were.
    """

    __slots__ = ("digest", "until", "wrong")

    def __init__(self, code: str) -> None:
        self.digest = digest_of(code)
        self.until = trio.current_time() + CODE_SECONDS
        self.wrong = 0


class TerminalCodes:
    """The codes of one terminal."""

    __slots__ = ("_code",)

    def __init__(self) -> None:
        self._code: PrintedCode | None = None

    def new(self) -> str:
        """Return a new code, as it is printed; the one before it ends."""
        code = "".join(secrets.choice(_LETTERS) for _ in range(_LENGTH))
        self._code = PrintedCode(code)
        half = _LENGTH // 2
        return f"{code[:half]}-{code[half:]}"

    def take(self, shown: str) -> PrintedCode | None:
        """Use the code up if it is shown, and return it; else None."""
        code = self._code
        if code is not None and trio.current_time() >= code.until:
            code = self._code = None
        is_right = hmac.compare_digest(_NOTHING if code is None else code.digest, digest_of(_read(shown)))
        if code is None:
            return None
        if is_right:
            self._code = None
            return code
        code.wrong += 1
        if code.wrong >= WRONG_TRIES:
            self._code = None
        return None

    def give_back(self, code: PrintedCode) -> None:
        """Let a taken code be used after all, unless there is a newer one."""
        if self._code is None:
            self._code = code


class Terminals:
    """The terminals that ask for codes, by the tokens that they name themselves by."""

    def __init__(self) -> None:
        self._codes: dict[bytes, TerminalCodes] = {}

    def open(self, token: str) -> TerminalCodes:
        """Return the codes of a terminal that has a link made."""
        while len(self._codes) >= MOST_TERMINALS:
            del self._codes[next(iter(self._codes))]
        return self._codes.setdefault(digest_of(token), TerminalCodes())

    def new_code(self, token: str) -> str | None:
        """Return a new code of a terminal; None where it is not known."""
        codes = self._codes.get(digest_of(token))
        return None if codes is None else codes.new()


def _read(shown: str) -> str:
    """Return a code as it is meant: however its letters are written and divided."""
    return shown.upper().translate(_AS_READ)


def digest_of(text: str) -> bytes:
    """Return what is kept of a secret text: a digest, by which it is known again."""
    return sha256(text.encode(errors="replace")).digest()
