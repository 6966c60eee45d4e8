"""Messages for invalid arguments: what the type takes and what was given instead."""

from __future__ import annotations

from datetime import datetime
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta, Struct, UnsetType

from greenroom.actors.auth.key_format import without_keys

_SHOWN_BYTES = 40
_LOOKED_AT = 200
_NAMES: dict[Any, str] = {
    str: "a string",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    datetime: "a date such as 2026-01-31 or a time such as 2026-01-31T12:00:00Z",
}


_UNQUOTED: dict[Any, str] = {int: "a number", float: "a number", bool: "true or false"}


def shown(value: bytes) -> str:
    """Return the beginning of a JSON value, for a sentence; of an API key in it the id alone."""
    beginning = without_keys(value[:_LOOKED_AT].decode(errors="ignore")).encode()
    return beginning[:_SHOWN_BYTES].decode(errors="ignore") + ("…" if len(value) > _SHOWN_BYTES else "")


def part_of(hint: Any, step: str = "") -> Any:
    """Return the type of a field (``name``) or of an element (``[0]``) of a type, or the bare type itself."""
    base, _ = parts_of(hint)
    if step.startswith("["):
        elements = get_args(base)
        return elements[int(step[1:-1])] if get_origin(base) is tuple and ... not in elements else elements[0]
    return get_type_hints(base, include_extras=True)[step] if step else base


def violation(field: str, hint: Any, value: Any, kept: bytes) -> tuple[str, dict[str, Any]]:
    """Return the sentence and the details of an argument that its type does not take.

    Args:
        field: The argument's name.
        hint: Its type, with the limits that it carries.
        value: What was given, parsed.
        kept: The same as JSON.
    """
    base, meta = parts_of(hint)
    takes = _takes(base, meta)
    if base is str and isinstance(value, str) and _breaks_length(meta, len(value)):
        limit = (
            meta.max_length if meta.min_length is None or len(value) >= meta.min_length else meta.min_length
        )
        sentence = f"{field}: it takes {takes} and the given one has {len(value):,}"
        return sentence, {"limit": limit, "size": len(value), "unit": "characters"}
    if isinstance(value, list) and _breaks_length(meta, len(value)):
        sentence = f"{field}: it takes {takes} and the given one has {len(value):,}"
        return sentence, {"limit": meta.max_length, "size": len(value), "unit": "elements"}
    sentence = f"{field}: it takes {takes} and got {shown(kept)}"
    if isinstance(value, str) and base in _UNQUOTED:
        return f"{sentence}, a string; {_unquoted(base, value)}", {"limit": takes, "value": shown(kept)}
    if isinstance(value, str):
        return f"{sentence} ({len(value):,} characters)", {
            "limit": takes,
            "size": len(value),
            "unit": "characters",
        }
    return sentence, {"limit": takes, "value": shown(kept)}


def _unquoted(base: Any, text: str) -> str:
    """Return what to send in place of a string."""
    try:
        meant = msgspec.json.decode(text, type=base)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return f"send {_UNQUOTED[base]} without quotes"
    return f"send {msgspec.json.encode(meant).decode()} without quotes"


def parts_of(hint: Any) -> tuple[Any, Meta]:
    """Return the type without None, and its limits; what is around both is a word on the parameter."""
    if get_origin(hint) is Annotated and get_origin(get_args(hint)[0]) in {Union, UnionType}:
        hint = get_args(hint)[0]
    if get_origin(hint) in {Union, UnionType}:
        hint = next(choice for choice in get_args(hint) if choice not in {NoneType, UnsetType})
    if get_origin(hint) is Annotated:
        base, meta, *_ = get_args(hint)
        return base, meta
    return hint, Meta()


def _takes(base: Any, meta: Meta) -> str:
    if get_origin(base) is list:
        if meta.max_length is None:
            return "an array"
        least = f"{meta.min_length:,}" if meta.min_length else "up"
        return f"an array of {least} to {meta.max_length:,} elements"
    if isinstance(base, type) and issubclass(base, Struct):
        return "an object"
    return _takes_scalar(base, meta)


def _takes_scalar(base: Any, meta: Meta) -> str:
    if meta.extra is not None and "takes" in meta.extra:
        return str(meta.extra["takes"])
    if get_origin(base) is Literal:
        *most, last = (repr(choice) for choice in get_args(base))
        return f"{', '.join(most)} or {last}"
    if base is str and meta.max_length is not None:
        return f"a string of {meta.min_length or 0:,} to {meta.max_length:,} characters"
    if base in {int, float} and (meta.ge, meta.gt, meta.le) != (None, None, None):
        return f"{_NAMES[base]} {_bounds(meta)}"
    return _NAMES[base]


def _bounds(meta: Meta) -> str:
    low = f"from {meta.ge:,}" if meta.ge is not None else "above 0" if meta.gt is not None else ""
    return f"{low} to {meta.le:,}".strip() if meta.le is not None else low


def _breaks_length(meta: Meta, length: int) -> bool:
    return length < (meta.min_length or 0) or (meta.max_length is not None and length > meta.max_length)
