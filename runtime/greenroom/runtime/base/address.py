"""The address of an actor: its kind and key."""

from __future__ import annotations

from typing import NamedTuple

from greenroom.runtime.base.errors import InvalidAddressError

MAX_KIND_BYTES = 32
MAX_KEY_BYTES = 200


class Address(NamedTuple):
    """An actor's address. The actor exists as soon as it is addressed.

    The actor class defines the kind. The kind has 1-32 bytes of UTF-8, the key 1-200, both without NUL.
    """

    kind: str
    key: str

    def __str__(self) -> str:
        return f"{self.kind}/{self.key}"

    def prefix(self) -> bytes:
        r"""Return the bytes before each of this actor's keys: ``kind NUL key NUL``.

        No actor's prefix begins with another actor's prefix, because neither part contains a NUL.
        """
        try:
            kind, key = self.kind.encode(), self.key.encode()
        except UnicodeEncodeError as error:
            raise InvalidAddressError(f"{self!r} is no address: it has no UTF-8") from error
        if not (0 < len(kind) <= MAX_KIND_BYTES and 0 < len(key) <= MAX_KEY_BYTES) or 0 in kind or 0 in key:
            raise InvalidAddressError(
                f"{self!r} is no address: the kind takes 1-{MAX_KIND_BYTES} and the key 1-{MAX_KEY_BYTES} "
                "bytes of UTF-8 without NUL"
            )
        return b"%b\0%b\0" % (kind, key)
