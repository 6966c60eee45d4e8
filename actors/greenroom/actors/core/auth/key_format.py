"""The format of API keys, ``gr_<key id>_<secret>``: pure functions of text.

The id is public: it names the key in listings and in the audit log. The secret has 256 random bits, so it
cannot be guessed even with a fast hash; a slow hash would only cost the server time. The store has a digest
under a key of the server (`RuntimeClient.derive`), so a stolen store cannot confirm a secret.
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
"""The purpose for which the server's digest key is derived."""

_ID_ALPHABET: Final = "abcdefghijklmnopqrstuvwxyz234567"
_ID_LENGTH: Final = 12
_SECRET_ALPHABET: Final = string.ascii_letters + string.digits
_SECRET_LENGTH: Final = 43
"""62 ** 43 is more than 2 ** 256."""

KEY_ID: Final = f"[a-z2-7]{{{_ID_LENGTH}}}"
_KEY: Final = re.compile(f"{PREFIX}_({KEY_ID})_([A-Za-z0-9]{{{_SECRET_LENGTH}}})")
_LIKE_A_KEY: Final = re.compile(rf"({PREFIX}_[A-Za-z0-9]{{6,20}})_[A-Za-z0-9_-]{{8,}}")


class ParsedKey(NamedTuple):
    """A parsed key. Its representation hides the secret."""

    key_id: str
    secret: str

    def __repr__(self) -> str:
        return f"<key {self.key_id}>"

    @property
    def whole(self) -> str:
        """The whole key as text."""
        return f"{PREFIX}_{self.key_id}_{self.secret}"


def new_key(choice: Callable[[str], str]) -> ParsedKey:
    """Generate a new random key; ``choice`` draws an unpredictable letter (`secrets.choice`)."""
    key_id = "".join(choice(_ID_ALPHABET) for _ in range(_ID_LENGTH))
    return ParsedKey(key_id, "".join(choice(_SECRET_ALPHABET) for _ in range(_SECRET_LENGTH)))


def parse_key(text: str) -> ParsedKey | None:
    """Parse a key; None if it is malformed."""
    match = _KEY.fullmatch(text)
    return None if match is None else ParsedKey(match[1], match[2])


def digest_of(key: ParsedKey, pepper: bytes) -> bytes:
    """Return the digest of a key for storage, made with the server's digest key.

    The digest includes the key's id, so it cannot be moved to another key.
    """
    return hmac.digest(pepper, key.whole.encode(), hashlib.sha256)


def matches_digest(key: ParsedKey, pepper: bytes, digest: bytes) -> bool:
    """Return whether a digest belongs to a key, in constant time."""
    return hmac.compare_digest(digest_of(key, pepper), digest)


def mask_keys(text: str) -> str:
    """Replace each API key in a text by its id, for logs and replies."""
    return _LIKE_A_KEY.sub(r"\1_…", text) if f"{PREFIX}_" in text else text


def has_key(text: str) -> bool:
    """Return whether a text contains an API key."""
    return f"{PREFIX}_" in text and _LIKE_A_KEY.search(text) is not None
