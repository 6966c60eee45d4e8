"""From the bytes of a tool call's arguments to a checked request, or to a refusal that names what is wrong.

The limits themselves are written once, in the request types; here they are
applied and a violation is worded with the field, the limit and the value's size.
"""

from __future__ import annotations

import functools
import re
from types import UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec

from greenroom.actors._json import check_json
from greenroom.actors._refusals import MAX_VALUE_BYTES, invalid, not_serializable, too_large
from greenroom.actors._wording import part_of, shown, violation
from greenroom.actors.keys._text import without_keys
from greenroom.runtime import Refusal

Q = TypeVar("Q", bound=msgspec.Struct)

_split = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_PATH = re.compile(r" - at `\$\.([^`]*)`$")
_STEP = re.compile(r"\w+|\[\d+\]")
_NAMED = re.compile(
    r"^Object (contains unknown|missing required) field `(.*?)`(?: - at `\$\.[^`]*`)?$", re.DOTALL
)


def parse_request(request_type: type[Q], raw: bytes) -> Q:
    """Return the request whose arguments are the JSON object ``raw``.

    Raises:
        Refusal: ``VALIDATION_ERROR`` names the field, the limit and the value's size;
            ``SERIALIZATION_ERROR`` says which value cannot be kept unharmed.
    """
    if len(raw) > MAX_VALUE_BYTES:
        _refuse_large_values(raw)
    arguments = check_json(raw)
    decoder, raw_fields = _plan(request_type)
    try:
        request: Q = decoder.decode(raw)
    except msgspec.DecodeError as error:
        raise _worded(str(error), request_type, arguments, raw) from None
    for name, is_object in raw_fields:
        if name in arguments:
            request = _checked_value(request, name, is_object=is_object)
    return request


def check_request(request: Q) -> Q:
    """Return a request made in Python after the same checks as one that came as JSON.

    Raises:
        Refusal: as `parse_request`.
    """
    try:
        raw = msgspec.json.encode(request)
    except UnicodeEncodeError as error:
        raise not_serializable(f"a text holds a lone surrogate at character {error.start}") from None
    except (TypeError, ValueError) as error:
        raise not_serializable(f"this is no value for JSON: {error}") from None
    return parse_request(type(request), raw)


def parse_part(part_type: type[Q], raw: bytes, field: str) -> Q:
    """Return what is known within the JSON object of one argument; what is unknown is passed over.

    Raises:
        Refusal: ``VALIDATION_ERROR``, with names that begin with ``field``.
    """
    try:
        part: Q = _plan(part_type)[0].decode(raw)
    except msgspec.DecodeError as error:
        refusal = _worded(str(error), part_type, msgspec.json.decode(raw), raw)
        details = {**refusal.details, "field": f"{field}.{refusal.details['field']}"}
        raise type(refusal)(refusal.code, f"{field}.{refusal.sentence}", **details) from None
    return part


def _refuse_large_values(raw: bytes) -> None:
    """Refuse arrays and objects that no field takes, before millions of Python objects are made of them."""
    try:
        members = _split(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return  # it is refused for that
    for name, value in members.items():
        size = len(memoryview(value))
        if size > MAX_VALUE_BYTES and memoryview(value)[0] in b"[{":
            raise too_large(name[:100], size)


def _checked_value(request: Q, name: str, *, is_object: bool) -> Q:
    value = bytes(getattr(request, name))
    if len(value) > MAX_VALUE_BYTES:
        raise too_large(name, len(value))
    if is_object and value == b"null":  # how many clients leave an optional object out
        return msgspec.structs.replace(request, **{name: msgspec.Raw(b"{}")})
    if is_object and value.startswith(b'"'):
        value = _object_in(name, value)
    if is_object and not value.startswith(b"{"):
        raise invalid(name, f"{name}: it takes an object, or its JSON as text, and got {shown(value)}")
    # A copy, so that one small value does not keep its whole frame in memory.
    return msgspec.structs.replace(request, **{name: msgspec.Raw(value)})


def _object_in(name: str, text: bytes) -> bytes:
    """Return the JSON object that a JSON string holds; the string itself when it does not look like one.

    Raises:
        Refusal: ``VALIDATION_ERROR``: it does, and is none that can be kept.
    """
    held = msgspec.json.decode(text, type=str).strip().encode()
    if not held.startswith(b"{"):
        return text
    try:
        check_json(held)
    except Refusal as refusal:
        raise invalid(name, f"{name}: the JSON in this text cannot be kept: {refusal.sentence}") from None
    return held


@functools.cache
def _plan(request_type: type[Any]) -> tuple[msgspec.json.Decoder[Any], tuple[tuple[str, bool], ...]]:
    """Return the type's decoder and its fields of kept JSON, each with whether it must be an object."""
    hints = get_type_hints(request_type, include_extras=True)
    raw_fields = [
        (field.name, _is_object(hints[field.name]))
        for field in msgspec.structs.fields(request_type)
        if _bare(hints[field.name]) is msgspec.Raw
    ]
    return msgspec.json.Decoder(request_type), tuple(raw_fields)


def _bare(hint: Any) -> Any:
    """Return the type within an annotation, or the first of a union's."""
    while get_origin(hint) in {Annotated, Union, UnionType}:
        hint = get_args(hint)[0]
    return hint


def _is_object(hint: Any) -> bool:
    metas = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
    return any((meta.extra or {}).get("is_object") for meta in metas)


def _worded(problem: str, request_type: type[Any], arguments: Any, raw: bytes) -> Refusal:
    """Return msgspec's finding in the user's terms: the field, what it takes, and what was given."""
    path = _PATH.search(problem)
    steps = [] if path is None else _STEP.findall(path[1])
    if not isinstance(arguments, dict):
        return invalid("arguments", f"the arguments: {problem}")
    field, hint, value = "", request_type, arguments
    for step in steps:
        hint, value = part_of(hint, step), value[int(step[1:-1])] if step[0] == "[" else value[step]
        field += step if step[0] == "[" or not field else f".{step}"
    if named := _NAMED.match(problem):
        return _misnamed(named[1], f"{field}.{named[2]}" if field else named[2], hint)
    if not steps:
        return invalid("arguments", f"the arguments: {problem}")
    kept = msgspec.json.encode(value)
    if len(steps) == 1:
        kept = bytes(msgspec.json.decode(raw, type=dict[str, msgspec.Raw])[field])
    sentence, details = violation(field, hint, value, kept)
    return invalid(field, sentence, **details)


def _misnamed(problem: str, field: str, struct: Any) -> Refusal:
    if problem.startswith("missing"):
        return invalid(field, f"{field}: it is required")
    known = [known.name for known in msgspec.structs.fields(part_of(struct))]
    field = without_keys(field)[:100]
    return invalid(field, f"{field}: unknown; the arguments are {', '.join(known)}", known=known)
