"""Parse the arguments of a call into a checked request, or refuse them.

The request types declare the limits. A refusal names the field, the limit and the value's size.
"""

from __future__ import annotations

import difflib
import functools
import json
import re
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec

from greenroom.actors.core.auth.errors import MAX_VALUE_BYTES, invalid, not_serializable, too_large
from greenroom.actors.core.auth.key_format import mask_keys
from greenroom.actors.core.validation.argument_places import ArgumentPlace, find_place, members_of
from greenroom.actors.core.validation.coercion import coerce, with_published_name
from greenroom.actors.core.validation.strict_json import check_json, check_value
from greenroom.actors.core.validation.times import TimeSpan, spans_of, with_offset
from greenroom.actors.core.validation.validation_messages import (
    choices_of,
    hints_of,
    part_of,
    parts_of,
    quote_value,
    violation,
)
from greenroom.runtime import Refusal

Q = TypeVar("Q", bound=msgspec.Struct)

_LONGEST_NAME = 100
_NEAR = 0.75
_UNLISTED = "x-unlisted"

_MISSING = re.compile(r"^Object missing required field `([^`]*)`")
_UNKNOWN = "Object contains unknown field"


class UnfitError(msgspec.ValidationError):
    """The coerced JSON, ``raw``, is still not a valid request."""

    def __init__(self, problem: str, raw: bytes) -> None:
        super().__init__(problem)
        self.raw = raw


def parse_request(request_type: type[Q], raw: bytes, *, most_changes: int = 0) -> Q:
    """Parse the JSON object ``raw`` into a request.

    At most ``most_changes`` values of a client may be coerced; see `coercion`.

    Raises:
        Refusal: ``VALIDATION_ERROR`` names the field, the limit and the value's size;
            ``SERIALIZATION_ERROR`` names a value that cannot be stored unchanged.
    """
    if len(raw) > MAX_VALUE_BYTES:
        _refuse_large_values(raw)
    try:
        arguments = check_json(raw)
    except Refusal as refusal:
        raise _with_name(refusal, raw) from None
    _, raw_fields, spans = _plan(request_type)
    try:
        request, _ = decode_request(request_type, raw, most_changes=most_changes)
    except UnfitError as error:
        raise _worded(str(error), request_type, error.raw) from None
    except msgspec.DecodeError as error:
        raise _worded(str(error), request_type, raw) from None
    for name, is_object in raw_fields:
        if name in arguments:
            request = _checked_value(request, name, is_object=is_object)
    for span in spans:
        span.check(request)
    return request


def decode_request(request_type: type[Q], raw: bytes, *, most_changes: int = 0) -> tuple[Q, bytes]:
    """Decode JSON into a request; return it with the coerced JSON.

    At most ``most_changes`` values may be coerced, besides times.
    """
    decoder = _plan(request_type)[0]
    changes = 0
    while True:
        try:
            request: Q = decoder.decode(raw)
        except msgspec.ValidationError as error:
            problem = str(error)
            fitting = with_offset(problem, request_type, raw) or with_published_name(
                problem, request_type, raw
            )
            if fitting is None and changes < most_changes:
                fitting = coerce(problem, request_type, raw)
                changes += 1
            if fitting is None and changes:
                raise UnfitError(problem, raw) from None
            if fitting is None:
                raise
            raw = fitting
        else:
            return request, raw


def check_request(request: Q) -> Q:
    """Check a request built in Python like one from JSON, and return it."""
    for name, value in zip(request.__struct_encode_fields__, msgspec.structs.astuple(request), strict=True):
        if value is None:  # the most frequent case
            continue
        try:
            check_value(value)
        except Refusal as refusal:
            raise _of_field(name, refusal) from None
    try:
        raw = msgspec.json.encode(request)
    except ValueError as error:  # an integer with more digits than Python writes
        raise not_serializable(f"this is no value for JSON: {error}") from None
    return parse_request(type(request), raw)


def parse_part(part_type: type[Q], raw: bytes, field: str) -> Q:
    """Parse the known fields of the JSON object argument ``field``; ignore unknown ones."""
    try:
        part: Q = _plan(part_type)[0].decode(raw)
    except msgspec.DecodeError as error:
        raise _worded(str(error), part_type, raw, field) from None
    return part


def _with_name(refusal: Refusal, raw: bytes) -> Refusal:
    """Add the name of the argument to a refusal of JSON, if there is one."""
    for name, value in _loose_members(raw).items():
        try:
            check_json(b'{"":%b}' % value)  # the value is as deep as within the arguments
        except Refusal as found:
            field = mask_keys(name.encode(errors="backslashreplace").decode())[:_LONGEST_NAME]
            return _of_field(field, found)
    return refusal


def _of_field(field: str, refusal: Refusal) -> Refusal:
    details = {"field": field, **refusal.details}
    return type(refusal)(refusal.code, f"{field}: {refusal.sentence}", **details)


def _loose_members(raw: bytes) -> dict[str, bytes]:
    """Return the members of arguments whose JSON cannot be stored."""
    if members := members_of(raw):
        return {name: bytes(value) for name, value in members.items()}
    try:
        parsed = json.loads(raw)  # only the standard library reads lone surrogates
    except (ValueError, RecursionError):
        return {}
    if not isinstance(parsed, dict):
        return {}
    return {name: json.dumps(value).encode() for name, value in parsed.items()}


