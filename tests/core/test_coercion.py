"""Arguments as clients send them: JSON as text, whole floats, null and an empty text for "not given"."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from harness import greenroom, principal
from support.wrong_types import Place, places

from greenroom.actors import REQUESTS, Agent, CreateSession
from greenroom.actors.core.replies.memory_types import KNOWN
from greenroom.actors.core.validation.coercion import (
    CHOOSE_BY_TAGS,
    EVERYTHING,
    GUARDED,
    MOST_CHANGES,
    coerced_arguments,
)
from greenroom.actors.core.validation.parse import parse_request
from greenroom.runtime import Refusal
from greenroom.testing import mcp_client
from greenroom.transports import TOOLS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import msgspec
    from support.agents import Enter

pytestmark = pytest.mark.promise("mcp.arguments")

NULL_MEANS = {
    ("search_context", "recent_hours"): "all",
    ("search_context", "max_rows_scanned"): "all",
    ("set_memory", "session_id"): "global",
    ("get_memory", "session_id"): "global",
    ("list_memory", "session_id"): "global",
    ("delete_memory", "session_id"): "global",
    ("create_api_key", "agent"): "as its holder says",
    ("create_api_key", "user"): "yours",
    ("create_api_key", "projects"): "every one",
    ("create_api_key", "tools"): "as the server says",
    ("create_api_key", "schemas"): "as the server says",
    ("rotate_api_key", "expires_in_days"): "as long as the old one had",
}
"""What null means as an argument; everywhere else it is not given, or refused, or part of any JSON."""
ANY_JSON = {("set_memory", "value"), ("store_memory", "value"), ("update_memory", "value")}
"""Arguments that take any JSON value, of which null is one."""

PLACES = [
    pytest.param(request, place, id=f"{name}: {place.path}")
    for name, request in REQUESTS.items()
    for place in places(request)
]


def parsed(request: type[msgspec.Struct], arguments: str) -> Any:
    """Return the request, or the refusal's field."""
    try:
        return parse_request(request, arguments.encode(), most_changes=MOST_CHANGES)
    except Refusal as refusal:
        return refusal.details.get("field", refusal.sentence)


def without(place: Place) -> str | None:
    """Return the arguments without the place's member; None where it is an element, or required."""
    *holders, name = place.path.split(".")
    arguments = json.loads(place.filled('"the hole"'))
    inside = arguments
    for holder in holders:
        plain, *positions = holder.split("[")
        inside = inside[plain]
        for position in positions:
            inside = inside[int(position.rstrip("]"))]
    if "]" in name or name not in inside:
        return None
    del inside[name]
    return json.dumps(arguments)


def is_guarded(request: type[msgspec.Struct], place: Place) -> bool:
    own = GUARDED.get(request.__name__, frozenset())
    names = {place.path.partition(".")[0].partition("[")[0], place.path.rpartition(".")[2]}
    return own is EVERYTHING or bool(names & (own | GUARDED["*"]))


def nothings(place: Place) -> Iterator[str]:
    """Yield the JSON that may say that a member was not given, and that its type does not take."""
    if not place.takes("null"):
        yield "null"
    if not place.takes('""') and (place.takes('"text"') or place.takes('"2026-01-01"')):
        yield '""'


@pytest.mark.parametrize(("request_type", "place"), PLACES)
def test_null_and_an_empty_text_are_not_given_but_where_that_says_more(
    request_type: type[msgspec.Struct], place: Place
) -> None:
    left_out = without(place)
    absent = None if left_out is None else parsed(request_type, left_out)
    is_optional = left_out is not None and not isinstance(absent, str)
    for value in nothings(place):
        found = parsed(request_type, place.filled(value))
        if is_optional and not is_guarded(request_type, place):
            assert found == absent, value
        else:
            assert isinstance(found, str), (value, found)


