"""Requests that a program builds are refused for what JSON of the same values is refused for."""

from __future__ import annotations

import json
from functools import cache, partial
from math import inf, nan
from typing import Any, get_args, get_origin

import msgspec
import pytest
from support.agents import refused
from support.wrong_types import choices, hints_of, places

from greenroom.actors import SearchContext, StoreMemory, UpdateMemory
from greenroom.actors.app.requests import ASKED
from greenroom.actors.core.validation.parse import check_request, parse_request
from greenroom.runtime import Refusal

pytestmark = pytest.mark.promise("service.built")

RAW = (b"{bad", b"", b'"a",', b'1,"b":2', b"NaN", b"[1e999]", b'{"a":1,"a":2}')
GIVEN = (
    *("null", "true", "0", "-1", "1.5", "500", "-500", "1000000000"),
    *('""', '" "', '"text"', '"bad id!!"', json.dumps("x" * 300), "[]", "[[]]", '["bad id!!"]', "{}"),
)


@cache
def names(request: type[msgspec.Struct]) -> dict[str, str]:
    return {field.encode_name: field.name for field in msgspec.structs.fields(request)}


def answer_to(made: Any) -> str | None:
    """Return what making a request is refused for; None if it is not."""
    try:
        made()
    except Refusal as refusal:
        return refusal.sentence
    return None


def made(kind: Any, value: Any) -> Any:
    """Return a value in which each object of a struct is one that a program made."""
    if isinstance(value, list):
        inside = [get_args(each)[:1] for each in choices(kind) if get_origin(each) is list]
        return [made(inside[0][0] if inside else Any, each) for each in value]
    struct = next((each for each in choices(kind) if hasattr(each, "__struct_fields__")), None)
    if struct is None or not isinstance(value, dict) or not names(struct).keys() >= value.keys():
        return value
    hints, own = hints_of(struct), names(struct)
    try:
        return struct(**{own[name]: made(hints[own[name]], each) for name, each in value.items()})
    except TypeError:  # what it requires is missing
        return value


@pytest.mark.slow
@pytest.mark.parametrize("request_type", sorted(ASKED, key=str))
def test_building_a_request_is_refused_for_what_its_json_is(request_type: type[msgspec.Struct]) -> None:
    own, hints = names(request_type), hints_of(request_type)
    for place in places(request_type):
        for value in GIVEN:
            arguments = place.filled(value)
            given = json.loads(arguments)
            there = answer_to(partial(parse_request, request_type, arguments.encode()))
            fields = {own[name]: each for name, each in given.items()}
            nested = {name: made(hints[name], each) for name, each in fields.items()}
            for each in (fields, nested):
                here = answer_to(partial(request_type, **each))
                assert (here is None) == (there is None), (place.path, value, here, there)


@pytest.mark.parametrize("request_type", sorted(ASKED, key=str))
def test_what_json_cannot_say_is_refused_in_every_place_of_every_request(
    request_type: type[msgspec.Struct],
) -> None:
    own, hints = names(request_type), hints_of(request_type)
    endless: dict[str, Any] = {}
    endless["again"] = [endless]
    wrong = (nan, inf, "\ud800", endless, {"\ud800": 1}, [{"v": nan}], object(), *map(msgspec.Raw, RAW))
    for place in places(request_type):
        for value in wrong:
            given = filled(json.loads(place.filled('"here"')), value)
            fields = {own[name]: each for name, each in given.items()}
            for each in (fields, {name: made(hints[name], each) for name, each in fields.items()}):
                with pytest.raises(Refusal) as caught:
                    request_type(**each)
                assert caught.value.details["field"].startswith(
                    place.path.partition(".")[0].partition("[")[0]
                )
        if "." not in place.path and "[" not in place.path:
            plain = {own[name]: each for name, each in json.loads(place.filled('"here"')).items()}
            replaced = msgspec.structs.replace(
                decoded_unchecked(request_type, plain), **{own[place.path]: nan}
            )
            with pytest.raises(Refusal):
                check_request(replaced)


def decoded_unchecked(request_type: type[msgspec.Struct], fields: dict[str, Any]) -> Any:
    """Return a request as `msgspec.structs.replace` and copies make them: unchecked."""
    return msgspec.StructMeta.__call__(request_type, **fields)


def filled(value: Any, hole: Any) -> Any:
    """Return JSON with a Python value in the place of the text "here"."""
    if isinstance(value, dict):
        return {name: filled(each, hole) for name, each in value.items()}
    if isinstance(value, list):
        return [filled(each, hole) for each in value]
    return hole if value == "here" else value


def test_what_is_built_of_plain_values_is_not_written_as_json(monkeypatch: pytest.MonkeyPatch) -> None:
    def encode(_: Any) -> None:
        raise AssertionError("the slow way")

    monkeypatch.setattr(msgspec.json, "encode", encode)
    StoreMemory(content="x", tags=["a"], importance=0.5, key="k")
    UpdateMemory(key="k", content="x")


def test_the_refusal_names_the_field_the_rule_and_the_value() -> None:
    with refused("VALIDATION_ERROR") as caught:
        SearchContext(session_id="bad id!!", query="x")
    assert caught.value.details["field"] == "session_id"
    assert '"bad id!!"' in caught.value.sentence
    with refused("VALIDATION_ERROR") as caught:
        SearchContext(query="x", fuzzy_threshold=500)
    assert caught.value.sentence == "fuzzy_threshold: it takes a number from 0 to 100 and got 500"


def test_what_is_decoded_or_replaced_is_not_checked_when_built(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = SearchContext(query="x")
    looked: list[Any] = []
    monkeypatch.setattr(msgspec, "convert", lambda *given: looked.append(given))
    parse_request(SearchContext, b'{"query":"x"}')
    msgspec.structs.replace(asked, query="y")
    assert looked == []
    SearchContext(query="y")
    assert len(looked) == 1