def _refuse_large_values(raw: bytes) -> None:
    """Refuse huge arrays and objects before they become millions of Python objects."""
    for name, value in members_of(raw).items():  # other JSON is refused elsewhere
        size = len(memoryview(value))
        if size > MAX_VALUE_BYTES and memoryview(value)[0] in b"[{":
            raise too_large(name[:100], size)


def _checked_value(request: Q, name: str, *, is_object: bool) -> Q:
    value = bytes(getattr(request, name))
    if len(value) > MAX_VALUE_BYTES:
        raise too_large(name, len(value))
    if is_object and value == b"null":  # the form in which many clients omit an optional object
        return msgspec.structs.replace(request, **{name: msgspec.Raw(b"{}")})
    if is_object and value.startswith(b'"'):
        value = _object_in(name, value)
    if is_object and not value.startswith(b"{"):
        raise invalid(name, f"{name}: it takes an object, or its JSON as text, and got {quote_value(value)}")
    # A copy, so that a small value does not keep the whole frame in memory.
    return msgspec.structs.replace(request, **{name: msgspec.Raw(value)})


def _object_in(name: str, text: bytes) -> bytes:
    """Return the JSON object in a JSON string; other strings unchanged."""
    held = msgspec.json.decode(text, type=str).strip().encode()
    if not held.startswith(b"{"):
        return text
    try:
        check_json(held)
    except Refusal as refusal:
        raise invalid(name, f"{name}: the JSON in this text cannot be kept: {refusal.sentence}") from None
    return held


@functools.cache
def _plan(
    request_type: type[Any],
) -> tuple[msgspec.json.Decoder[Any], tuple[tuple[str, bool], ...], tuple[TimeSpan, ...]]:
    """Return a type's decoder, its raw fields (whether each is an object), and its spans."""
    hints = get_type_hints(request_type, include_extras=True)
    raw_fields = []
    for field in msgspec.structs.fields(request_type):
        base, meta = parts_of(hints[field.name])
        if base is msgspec.Raw:
            raw_fields.append((field.name, "is_object" in (meta.extra or {})))
    return msgspec.json.Decoder(request_type), tuple(raw_fields), spans_of(request_type)


def _worded(problem: str, request_type: type[Any], raw: bytes, within: str = "") -> Refusal:
    """Return msgspec's error as a refusal with the field, what it takes, and the value."""
    place = find_place(problem, request_type, raw)
    field = ".".join(filter(None, (within, place.field)))
    if named := _MISSING.match(problem):
        missing = ".".join(filter(None, (field, named[1])))
        return invalid(missing, f"{missing}: it is required")
    if problem.startswith(_UNKNOWN):
        whole = ArgumentPlace((), request_type, raw)
        # An argument name may look like a path.
        for struct in (place, whole):
            if (unknown := _unknown(struct, within, request_type)) is not None:
                return unknown
    if place.is_key:
        sentence = f"{field}: one of its names is not allowed: {problem.partition(' - at ')[0]}"
        return invalid(field, sentence)
    if not field:
        return invalid("arguments", f"the arguments: {problem}")
    sentence, details = violation(field, place.hint, place.value)
    return invalid(field, sentence, **details)


def _unknown(place: ArgumentPlace, within: str, request_type: type[Any]) -> Refusal | None:
    """Return the refusal of an unknown name in an object; None if all are known."""
    struct = next((each for each in choices_of(place.hint) if hasattr(each, "__struct_fields__")), None)
    if struct is None:
        return None
    known = [known.name for known in msgspec.structs.fields(struct)]
    name = next((name for name in members_of(place.value) if name not in known), None)
    if name is None:
        return None
    field = ".".join(filter(None, (within, place.field, name))) if name else "(an empty name)"
    known = [each for each in known if not _is_unlisted(hints_of(struct)[each])]
    hint = _meant(field, known, request_type)
    field = mask_keys(field)[:100]
    return invalid(field, f"{field}: unknown{hint}; the arguments are {', '.join(known)}", known=known)


def _is_unlisted(hint: Any) -> bool:
    """Return whether a field is hidden from clients and set only by our code."""
    if get_origin(hint) in {Union, UnionType}:
        return any(map(_is_unlisted, get_args(hint)))
    metas = getattr(hint, "__metadata__", ())
    return any(_UNLISTED in (getattr(meta, "extra_json_schema", None) or ()) for meta in metas)


def _meant(field: str, known: list[str], request_type: type[Any]) -> str:
    """Return a hint for an unknown name: its right place, a similar name, or nothing."""
    outer, _, name = field.rpartition(".")
    arguments = [each.name for each in msgspec.structs.fields(request_type)]
    if outer and name in arguments:
        return f" here; it belongs beside {outer.partition('.')[0]}, as {name}"
    for argument in arguments:
        if name in getattr(part_of(part_of(request_type, argument)), "__struct_fields__", ()):
            return f" here; it belongs into {argument}.{name}"
    near = difflib.get_close_matches(name[:_LONGEST_NAME], known, n=1, cutoff=_NEAR)
    return f"; did you mean {near[0]}?" if near else ""