@pytest.mark.promise("mcp.null")
def test_every_argument_to_which_null_means_something_says_so_and_takes_it() -> None:
    said = {
        (tool, name): words.partition("null = ")[2].partition(",")[0]
        for tool in REQUESTS
        for name, schema in TOOLS[tool].listing()["inputSchema"]["properties"].items()
        if "null = " in (words := schema.get("description", ""))
    }
    assert said == NULL_MEANS
    for tool, argument in NULL_MEANS:
        [place] = [each for each in places(REQUESTS[tool]) if each.path == argument]
        found = parsed(REQUESTS[tool], place.filled("null"))
        assert getattr(found, argument) is None, (tool, argument, found)


@pytest.mark.promise("mcp.null")
def test_null_differs_from_not_given_only_where_it_means_something() -> None:
    differing = set()
    for tool, request in REQUESTS.items():
        for place in places(request):
            *holders, name = place.path.split(".")
            left_out = without(place)
            if not place.takes("null") or left_out is None or (holders and place.kind is Any):
                continue  # a member of any JSON is data
            absent, found = parsed(request, left_out), parsed(request, place.filled("null"))
            if found != absent:
                differing.add((tool, name))
    not_given = {
        (tool, name) for tool in ("store_memory", "update_memory") for name in (*KNOWN, "unreviewed")
    }  # None and UNSET, which mean the same there
    everything = {each for each, means in NULL_MEANS.items() if means == "all"}
    assert differing == everything | not_given | ANY_JSON | {("set_preferences", "preferences")}


@pytest.mark.promise("mcp.null")
async def test_null_over_the_wire_is_everything_and_the_global_memory(enter: Enter) -> None:
    async with enter(embedder="none") as at:
        ann = principal("ann")
        await Agent(at.runtime, ann).ask(CreateSession(purpose="p", session_id="s"))
        async with mcp_client(lambda _: Agent(at.runtime, ann)) as client:
            await client.initialize()
            await client.call("add_message", session_id="s", content="the word")
            at.tick(48 * 3_600)
            await client.call("add_message", session_id="s", content="the word again")

            async def found(**arguments: Any) -> int:
                search = await client.call("search_context", session_id="s", query="word", **arguments)
                return len(search["results"])

            assert await found() == 1
            assert await found(recent_hours=None) == 2
            assert await found(recent_hours=None, max_rows_scanned=1) == 1
            assert await found(recent_hours=None, max_rows_scanned=None) == 2

            await client.call("set_memory", key="k", value=None, session_id=None)
            await client.call("set_memory", key="k", value=2, session_id="s")
            for tool, wanted in (("get_memory", None), ("list_memory", 1), ("delete_memory", True)):
                named = {} if tool == "list_memory" else {"key": "k"}
                answer = await client.call(tool, session_id=None, **named)
                got = {"get_memory": "value", "list_memory": "count", "delete_memory": "existed"}[tool]
                assert (answer["success"], answer[got]) == (True, wanted)
            assert (await client.call("get_memory", key="k", session_id="s"))["value"] == 2


@pytest.mark.parametrize(("request_type", "place"), PLACES)
def test_json_in_a_text_counts_as_that_where_no_text_is_taken(
    request_type: type[msgspec.Struct], place: Place
) -> None:
    values = ("1", "0.5", "true", "[]", "[1]", "{}", '["text"]', '{"a": 1}')
    for value in values:
        as_text = json.dumps(value)
        if place.takes(value) and not place.takes(as_text) and not place.takes('"text"'):
            plain = parsed(request_type, place.filled(value))
            assert parsed(request_type, place.filled(as_text)) == plain, value
            assert parsed(request_type, place.filled(json.dumps(f" {value}\n"))) == plain, value


@pytest.mark.parametrize(("request_type", "place"), PLACES)
def test_a_whole_float_is_an_integer_and_no_other_one_is(
    request_type: type[msgspec.Struct], place: Place
) -> None:
    if place.takes("1") and not place.takes("0.5") and not place.takes("1.5"):
        plain = parsed(request_type, place.filled("1"))
        assert parsed(request_type, place.filled("1.0")) == plain
        assert parsed(request_type, place.filled("10e-1")) == plain
        for value in ("1.5", "1e400", "1e-400"):
            assert isinstance(parsed(request_type, place.filled(value)), str), value


