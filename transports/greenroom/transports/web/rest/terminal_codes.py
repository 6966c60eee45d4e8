"""Codes that `greenroom console` prints to confirm actions in its browser. No I/O.

Invariants:

- Only the digest of a code is kept, in memory only, and at most one code per terminal.
- A code ends `CODE_SECONDS` after it is printed, when it is used, when a new code is printed, and after
  `WRONG_TRIES` wrong tries.
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
"""The most terminals in memory; if there are more, the oldest is dropped."""
_LETTERS: Final = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
"""32 characters that do not look alike, so eight of them are 40 bits."""
_LENGTH: Final = 8
_AS_READ: Final = str.maketrans("OIL", "011", "- ")
_NOTHING: Final = bytes(32)


class PrintedCode:
    """A printed code."""

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
        """Return a new code as it is printed; the previous code ends."""
        code = "".join(secrets.choice(_LETTERS) for _ in range(_LENGTH))
        self._code = PrintedCode(code)
        half = _LENGTH // 2
        return f"{code[:half]}-{code[half:]}"

    def take(self, shown: str) -> PrintedCode | None:
        """Consume the code and return it if ``shown`` is right; otherwise return None."""
        code = self._code
        if code is not None and trio.current_time() >= code.until:
            code = self._code = None
        typed = shown.upper().translate(_AS_READ)  # ignores case, dashes and look-alikes
        is_right = hmac.compare_digest(_NOTHING if code is None else code.digest, digest_of(typed))
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
        """Make a consumed code valid again, unless there is a newer code."""
        if self._code is None:
            self._code = code


class Terminals:
    """The terminals that request codes, by the digests of their tokens."""

    def __init__(self) -> None:
        self._codes: dict[bytes, TerminalCodes] = {}

    def open(self, token: str) -> TerminalCodes:
        """Return the codes of a terminal that requests a link."""
        while len(self._codes) >= MOST_TERMINALS:
            del self._codes[next(iter(self._codes))]
        return self._codes.setdefault(digest_of(token), TerminalCodes())

    def new_code(self, token: str) -> str | None:
        """Return a new code of a terminal; None if the terminal is unknown."""
        codes = self._codes.get(digest_of(token))
        return None if codes is None else codes.new()


def digest_of(text: str) -> bytes:
    """Return the digest that is stored in place of a secret text."""
    return sha256(text.encode(errors="replace")).digest()
