"""Sentences about invalid arguments: what the type accepts, and the value."""

from __future__ import annotations

from datetime import datetime
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta, Struct, UnsetType

from greenroom.actors.core.auth.key_format import mask_keys

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
_ARRAYS = (list, tuple, set, frozenset)
_elements = msgspec.json.Decoder(list[msgspec.Raw]).decode


def quote_value(value: bytes) -> str:
    """Quote the beginning of a JSON value in a sentence, with API keys masked."""
    beginning = mask_keys(value[:_LOOKED_AT].decode(errors="ignore")).encode()
    return beginning[:_SHOWN_BYTES].decode(errors="ignore") + ("…" if len(value) > _SHOWN_BYTES else "")


def part_of(hint: Any, step: str = "") -> Any:
    """Return the type of a field (``name``) or element (``[0]``), or the bare type."""
    if not step:
        return parts_of(hint)[0]
    for base in choices_of(hint):
        if step.startswith("[") and get_origin(base) in _ARRAYS:
            elements = get_args(base)
            is_fixed = get_origin(base) is tuple and ... not in elements
            return elements[int(step[1:-1])] if is_fixed else elements[0]
        if _is_struct(base) and step in base.__struct_fields__:
            return hints_of(base)[step]
    raise LookupError(f"{hint} has no {step}")


@cache
def hints_of(struct: type[Any]) -> dict[str, Any]:
    """Return the types of a struct's fields by their Python names, with limits."""
    return get_type_hints(struct, include_extras=True)


def violation(field: str, hint: Any, kept: bytes) -> tuple[str, dict[str, Any]]:
    """Return the sentence and the details about an argument that its type refuses."""
    takes = _takes(hint, kept)
    text = msgspec.json.decode(kept, type=str) if kept.startswith(b'"') else None
    if text is not None:
        size, unit, base, meta = len(text), "characters", *_choice(hint, str)
    elif kept.startswith(b"["):
        size, unit, base, meta = len(_elements(kept)), "elements", *_choice(hint, list)
    else:
        return f"{field}: it takes {takes} and got {quote_value(kept)}", {
            "limit": takes,
            "value": quote_value(kept),
        }
    if base is not None and _breaks_length(meta, size):
        limit = meta.max_length
        if limit is None or (text is not None and size < (meta.min_length or 0)):
            limit = meta.min_length
        sentence = f"{field}: it takes {takes} and the given one has {size:,}"
        return sentence, {"limit": limit, "size": size, "unit": unit}
    sentence = f"{field}: it takes {takes} and got {quote_value(kept)}"
    if text is None:
        return sentence, {"limit": takes, "value": quote_value(kept)}
    unquoted = [each for each in choices_of(hint) if each in _UNQUOTED]
    if unquoted and base is None:
        sentence = f"{sentence}, a string; send {_UNQUOTED[unquoted[0]]} without quotes"
        return sentence, {"limit": takes, "value": quote_value(kept)}
    return f"{sentence} ({size:,} characters)", {"limit": takes, "size": size, "unit": unit}


def parts_of(hint: Any) -> tuple[Any, Meta]:
    """Return the first type other than None, and its limits."""
    return next((each for each in _choices(hint) if each[0] not in {NoneType, UnsetType}), (hint, Meta()))


def choices_of(hint: Any) -> list[Any]:
    """Return the types of a union, or the one type, without limits."""
    return [base for base, _ in _choices(hint)]


def _choices(hint: Any) -> list[tuple[Any, Meta]]:
    """Return the types of a union with their limits.

    An annotation around the whole union describes the parameter and sets no limit.
    """
    if get_origin(hint) in {Union, UnionType}:
        return [choice for each in get_args(hint) for choice in _choices(each)]
    if get_origin(hint) is Annotated:
        base, meta, *_ = get_args(hint)
        return _choices(base) if get_origin(base) in {Union, UnionType} else [(base, meta)]
    return [(hint, Meta())]


def _choice(hint: Any, kind: type) -> tuple[Any, Meta]:
    """Return the type for values of a kind, with its limits, or None."""
    for base, meta in _choices(hint):
        if base is kind or (kind is list and get_origin(base) in _ARRAYS):
            return base, meta
    return None, Meta()


def _takes(hint: Any, kept: bytes) -> str:
    """Return what a type takes, in words; prefer types of the value's kind."""
    choices = [each for each in _choices(hint) if each[0] not in {NoneType, UnsetType}]
    alike = [each for each in choices if is_of_kind(each[0], kept)]
    choices = alike or choices
    return " or ".join(dict.fromkeys(_takes_one(base, meta) for base, meta in choices)) or "null"


def is_of_kind(base: Any, kept: bytes) -> bool:
    """Return whether a type takes a JSON value's kind: string, array, object, number."""
    match kept[:1]:
        case b'"':
            return base is str
        case b"[":
            return base in _ARRAYS or get_origin(base) in _ARRAYS
        case b"{":
            return _is_struct(base) or dict in {base, get_origin(base)}
        case _:
            return base in {int, float} and kept[:1] not in b"tfn"


def _takes_one(base: Any, meta: Meta) -> str:
    if get_origin(base) in _ARRAYS or base in _ARRAYS:
        if meta.max_length is None:
            return "an array"
        least = f"{meta.min_length:,}" if meta.min_length else "up"
        return f"an array of {least} to {meta.max_length:,} elements"
    if _is_struct(base) or dict in {base, get_origin(base)}:
        return "an object"
    return _takes_scalar(base, meta)


def _is_struct(base: Any) -> bool:
    return isinstance(base, type) and issubclass(base, Struct)


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
    return _NAMES.get(base, "another value")


def _bounds(meta: Meta) -> str:
    low = f"from {meta.ge:,}" if meta.ge is not None else "above 0" if meta.gt is not None else ""
    return f"{low} to {meta.le:,}".strip() if meta.le is not None else low


def _breaks_length(meta: Meta, length: int) -> bool:
    return length < (meta.min_length or 0) or (meta.max_length is not None and length > meta.max_length)
