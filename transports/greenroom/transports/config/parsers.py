"""How the values of settings are read and shown: sizes, names, words, numbers, folders.

A reader gets what stood in a flag, an environment variable or a TOML file and returns
the value, or raises `InvalidValueError` with what is allowed as its message. It does not know
where the text came from; `load` puts the source and the value before that message.
Text means the same wherever it stands. TOML may use its own numbers and lists besides.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from greenroom.transports.base.errors import InvalidSecretValueError, InvalidValueError
from greenroom.transports.net.addresses import is_loopback

_NAME: Final = re.compile(r"[A-Za-z0-9_.-]+")
_EMBEDDER: Final = re.compile(r"static|none|(?:https?:)?https?://[^\s/]\S*")
_MODEL: Final = "onnx:"
_SIGNER: Final = re.compile(r"ed25519:[A-Za-z0-9_-]{43}")
_SIZE: Final = re.compile(r"(\d{1,20}(?:\.\d{1,20})?)\s*([A-Za-z]*)", re.ASCII)
_WHOLE: Final = re.compile(r"[+-]?\d{1,18}", re.ASCII)

_UNITS: Final[dict[str, int]] = {
    "b": 1,
    **{f"{letter}b": 1_000 ** (n + 1) for n, letter in enumerate("kmgt")},
    **{f"{letter}ib": 1 << (10 * (n + 1)) for n, letter in enumerate("kmgt")},
}
_TRUTHS: Final = dict.fromkeys(("yes", "true", "on", "1"), True) | dict.fromkeys(
    ("no", "false", "off", "0"), False
)


def show_size(size: int) -> str:
    """Return the shortest exact spelling of a number of bytes, as `size` reads it."""
    spellings = [str(size)]
    for unit in ("TiB", "GiB", "MiB", "KiB", "TB", "GB", "MB", "kB"):
        count, rest = divmod(size, _UNITS[unit.lower()])
        if count and not rest:
            spellings.append(f"{count}{unit}")
    return min(spellings, key=len)


def size(least: int, most: int) -> Callable[[object], int]:
    """Return a reader of a number of bytes, with or without a unit, between two bounds."""
    allowed = (
        "a size is a number of bytes, plain or with a unit such as 64MB or 256GiB, "
        f"from {show_size(least)} to {show_size(most)}"
    )

    def read(value: object) -> int:
        if isinstance(value, int) and not isinstance(value, bool):
            found = value
        else:
            match = _SIZE.fullmatch(_text(value, allowed).strip())
            unit = _UNITS.get((match[2] or "b").lower()) if match else None
            if match is None or unit is None:
                raise InvalidValueError(allowed)
            whole, _, fraction = match[1].partition(".")
            # Exact arithmetic: a float would round sizes above 2**53.
            found = int(whole) * unit + int(fraction or 0) * unit // 10 ** len(fraction)
        if not least <= found <= most:
            raise InvalidValueError(allowed)
        return found

    return read


def integer(least: int, most: int, unit: str) -> Callable[[object], int]:
    """Return a reader of a whole number between two bounds; `unit` names what is counted."""
    allowed = f"a whole number of {unit} from {least:,} to {most:,} is allowed"

    def read(value: object) -> int:
        if isinstance(value, str) and _WHOLE.fullmatch(value.strip()):
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise InvalidValueError(allowed)
        return value

    return read


def number(least: float, most: float, unit: str) -> Callable[[object], float]:
    """Return a reader of a finite number between two bounds; `unit` names what is measured."""
    allowed = f"a number of {unit} from {least:,} to {most:,} is allowed"

    def read(value: object) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            raise InvalidValueError(allowed)
        try:
            found = float(value)
        except (ValueError, OverflowError):
            raise InvalidValueError(allowed) from None
        if not math.isfinite(found) or not least <= found <= most:
            raise InvalidValueError(allowed)
        return found

    return read


def word(*words: str) -> Callable[[object], str]:
    """Return a reader of one word out of a fixed set."""
    allowed = f"{', '.join(words[:-1])} or {words[-1]} is allowed"

    def read(value: object) -> str:
        found = _text(value, allowed)
        if found not in words:
            raise InvalidValueError(allowed)
        return found

    return read


def name(longest: int) -> Callable[[object], str]:
    """Return a reader of an identifier of 1 to `longest` of ``A-Za-z0-9_.-``."""
    allowed = f"1 to {longest} of the characters A-Z a-z 0-9 _ . - are allowed"

    def read(value: object) -> str:
        found = _text(value, allowed)
        if len(found) > longest or not _NAME.fullmatch(found):
            raise InvalidValueError(allowed)
        return found

    return read


def line(longest: int) -> Callable[[object], str]:
    """Return a reader of 1 to `longest` printable characters."""
    allowed = f"1 to {longest} printable characters are allowed"

    def read(value: object) -> str:
        found = _text(value, allowed)
        if not 1 <= len(found) <= longest or not found.isprintable():
            raise InvalidValueError(allowed)
        return found

    return read


def list_of(read_one: Callable[[object], str]) -> Callable[[object], tuple[str, ...]]:
    """Return a reader of a list: a TOML list, a repeated flag, or one text with commas between."""

    def read(value: object) -> tuple[str, ...]:
        parts = [part.strip() for part in value.split(",")] if isinstance(value, str) else value
        if not isinstance(parts, list):
            raise InvalidValueError("a list of texts is allowed")
        return tuple(dict.fromkeys(read_one(part) for part in parts))

    return read


def folder(value: object) -> Path:
    """Read a path; ``~`` means the home folder."""
    allowed = "the path of a folder is allowed"
    text = _text(value, allowed)
    if not text or "\0" in text:
        raise InvalidValueError(allowed)
    try:
        return Path(text).expanduser()
    except RuntimeError as error:  # an unknown ~user
        raise InvalidValueError(f"{allowed} ({error})") from None


def file(value: object) -> Path:
    """Read a path of a file; ``~`` means the home folder."""
    try:
        return folder(value)
    except InvalidValueError:
        raise InvalidValueError("the path of a file is allowed") from None


@dataclass(frozen=True)
class Model:
    """A model in a folder, as an embedder is named.

    Attributes:
        path: The folder, or one of several models in it.
    """

    path: Path

    def __str__(self) -> str:
        return f"{_MODEL}{self.path}"


@dataclass(frozen=True)
class KeyLocation:
    """Where a key is kept.

    Attributes:
        kind: ``file``, ``env`` or ``keyring``.
        name: Which file, variable or password.
    """

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"


def key_location(value: object) -> KeyLocation:
    """Read where a key is kept; never of a key itself."""
    allowed = "file:PATH, env:NAME or keyring:NAME is allowed, and never the key itself"
    kind, _, found = _text(value, allowed).strip().partition(":")
    if kind not in {"file", "env", "keyring"} or not found or not found.isprintable():
        raise InvalidSecretValueError(allowed)
    return KeyLocation(kind, str(file(found)) if kind == "file" else found)


def embedder(value: object) -> str | Model:
    """Read what makes vectors of memories."""
    allowed = "static, none, onnx:DIR or http:URL is allowed"
    found = _text(value, allowed).strip()
    if found.startswith(_MODEL):
        return Model(folder(found.removeprefix(_MODEL)))
    if not _EMBEDDER.fullmatch(found):
        raise InvalidValueError(allowed)
    return found


def language(value: object) -> str:
    """Read the name of a language whose words can be stemmed."""
    import Stemmer  # type: ignore[import-not-found]  # noqa: PLC0415 - few set it; it has no types

    known = Stemmer.algorithms()
    allowed = f"{', '.join(known[:-1])} or {known[-1]} is allowed"
    found = _text(value, allowed).strip().lower()
    if found not in known:
        raise InvalidValueError(allowed)
    return found


def zone(value: object) -> str:
    """Read the name of a time zone."""
    allowed = "the name of a time zone is allowed, such as Europe/Berlin or UTC"
    found = _text(value, allowed).strip()
    import zoneinfo  # noqa: PLC0415 - few set it

    try:
        zoneinfo.ZoneInfo(found)
    except (ValueError, OSError, zoneinfo.ZoneInfoNotFoundError):
        raise InvalidValueError(allowed) from None
    return found


def signer(value: object) -> str:
    """Read the public key of a server that signs passports."""
    allowed = (
        "a signer's public key is allowed: ed25519: and 43 characters, as `greenroom passport signer` prints "
        "it on the server that signs"
    )
    found = _text(value, allowed).strip()
    if _SIGNER.fullmatch(found) is None:
        raise InvalidValueError(allowed)
    return found


def url(value: object) -> str:
    """Read a URL that nobody between can change what it answers: https, or http on this machine."""
    allowed = "a URL such as https://example.org is allowed, http only on this machine"
    found = _text(value, allowed).strip()
    try:
        parts = urlsplit(found)
        local = is_loopback(parts.hostname or "")
    except ValueError:
        raise InvalidValueError(allowed) from None
    secure = parts.scheme == "https" or (parts.scheme == "http" and local)
    if not (secure and parts.hostname) or parts.query or parts.fragment or parts.username is not None:
        raise InvalidValueError(allowed)
    return found


def boolean(value: object) -> bool:
    """Read yes and no."""
    if isinstance(value, bool):
        return value
    found = _TRUTHS.get(value.strip().lower()) if isinstance(value, str) else None
    if found is None:
        raise InvalidValueError("yes or no is allowed")
    return found


def show_boolean(value: object) -> str:
    """Return the spelling of yes and no that `boolean` reads."""
    return "yes" if value else "no"


def _text(value: object, allowed: str) -> str:
    if not isinstance(value, str):
        raise InvalidValueError(allowed)
    return value
