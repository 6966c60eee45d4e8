"""What the readers of other programs' files share: keys, times, tags, and what a bad record is."""

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
from greenroom.actors.core.validation.times import read_time
from greenroom.actors.core.validation.validation_messages import shown

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


class RecordError(Exception):
    """One record of a file cannot be imported, whatever becomes of the others; the sentence says why."""


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
        ValueError: it is none, too much of it stands in each other, or a number is none that JSON knows.
    """
    try:
        return _decoder.decode(text if isinstance(text, str) else text.decode())
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def next_value(text: str, position: int) -> tuple[Any, int]:
    """Return the JSON value that begins at a position of a text, and where it ends.

    Raises:
        ValueError: as `parsed`.
    """
    try:
        return _decoder.raw_decode(text, position)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def too_long(digits: int) -> str:
    """Return what is said of an integer that no client could read."""
    return f"it holds an integer of {digits:,} digits and {MAX_DIGITS} are the most; put it in quotes"


def _integer(digits: str) -> int:
    if len(digits) > MAX_DIGITS:
        raise ValueError(too_long(len(digits)))
    return int(digits)


def _no_number(name: str) -> float:
    raise ValueError(f"{name} is no number in JSON")


def _fraction(digits: str) -> float:
    number = float(digits)
    return number if math.isfinite(number) else _no_number(digits[:MAX_DIGITS])


_decoder: Final = json.JSONDecoder(parse_int=_integer, parse_float=_fraction, parse_constant=_no_number)


class SourceLine(NamedTuple):
    """A line: where it stands, its JSON, and how many bytes of the source were passed."""

    place: str
    raw: bytes
    passed: int


class BadRecord(NamedTuple):
    """A record that cannot be imported: where it stands, why, and how many bytes were passed."""

    place: str
    sentence: str
    passed: int


class Remark(NamedTuple):
    """Something to be known of a record that is taken, or of a whole file."""

    place: str
    sentence: str
    passed: int


Item = SourceLine | BadRecord | Remark
"""What a reader finds: a line to import, one that is left out, or something to be known."""


def source_line(place: str, passed: int, **fields: Any) -> SourceLine:
    """Return a line of these fields of `MemoryLine`; None is left out.

    What does not fit its field, such as a time that cannot be read or an author of a thousand letters, is
    kept in the metadata; the field gets what fits of it.

    Raises:
        RecordError: a value is nested too deeply.
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


def key_of(*parts: str | int) -> str:
    """Return a key made of names of any kind: what a key cannot hold becomes a dot.

    Where that loses something, or the key would be too long, it ends with a digest, so that different
    texts have different keys.
    """
    text = ".".join(str(part) for part in parts)
    key = _NOT_IN_KEYS.sub(".", text).strip()
    if key == text and 0 < len(key) <= MAX_KEY:
        return key
    digest = _digest(text)
    return f"{key[: MAX_KEY - len(digest) - 1]}~{digest}"


def text_in(record: Mapping[str, Any], field: str) -> str:
    """Return the text of a record's field.

    Raises:
        RecordError: it has none, or something else.
    """
    given = record.get(field)
    if isinstance(given, str) and given:
        return given
    raise wrong_type(field, "text", given)


def id_in(record: Mapping[str, Any], field: str) -> str | int:
    """Return what a record's field names it by: a text or a whole number.

    Raises:
        RecordError: it has neither.
    """
    given = record.get(field)
    if isinstance(given, int) and not isinstance(given, bool):
        return given
    return text_in(record, field)


def wrong_type(field: str, wanted: str, given: object) -> RecordError:
    """Return the error of a field that holds something else than what it takes."""
    return RecordError(f"{field}: it takes {wanted} and got {shown(as_text(given, quoted=True).encode())}")


def as_text(given: object, *, quoted: bool = False) -> str:
    """Return a value as text: a text as it is unless quotes are wanted, anything else as JSON writes it."""
    if isinstance(given, str) and not quoted:
        return given
    if isinstance(given, date):  # of YAML, as are numbers that JSON does not know
        return given.isoformat()
    if isinstance(given, float) and not math.isfinite(given):
        return ".nan" if math.isnan(given) else ".inf" if given > 0 else "-.inf"
    try:
        return json.dumps(given, ensure_ascii=False, default=as_text)
    except (RecursionError, ValueError):
        return "a value that is nested too deeply"


def name_of(given: object) -> str | None:
    """Return a name, or several with commas; None for nothing and for what names nobody."""
    if isinstance(given, list) and all(isinstance(each, str) for each in given):
        return ", ".join(given) or None
    is_name = isinstance(given, str | int | float | date) and not isinstance(given, bool)
    return (as_text(given) or None) if is_name else None


def tags_of(*groups: object) -> list[str] | None:
    """Return tags given as a list, or as a text with commas; each once, in their order."""
    found: dict[str, None] = {}
    for group in groups:
        given = group.split(",") if isinstance(group, str) else group if isinstance(group, list) else [group]
        for tag in given:
            if tag is not None and (text := as_text(tag).strip()):
                found[text] = None
    return list(found) or None


def time_of(given: object) -> Any:
    """Return a time given as seconds since 1970, as ISO text (UTC if it does not say), or as YAML's own.

    What cannot be read comes back as it is, for `source_line` to keep; nothing comes back as None.
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
        return read_time(given.strip()) if isinstance(given, str) else given
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
