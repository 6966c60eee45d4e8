"""The format of API keys, ``gr_<key id>_<secret>``: pure functions of text.

The id is public: it names the key in listings and in the audit log. The secret has 256 random bits, so
nobody guesses it however fast a hash of it is computed, and a slow hash would only cost the server. What
is kept is a digest under a key of the server (`RuntimeClient.derive`), so a stolen store does not even
show whether a given secret is one of its.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import string
from collections.abc import Callable
from typing import Final, NamedTuple

PREFIX: Final = "gr"
PURPOSE: Final = "api keys"
"""What the server's key for digests is derived for."""

_ID_ALPHABET: Final = "abcdefghijklmnopqrstuvwxyz234567"
_ID_LENGTH: Final = 12
_SECRET_ALPHABET: Final = string.ascii_letters + string.digits
_SECRET_LENGTH: Final = 43
"""62 ** 43 is more than 2 ** 256."""

KEY_ID: Final = f"[a-z2-7]{{{_ID_LENGTH}}}"
_KEY: Final = re.compile(f"{PREFIX}_({KEY_ID})_([A-Za-z0-9]{{{_SECRET_LENGTH}}})")
_LIKE_A_KEY: Final = re.compile(rf"({PREFIX}_[A-Za-z0-9]{{6,20}})_[A-Za-z0-9_-]{{8,}}")


class ParsedKey(NamedTuple):
    """A key, taken apart. It is nowhere shown."""

    key_id: str
    secret: str

    def __repr__(self) -> str:
        return f"<key {self.key_id}>"

    @property
    def whole(self) -> str:
        """The key as its holder has it."""
        return f"{PREFIX}_{self.key_id}_{self.secret}"


def new_key(choice: Callable[[str], str]) -> ParsedKey:
    """Generate a new random key.

    Args:
        choice: Draws one letter of an alphabet, so that nobody can guess which: `secrets.choice`.
    """
    key_id = "".join(choice(_ID_ALPHABET) for _ in range(_ID_LENGTH))
    return ParsedKey(key_id, "".join(choice(_SECRET_ALPHABET) for _ in range(_SECRET_LENGTH)))


def read_key(text: str) -> ParsedKey | None:
    """Return a key, taken apart; None for what is none."""
    match = _KEY.fullmatch(text)
    return None if match is None else ParsedKey(match[1], match[2])


def digest_of(key: ParsedKey, pepper: bytes) -> bytes:
    """Return the digest of a key that is stored.

    Args:
        key: The key. Its id takes part, so that a digest cannot be moved to another key.
        pepper: The server's key for this.
    """
    return hmac.digest(pepper, key.whole.encode(), hashlib.sha256)


def fits(key: ParsedKey, pepper: bytes, digest: bytes) -> bool:
    """Return whether a digest is that of a key, in a time that tells nothing of how much of it is right."""
    return hmac.compare_digest(digest_of(key, pepper), digest)


def without_keys(text: str) -> str:
    """Return a text with what looks like a key cut down to its id, for logs and answers."""
    return _LIKE_A_KEY.sub(r"\1_…", text) if f"{PREFIX}_" in text else text


def has_key(text: str) -> bool:
    """Return whether something in a text looks like a key."""
    return f"{PREFIX}_" in text and _LIKE_A_KEY.search(text) is not None
