"""Requests that a program builds are refused for what JSON of the same values is refused for."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import msgspec
import pytest
from support.agents import refused
from support.wrong_types import places

from greenroom.actors import SearchContext
from greenroom.actors.base.parse import parse_request
from greenroom.actors.requests import ASKED
from greenroom.runtime import Refusal

pytestmark = pytest.mark.promise("service.built")

GIVEN = (
    *("null", "true", "0", "-1", "1.5", "500", "-500", "1000000000"),
    *('""', '" "', '"text"', '"bad id!!"', json.dumps("x" * 300), "[]", "[[]]", '["bad id!!"]', "{}"),
)


def names(request: type[msgspec.Struct]) -> dict[str, str]:
    return {field.encode_name: field.name for field in msgspec.structs.fields(request)}


def answer_to(made: Any) -> str | None:
    """Return what making a request is refused for; None if it is not."""
    try:
        made()
    except Refusal as refusal:
        return refusal.sentence
    return None


@pytest.mark.slow
@pytest.mark.parametrize("request_type", sorted(ASKED, key=str))
def test_building_a_request_is_refused_for_what_its_json_is(request_type: type[msgspec.Struct]) -> None:
    own = names(request_type)
    for place in places(request_type):
        for value in GIVEN:
            arguments = place.filled(value)
            given = json.loads(arguments)
            there = answer_to(partial(parse_request, request_type, arguments.encode()))
            fields = {own[name]: each for name, each in given.items()}
            here = answer_to(partial(request_type, **fields))
            assert (here is None) == (there is None), (place.path, value, here, there)


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
