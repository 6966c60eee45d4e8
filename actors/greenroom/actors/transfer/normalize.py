"""What the readers of other programs' files share: keys, times, tags."""

from __future__ import annotations

import json
import re
from datetime import UTC, date, datetime, time
from hashlib import blake2b
from typing import Any, BinaryIO, Final, NamedTuple

import msgspec

from greenroom.actors.base.strict_json import DOUBLE_DIGITS
from greenroom.actors.base.times import read_time

MAX_KEY: Final = 255
MAX_TAG: Final = 200
MAX_WHOLE_BYTES: Final = 64 << 20
"""The most that is read in one piece: a line (of the largest value), or a file that has none of these."""
MAX_DIGITS: Final = DOUBLE_DIGITS + 1
"""Integers that are longer are out of the range of a double for sure, which is checked later."""
_TIMES: Final = ("created_at", "updated_at", "expires_at")
_NAMES: Final = {"created_by": 128, "conversation_id": 255}
KINDS: Final = frozenset({"semantic", "episodic", "procedural"})
_NOT_IN_KEYS: Final = re.compile(r'[/\\:*?"<>|\x00-\x1f\x7f-\x9f]+')
_DIGEST_BYTES: Final = 6
_encode = msgspec.json.Encoder().encode
MAGIC: Final = b"SQLite format 3\0"


class SourceError(Exception):
    """A file is not in its format at all, or cannot be read; nothing was imported."""


class SourceUnreadableError(SourceError):
    """A file is not there, or cannot be opened; unlike any other `SourceError` not for what it holds."""


def read_whole(file: BinaryIO, name: str, remedy: str = "split it") -> bytes:
    """Return the rest of a file that cannot be read line by line.

    Raises:
        SourceError: it is too large for that; the sentence ends with the remedy.
    """
    data = file.read(MAX_WHOLE_BYTES + 1)
    if len(data) > MAX_WHOLE_BYTES:
        raise SourceError(
            f"{name} is read in one piece, and then it may have {MAX_WHOLE_BYTES:,} bytes; {remedy}"
        )
    return data


def parsed(text: str | bytes) -> Any:
    """Return what a text of JSON says.

    Raises:
        ValueError: it is none, too much of it stands in each other, or an integer is too long.
    """
    try:
        return json.loads(text, parse_int=_integer)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def too_long(digits: int) -> str:
    """Return what is said of an integer that no client could read."""
    return f"it holds an integer of {digits:,} digits and {MAX_DIGITS} are the most; put it in quotes"


def _integer(digits: str) -> int:
    if len(digits) > MAX_DIGITS:
        raise ValueError(too_long(len(digits)))
    return int(digits)


class SourceLine(NamedTuple):
    """A line: where it stands, its JSON, and how many bytes of the source were passed."""

    place: str
    raw: bytes
    passed: int


def source_line(place: str, passed: int, **fields: Any) -> SourceLine:
    """Return a line of these fields of `MemoryLine`; None is left out.

    What does not fit its field, such as a time that cannot be read or an author of a thousand letters, is
    kept in the metadata; the field gets what fits of it.

    Raises:
        SourceError: a value is nested too deeply.
    """
    given = {name: value for name, value in fields.items() if value is not None}
    metadata = dict(given.pop("metadata", None) or {})
    for name in _TIMES:
        if name in given and not isinstance(given[name], datetime):
            metadata.setdefault(name, given.pop(name))
    for name, limit in _NAMES.items():
        if name in given and len(given[name]) > limit:
            metadata.setdefault(name, given[name])
            given[name] = _cut(given[name], limit)
    if any(len(tag) > MAX_TAG for tag in given.get("tags", ())):
        metadata.setdefault("tags", given["tags"])
        given["tags"] = [_cut(tag, MAX_TAG) for tag in given["tags"]]
    if metadata:
        given["metadata"] = metadata
    try:
        return SourceLine(place, _encode(given), passed)
    except RecursionError:
        raise SourceError(f"{place} is nested too deeply") from None
    except UnicodeEncodeError:
        # A lone surrogate: the same with an escape, which is refused with its place when it is checked.
        return SourceLine(place, json.dumps(given, default=str).encode(), passed)


def _cut(text: str, limit: int) -> str:
    """Return a text that is short enough, and different for different texts."""
    if len(text) <= limit:
        return text
    digest = _digest(text)
    return f"{text[: limit - len(digest) - 1]}~{digest}"


def _digest(text: str) -> str:
    return blake2b(text.encode(errors="surrogatepass"), digest_size=_DIGEST_BYTES).hexdigest()


def key_of(*parts: object) -> str:
    """Return a key made of texts of any kind: what a key cannot hold becomes a dot.

    Where that loses something, or the key would be too long, it ends with a digest, so that different
    texts have different keys.
    """
    text = ".".join(str(part) for part in parts)
    key = _NOT_IN_KEYS.sub(".", text).strip()
    if key == text and 0 < len(key) <= MAX_KEY:
        return key
    digest = _digest(text)
    return f"{key[: MAX_KEY - len(digest) - 1]}~{digest}"


def name_of(given: object) -> str | None:
    """Return a name as text; None for nothing."""
    return None if given is None or given == "" else str(given)


def tags_of(*groups: object) -> list[str] | None:
    """Return tags given as a list, or as a text with commas; each once, in their order."""
    found: dict[str, None] = {}
    for group in groups:
        given = group.split(",") if isinstance(group, str) else group if isinstance(group, list) else []
        for tag in given:
            if text := str(tag).strip():
                found[text] = None
    return list(found) or None


def time_of(given: object) -> Any:
    """Return a time given as seconds since 1970, as ISO text (UTC if it does not say), or as YAML's own.

    What cannot be read comes back as it is, for `made` to keep; nothing comes back as None.
    """
    if given is None or given == "":
        return None
    if isinstance(given, datetime):
        return given if given.tzinfo is not None else given.replace(tzinfo=UTC)
    if isinstance(given, date):
        return datetime.combine(given, time(), UTC)
    try:
        if isinstance(given, int | float) and not isinstance(given, bool):
            return datetime.fromtimestamp(given, UTC)
        return read_time(str(given).strip())
    except (ValueError, OverflowError, OSError):
        return given


def fraction_of(given: object) -> float | None:
    """Return a number from 0 to 1 as it is, None for anything else."""
    if isinstance(given, bool) or not isinstance(given, int | float):
        return None
    return float(given) if 0 <= given <= 1 else None


def object_of(given: object) -> dict[str, Any]:
    """Return an object given as such or as JSON; what is neither is kept under ``metadata``."""
    if isinstance(given, str) and given.strip():
        try:
            given = parsed(given)
        except ValueError:
            return {"metadata": given}
    if given is None or given == "":
        return {}
    return given if isinstance(given, dict) else {"metadata": given}
