"""Parse and render values of settings: sizes, names, words, numbers, folders, addresses.

A reader gets the value of a flag, an environment variable or a TOML key. It returns the parsed value,
or raises `InvalidValueError` with a message that says what is allowed. It does not know the source;
`load` puts the source and the value before that message. A text means the same in every source. TOML
may also use its own numbers and lists.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_network
from pathlib import Path
from typing import Any, Final, Generic, TypeVar
from urllib.parse import urlsplit

from greenroom.actors.app.savings.baselines import OPERATIONS, read_baseline
from greenroom.actors.core.base.byte_sizes import SizeRange, format_size
from greenroom.actors.sessions.conversation_tiers import (
    MOST_COMPRESSED,
    MOST_LINES,
    MOST_RECENT,
    TierSizes,
    parse_tiers,
)
from greenroom.transports.base.errors import InvalidSecretValueError, InvalidValueError
from greenroom.transports.base.net.addresses import LAST_PORT, HostPort, is_loopback, origin_parts

T = TypeVar("T")
WordT = TypeVar("WordT", bound=str)

_EMBEDDER: Final = re.compile(
    r"auto|minilm|static|none|(?:https?:)?https?://[^\s/]\S*|python:[A-Za-z_][A-Za-z0-9_.]*:[A-Za-z_][A-Za-z0-9_]*"
)
_MODEL: Final = "onnx:"
_PORT: Final = re.compile("[0-9]{1,5}")
_SIGNER: Final = re.compile(r"ed25519:[A-Za-z0-9_-]{43}")
_WHOLE: Final = re.compile(r"[+-]?\d{1,18}", re.ASCII)

_TRUTHS: Final = dict.fromkeys(("yes", "true", "on", "1"), True) | dict.fromkeys(
    ("no", "false", "off", "0"), False
)


@dataclass(frozen=True)
class Reader(Generic[T]):
    """Parse a value, or raise `InvalidValueError` with what is allowed.

    Attributes:
        convert: Converts the text; a `ValueError` or a `KeyError` rejects it.
        kinds: The accepted types: text, and further types that TOML may use.
        repeatable: Whether the flag may be repeated.
    """

    metavar: str
    allowed: str
    convert: Callable[[Any], T]
    kinds: tuple[type, ...] = (str,)
    show: Callable[[Any], str] = str
    repeatable: bool = False

    def __call__(self, value: object) -> T:
        """Parse a text or a TOML value."""
        if type(value) not in self.kinds:  # exact types: a bool is not a number
            raise InvalidValueError(self.allowed)
        try:
            return self.convert(value)
        except (ValueError, KeyError, OverflowError, OSError):
            raise InvalidValueError(self.allowed) from None
        except RuntimeError as error:  # an unknown ~user
            raise InvalidValueError(f"{self.allowed} ({error})") from None


@dataclass(frozen=True)
class Setting:
    """The declaration of one setting, besides its type and default.

    Attributes:
        help: What it does, for users; also describes a default that depends on the machine.
        everywhere: Whether every command takes the flag, not only `serve` and `config`.
    """

    reader: Reader[Any]
    help: str
    everywhere: bool


def setting(default: Any, reader: Reader[Any], help_text: str, *, everywhere: bool = False) -> Any:
    """Declare a field as a setting; `default` is a value or a function."""
    metadata = {"setting": Setting(reader, help_text, everywhere)}
    if callable(default):
        return field(default_factory=default, metadata=metadata)
    return field(default=default, metadata=metadata)


def _reader(metavar: str, allowed: str) -> Callable[[Callable[[str], T]], Reader[T]]:
    """Make a reader from a function that converts a text."""
    return lambda convert: Reader(metavar, allowed, convert)


def _between(least: float, found: Any, most: float) -> Any:
    if not least <= found <= most:  # NaN fails this as well
        raise ValueError(found)
    return found


def _matched(pattern: re.Pattern[str], text: str) -> re.Match[str]:
    match = pattern.fullmatch(text)
    if match is None:
        raise ValueError(text)
    return match


def size(least: int, most: int) -> Reader[int]:
    """Return a reader for a number of bytes, with or without a unit, within bounds."""
    sizes = SizeRange(least, most)
    return Reader("SIZE", sizes.allowed, sizes.read, (str, int), format_size)


def integer(least: int, most: int, unit: str, metavar: str = "COUNT") -> Reader[int]:
    """Return a reader for an integer within bounds; `unit` names what it counts."""

    def convert(value: str | int) -> int:
        return int(_between(least, int(_matched(_WHOLE, str(value).strip())[0]), most))

    allowed = f"a whole number of {unit} from {least:,} to {most:,} is allowed"
    return Reader(metavar, allowed, convert, (str, int))


def number(least: float, most: float, unit: str, metavar: str | None = None) -> Reader[float]:
    """Return a reader for a finite number within bounds; `unit` names what it measures."""

    def convert(value: str | float) -> float:
        return float(_between(least, float(value), most))

    allowed = f"a number of {unit} from {least:,} to {most:,} is allowed"
    return Reader(metavar or unit.upper(), allowed, convert, (str, int, float), "{:g}".format)


def word(*words: WordT) -> Reader[WordT]:
    """Return a reader for one word of a fixed set."""
    allowed = f"{', '.join(words[:-1])} or {words[-1]} is allowed"
    return Reader("|".join(words), allowed, {each: each for each in words}.__getitem__)


def name(longest: int, metavar: str = "ID") -> Reader[str]:
    """Return a reader for an identifier of 1 to `longest` characters of ``A-Za-z0-9_.-``."""
    pattern = re.compile(f"[A-Za-z0-9_.-]{{1,{longest}}}")
    allowed = f"1 to {longest} of the characters A-Z a-z 0-9 _ . - are allowed"
    return Reader(metavar, allowed, lambda text: _matched(pattern, text)[0])


def line(longest: int) -> Reader[str]:
    """Return a reader for 1 to `longest` printable characters."""

    @_reader("NAME", f"1 to {longest} printable characters are allowed")
    def read(text: str) -> str:
        if not 1 <= len(text) <= longest or not text.isprintable():
            raise ValueError(text)
        return text

    return read


@_reader(
    "OPERATION=BASELINE",
    "; ".join(f"{operation}={'|'.join(names)}" for operation, names in OPERATIONS.items()) + " are allowed",
)
def baseline(text: str) -> str:
    """Parse the baseline of an operation."""
    return "=".join(read_baseline(text))


def list_of(
    read_one: Reader[str], metavar: str | None = None, *, repeatable: bool = True
) -> Reader[tuple[str, ...]]:
    """Return a reader for a list: TOML, a repeated flag, or commas."""

    def convert(value: str | list[object]) -> tuple[str, ...]:
        parts = [part.strip() for part in value.split(",")] if isinstance(value, str) else value
        return tuple(dict.fromkeys(map(read_one, parts)))

    return Reader(
        metavar or read_one.metavar,
        "a list of texts is allowed",
        convert,
        (str, list, tuple),  # a tuple was parsed before, for example by a command's own flag
        ",".join,
        repeatable=repeatable,
    )


def _path(text: str) -> Path:
    if not text or "\0" in text:
        raise ValueError(text)
    return Path(text).expanduser()


text_path: Final = Reader("DIR", "the path of a folder is allowed", lambda text: str(_path(text)))
"""Parse the path of one folder in a list."""
folder: Final = Reader("DIR", "the path of a folder is allowed", _path)
"""Parse the path of a folder; ``~`` means the home folder."""
file: Final = Reader("FILE", "the path of a file is allowed", _path)
"""Parse the path of a file; ``~`` means the home folder."""


@dataclass(frozen=True)
class Model:
    """An embedding model in a folder.

    Attributes:
        path: The folder, or the path of one of several models in it.
    """

    path: Path

    def __str__(self) -> str:
        return f"{_MODEL}{self.path}"


@dataclass(frozen=True)
class KeyLocation:
    """The place where a key is stored.

    Attributes:
        kind: ``file``, ``env`` or ``keyring``.
        name: The path, the variable or the name of the password.
    """

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"


@_reader(
    "file:PATH|env:NAME|keyring:NAME",
    "file:PATH, env:NAME or keyring:NAME is allowed, and never the key itself",
)
def key_location(text: str) -> KeyLocation:
    """Parse the location of a key; a key itself is rejected."""
    kind, _, found = text.strip().partition(":")
    if kind not in {"file", "env", "keyring"} or not found or not found.isprintable():
        raise InvalidSecretValueError(key_location.allowed)
    return KeyLocation(kind, str(file(found)) if kind == "file" else found)


@_reader(
    "auto|minilm|static|none|onnx:DIR|http:URL|python:MODULE:CLASS",
    "auto, minilm, static, none, onnx:DIR, http:URL or python:MODULE:CLASS is allowed",
)
def embedder(text: str) -> str | Model:
    """Parse the choice of an embedder."""
    found = text.strip()
    if found.startswith(_MODEL):
        return Model(folder(found.removeprefix(_MODEL)))
    return _matched(_EMBEDDER, found)[0]


def _languages() -> list[str]:
    import Stemmer  # type: ignore[import-not-found]  # noqa: PLC0415 - few set it; it has no types

    return list(Stemmer.algorithms())


@_reader("NAME", "the name of a language is allowed, such as english")
def language(text: str) -> str:
    """Parse the name of a language that has a stemmer."""
    return word(*_languages())(text.strip().lower())


@_reader("ZONE", "the name of a time zone is allowed, such as Europe/Berlin or UTC")
def zone(text: str) -> str:
    """Parse the name of a time zone."""
    import zoneinfo  # noqa: PLC0415 - few set it

    return zoneinfo.ZoneInfo(text.strip()).key


@_reader(
    "KEY",
    "a signer's public key is allowed: ed25519: and 43 characters, as `greenroom passport signer` prints "
    "it on the server that signs",
)
def signer(text: str) -> str:
    """Parse the public key of a server that signs passports."""
    return _matched(_SIGNER, text.strip())[0]


@_reader("URL", "a URL such as https://example.org is allowed, http only on this machine")
def url(text: str) -> str:
    """Parse a URL with a protected connection: https, or http on this machine."""
    found = text.strip()
    parts = urlsplit(found)
    secure = parts.scheme == "https" or (parts.scheme == "http" and is_loopback(parts.hostname or ""))
    if not (secure and parts.hostname) or parts.query or parts.fragment or parts.username is not None:
        raise ValueError(text)
    return found


@_reader(
    "HOST:PORT",
    "HOST:PORT is allowed, such as 127.0.0.1:8765 or [::1]:8765, with a port from 0 to 65535",
)
def host_port(text: str) -> HostPort:
    """Parse ``127.0.0.1:8765``, ``[::1]:8765`` or ``0.0.0.0:8765``."""
    host, _, port = text.strip().rpartition(":")
    bare = host.removeprefix("[").removesuffix("]") if host.startswith("[") else host
    if not bare or (":" in bare and bare == host):
        raise ValueError(text)
    return HostPort(bare, _between(0, int(_matched(_PORT, port)[0]), LAST_PORT))


@_reader("ORIGIN", "an origin such as https://example.org or http://example.org:8000 is allowed")
def origin(text: str) -> str:
    """Parse an origin as a browser spells it."""
    plain = text.strip().lower().removesuffix("/")
    if plain != "null" and origin_parts(plain) is None:
        raise ValueError(text)
    return plain


@_reader("NETWORK", "an address or a network such as 10.0.0.7 or 10.0.0.0/8 is allowed")
def network(text: str) -> str:
    """Parse a network of proxies."""
    return str(ip_network(text.strip()))


boolean: Final = Reader(
    "yes|no",
    "yes or no is allowed",
    lambda value: value if isinstance(value, bool) else _TRUTHS[value.strip().lower()],
    (str, bool),
    lambda value: "yes" if value else "no",
)
"""Parse yes or no."""


def _tiers(value: str | Sequence[object]) -> TierSizes:
    parts = value.split(",") if isinstance(value, str) else value
    return parse_tiers([int(_matched(_WHOLE, str(part).strip())[0]) for part in parts])


tiers: Final = Reader(
    "RECENT,SHORT,LINES",
    f"three whole numbers such as 20,80,200 are allowed, up to {MOST_RECENT},{MOST_COMPRESSED},{MOST_LINES}",
    _tiers,
    (str, list, TierSizes),
    lambda sizes: ",".join(map(str, sizes)),
)
"""The sizes of the tiers of a conversation."""
