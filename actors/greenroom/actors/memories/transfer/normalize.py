"""Shared parts of the readers of other programs' files: keys, times, tags, and bad records."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from datetime import UTC, date, datetime, time
from hashlib import blake2b
from typing import Any, BinaryIO, Final, NamedTuple

import msgspec

from greenroom.actors.core.validation.strict_json import DOUBLE_DIGITS
from greenroom.actors.core.validation.times import parse_time
from greenroom.actors.core.validation.validation_messages import quote_value

MAX_KEY: Final = 255
MAX_TAG: Final = 200
MAX_WHOLE_BYTES: Final = 64 << 20
"""At most this many bytes are read in one piece: a line with the largest value, or a file without lines."""
MAX_DIGITS: Final = DOUBLE_DIGITS + 1
"""Longer integers are certainly out of the range of a double, which is checked later."""
_TIMES: Final = ("created_at", "updated_at", "expires_at")
_NAMES: Final = {"created_by": 128, "conversation_id": 255}
KINDS: Final = frozenset({"semantic", "episodic", "procedural"})
_NOT_IN_KEYS: Final = re.compile(r'[/\\:*?"<>|\x00-\x1f\x7f-\x9f]+')
_DIGEST_BYTES: Final = 6
_encode = msgspec.json.Encoder().encode
MAGIC: Final = b"SQLite format 3\0"


class SourceError(Exception):
    """A file has another format, or cannot be read; nothing was imported."""


class RecordError(Exception):
    """One record of a file cannot be imported; the sentence says why."""


class SourceUnreadableError(SourceError):
    """A file is missing or cannot be opened; other `SourceError` are about its content."""


def read_whole(file: BinaryIO, name: str, remedy: str = "split it") -> bytes:
    """Read the rest of a file that cannot be read line by line.

    Raises:
        SourceError: It is too large; the sentence ends with the remedy.
    """
    data = file.read(MAX_WHOLE_BYTES + 1)
    if len(data) > MAX_WHOLE_BYTES:
        raise SourceError(
            f"{name} is read in one piece, and then it may have {MAX_WHOLE_BYTES:,} bytes; {remedy}"
        )
    return data


def parse(text: str | bytes) -> Any:
    """Parse a text of JSON.

    Raises:
        ValueError: It is not JSON, is nested too deeply, or has a number that JSON does not allow.
    """
    try:
        return _decoder.decode(text if isinstance(text, str) else text.decode())
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def next_value(text: str, position: int) -> tuple[Any, int]:
    """Return the JSON value at a position, and its end; raises as `parse`."""
    try:
        return _decoder.raw_decode(text, position)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def too_long(digits: int) -> str:
    """Return the sentence about an integer that is too long for clients."""
    return f"it holds an integer of {digits:,} digits and {MAX_DIGITS} are the most; put it in quotes"


def _integer(digits: str) -> int:
    if len(digits) > MAX_DIGITS:
        raise ValueError(too_long(len(digits)))
    return int(digits)


def _reject_number(name: str) -> float:
    raise ValueError(f"{name} is no number in JSON")


def _fraction(digits: str) -> float:
    number = float(digits)
    return number if math.isfinite(number) else _reject_number(digits[:MAX_DIGITS])


_decoder: Final = json.JSONDecoder(parse_int=_integer, parse_float=_fraction, parse_constant=_reject_number)


class SourceLine(NamedTuple):
    """A line: its place, its JSON, and the number of source bytes read so far."""

    place: str
    raw: bytes
    passed: int


class BadRecord(NamedTuple):
    """A bad record: its place, the reason, and the bytes read so far."""

    place: str
    sentence: str
    passed: int


class Remark(NamedTuple):
    """A warning about an imported record, or a whole file."""

    place: str
    sentence: str
    passed: int


Item = SourceLine | BadRecord | Remark
"""What a reader yields: a line to import, a bad record, or a warning."""


def source_line(place: str, passed: int, **fields: Any) -> SourceLine:
    """Return a line with these fields of `MemoryLine`, without those that are None.

    A value that does not fit its field, such as an unreadable time or a name of a thousand letters, is stored
    in the metadata. The field gets the part that fits.

    Raises:
        RecordError: A value is nested too deeply.
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
        raise RecordError("it is nested too deeply") from None
    except UnicodeEncodeError:
        # The text has a lone surrogate, written as an escape; the check refuses it with its place.
        return SourceLine(place, json.dumps(given, default=str).encode(), passed)