@pytest.mark.parametrize(
    "text", ['["a", NaN]', '{"a": 1, "a": 2}', "[1e999]", "['a']", '["\\ud800"]', "[" * 200]
)
@pytest.mark.parametrize("name", ["tags", "metadata"])
def test_what_is_in_a_text_is_held_to_the_rules_of_all_json(text: str, name: str) -> None:
    request = REQUESTS["forget_memory" if name == "tags" else "store_memory"]
    given = {"filters": {"tags": text}} if name == "tags" else {"content": "x", "metadata": text}
    found = parsed(request, json.dumps(given))
    assert found == ("filters.tags" if name == "tags" else "metadata")


def test_many_wrong_values_end_in_a_refusal() -> None:
    given = {"query": "x", "filters": {"languages": [None] * 5_000}}
    assert isinstance(parsed(REQUESTS["search_code_semantic"], json.dumps(given)), str)


@pytest.mark.parametrize("tool", ["store_memory", "memory_search", "recall_context", "forget_memory"])
def test_tags_in_one_text_are_several_where_they_choose_nothing_that_goes(tool: str) -> None:
    request = REQUESTS[tool]
    given: dict[str, Any] = {
        "store_memory": {"content": "x"},
        "memory_search": {"query": "x"},
        "recall_context": {"task": "x"},
        "forget_memory": {},
    }[tool]
    tagged = {"filters": {"tags": "a, b"}} if tool == "forget_memory" else {**given, "tags": "a, b"}
    found = parsed(request, json.dumps(tagged))
    if request.__name__ in CHOOSE_BY_TAGS:
        assert found == "filters.tags"
    else:
        assert found.tags == ["a", "b"]


@pytest.mark.parametrize("text", ['["a","b', '["a", 1]', '{"a": 1', '"a", "b"', ' ["a"', '[["a"]]', "[a, b]"])
@pytest.mark.parametrize("tool", ["store_memory", "memory_search", "recall_context"])
def test_what_begins_as_json_and_is_none_is_no_tag(tool: str, text: str) -> None:
    beside = {"store_memory": "content", "memory_search": "query", "recall_context": "task"}[tool]
    assert parsed(REQUESTS[tool], json.dumps({beside: "x", "tags": text})) in {"tags", "tags[0]", "tags[1]"}


@pytest.mark.parametrize(
    "tool", ["store_memory", "update_memory", "rate_memory", "get_memory", "list_memory_versions"]
)
def test_an_empty_namespace_of_a_key_does_not_mean_another_one(tool: str) -> None:
    beside = {"rate_memory": {"rating": "good"}, "store_memory": {"content": "x"}}.get(tool, {})
    assert parsed(REQUESTS[tool], json.dumps({"key": "k", "namespace": "", **beside})) == "namespace"


@pytest.mark.parametrize(
    ("tool", "name"),
    [
        *(("export_session", "expires_in"), ("create_api_key", "expires_in_days")),
        *(("rotate_api_key", "overlap_seconds"), ("create_api_key", "rate_limit")),
    ],
)
def test_for_how_long_something_lets_in_is_never_guessed(tool: str, name: str) -> None:
    request = REQUESTS[tool]
    [place] = [each for each in places(request) if each.path == name]
    for value in nothings(place):
        assert parsed(request, place.filled(value)) == name


async def test_a_repeat_may_spell_its_arguments_otherwise_and_each_change_is_counted(tmp_path: Path) -> None:
    before = coerced_arguments.copy()
    async with greenroom(tmp_path, "alice") as client:
        await client.initialize()
        plain = {"content": "x", "tags": ["a", "b"], "importance": 0.5}
        stored = await client.call("store_memory", idempotency_key="k", **plain)
        again = {"content": "x", "tags": '["a","b"]', "importance": "0.5", "kind": None, "metadata": None}
        assert await client.call("store_memory", idempotency_key="k", **again) == stored
        refused = await client.call("store_memory", content="x", idempotency_key="")
        assert refused["details"]["field"] == "idempotency_key"
    assert coerced_arguments["json_text"] - before["json_text"] == 2