def _cut(text: str, limit: int) -> str:
    """Shorten a text, so that different texts stay different."""
    if len(text) <= limit:
        return text
    digest = _digest(text)
    return f"{text[: limit - len(digest) - 1]}~{digest}"


def _digest(text: str) -> str:
    return blake2b(text.encode(errors="surrogatepass"), digest_size=_DIGEST_BYTES).hexdigest()


def key_of(*parts: str | int) -> str:
    """Make a key from names of any kind; invalid characters become a dot.

    If that loses something, or the key is too long, it ends with a digest: different texts have different
    keys.
    """
    text = ".".join(str(part) for part in parts)
    key = _NOT_IN_KEYS.sub(".", text).strip()
    if key == text and 0 < len(key) <= MAX_KEY:
        return key
    digest = _digest(text)
    return f"{key[: MAX_KEY - len(digest) - 1]}~{digest}"


def text_in(record: Mapping[str, Any], field: str) -> str:
    """Return the text in a record's field, or raise `RecordError`."""
    given = record.get(field)
    if isinstance(given, str) and given:
        return given
    raise wrong_type(field, "text", given)


def id_in(record: Mapping[str, Any], field: str) -> str | int:
    """Return the text or the whole number in a record's field, or raise `RecordError`."""
    given = record.get(field)
    if isinstance(given, int) and not isinstance(given, bool):
        return given
    return text_in(record, field)


def wrong_type(field: str, wanted: str, given: object) -> RecordError:
    """Return the error of a field with a value of the wrong type."""
    return RecordError(
        f"{field}: it takes {wanted} and got {quote_value(as_text(given, quoted=True).encode())}"
    )


def as_text(given: object, *, quoted: bool = False) -> str:
    """Return a text unchanged unless ``quoted``; return any other value as JSON."""
    if isinstance(given, str) and not quoted:
        return given
    if isinstance(given, date):  # from YAML, like numbers that JSON does not allow
        return given.isoformat()
    if isinstance(given, float) and not math.isfinite(given):
        return ".nan" if math.isnan(given) else ".inf" if given > 0 else "-.inf"
    try:
        return json.dumps(given, ensure_ascii=False, default=as_text)
    except (RecursionError, ValueError):
        return "a value that is nested too deeply"


def name_of(given: object) -> str | None:
    """Return a name, or several joined by commas; None for anything else."""
    if isinstance(given, list) and all(isinstance(each, str) for each in given):
        return ", ".join(given) or None
    is_name = isinstance(given, str | int | float | date) and not isinstance(given, bool)
    return (as_text(given) or None) if is_name else None


def tags_of(*groups: object) -> list[str] | None:
    """Return tags from a list or a text with commas; each once, in order."""
    found: dict[str, None] = {}
    for group in groups:
        given = group.split(",") if isinstance(group, str) else group if isinstance(group, list) else [group]
        for tag in given:
            if tag is not None and (text := as_text(tag).strip()):
                found[text] = None
    return list(found) or None


def time_of(given: object) -> Any:
    """Return a time from seconds since 1970, ISO text, or YAML's type; UTC by default.

    An unreadable value is returned unchanged, for `source_line` to store; an empty one becomes None.
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
        return parse_time(given.strip()) if isinstance(given, str) else given
    except (ValueError, OverflowError, OSError):
        return given


def fraction_of(given: object) -> float | None:
    """Return a number from 0 to 1; None for anything else."""
    if isinstance(given, bool) or not isinstance(given, int | float):
        return None
    return float(given) if 0 <= given <= 1 else None


def object_of(given: object) -> dict[str, Any]:
    """Return an object, also from JSON; any other value is put under ``metadata``."""
    if isinstance(given, str) and given.strip():
        try:
            given = parse(given)
        except ValueError:
            return {"metadata": given}
    if given is None or given == "":
        return {}
    return given if isinstance(given, dict) else {"metadata": given}
