"""Our answers beside the SDK's: the same conversation with both, over two stores alike.

Ours answers the frequent requests without the SDK; these tests show that nobody can tell. Where it is
stricter on purpose, the table in `support.differential_deviations` says so.
"""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest
from hypothesis import example, given
from support.differential import difference
from support.differential_conversations import (
    DISCOVER,
    INITIALIZED,
    Burst,
    Conversation,
    Step,
    Wait,
    bursts,
    conversations,
    handshake,
    line_of,
    openings,
)
from support.differential_deviations import DEVIATIONS, Deviation
from support.differential_requests import PROPER, Message

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True, scope="module")
def _silent_sdk() -> None:
    """Let the SDK keep to itself what it thinks of each malformed notification."""
    logging.getLogger("mcp").setLevel(logging.CRITICAL)


def conversation(*messages: Message | Step | Wait | Burst) -> Conversation:
    return Conversation(tuple(line_of(each) if isinstance(each, dict) else each for each in messages))


def request(method: str, id: Any = "@fresh", **params: Any) -> Message:
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}


def call(tool: str, id: Any = "@fresh", **arguments: Any) -> Message:
    return request("tools/call", id, name=tool, arguments=arguments)


def modern(method: str, **params: Any) -> Message:
    return request(method, **{**params, "_meta": {**PROPER, **params.get("_meta", {})}})


HELD_AS_1 = request("tools/call", 1, name="hold", arguments={"text": ""}, _meta=PROPER)


def assert_alike(held: Conversation) -> None:
    if told := difference(held):
        pytest.fail(told)


@pytest.mark.promise("mcp.as-the-sdk")
@given(conversations())
@example(conversation(DISCOVER, modern("tools/call", name="get_memory", _meta={"progressToken": None})))
@example(conversation(handshake(), request("")))
@example(conversation(INITIALIZED, call("get_memory", key="k")))
@example(conversation(handshake(), request("unheard-of", _meta={"greenroom/deadline_ms": "soon"})))
@example(
    conversation(DISCOVER, modern("subscriptions/listen", notifications={}, more=1), Wait(31), call("hold"))
)
@example(conversation(handshake(), INITIALIZED, call("recall_memory", query="hello"), call("recall_memory")))
@example(conversation(DISCOVER, modern("tools/call", name="debug_retrieve", arguments={"query": "harbour"})))
@example(conversation(DISCOVER, modern("tools/call", name="recall_memori", arguments={})))
@example(
    conversation(
        DISCOVER,
        HELD_AS_1,
        {
            **request("tools/call", 1, name="get_memory", arguments={"key": "k"}, _meta=PROPER),
            "jsonrpc": "1.0",
        },
        request("tools/call", 1, name="get_memory", arguments={"key": "k"}, _meta=PROPER),
    )
)
@example(
    conversation(
        handshake(),
        request(
            "completion/complete",
            ref={"type": "ref/prompt", "name": "explain-code", "title": 5},
            argument={"name": "path", "value": ""},
        ),
    )
)
@example(conversation(DISCOVER, handshake()))
@example(conversation(handshake(), DISCOVER))
@example(
    conversation(
        {"jsonrpc": "2.0", "method": "tools/call", "params": {}},
        modern("tools/call", name="get_memory", arguments={"key": "k"}),
    )
)
def test_ours_answers_as_the_sdk_does(held: Conversation) -> None:
    assert_alike(held)


@pytest.mark.promise("mcp.as-the-sdk", "mcp.eras")
@given(openings())
def test_handshakes_and_envelopes_are_judged_as_the_sdk_does(held: Conversation) -> None:
    assert_alike(held)


@pytest.mark.promise("mcp.as-the-sdk", "mcp.pipelining")
@given(bursts())
@example(
    conversation(
        DISCOVER,
        modern("tools/call", name="create_session", arguments={"purpose": "p"}),
        Burst(
            (
                line_of(modern("ping")),
                line_of(
                    modern(
                        "subscriptions/listen",
                        notifications={"resourceSubscriptions": ["session://@session"]},
                    )
                ),
            )
        ),
    )
)
def test_what_is_written_at_once_acts_as_if_one_waited_for_each_answer(held: Conversation) -> None:
    assert_alike(held)


def text(message: Message, **change: str) -> Step:
    """Return a message's line with a few characters changed."""
    written = json.dumps(message, separators=(",", ":"))
    for old, new in change.items():
        assert old in written
        written = written.replace(old, new)
    return Step(written.encode(errors="surrogatepass"))


HELLO = (handshake(), INITIALIZED)
PING = request("ping")
ODD_LINES: dict[str, Conversation] = {
    "not UTF-8": conversation(*HELLO, Step(b'{"jsonrpc":"2.0","id":5,"method":"p\xff"}')),
    "deeply nested": conversation(*HELLO, text(request("ping", a="deep"), **{'"deep"': "[" * 5_000})),
    "not JSON, and does not begin as an object": conversation(*HELLO, Step(b"nonsense")),
    "not JSON, with an escaped surrogate before the fault": conversation(
        *HELLO, text(request("ping", a="\ud83d", b="number"), **{'"number"': "01"})
    ),
    "not JSON": conversation(*HELLO, Step(b'{"jsonrpc":"2.0","id":5,"method":"ping"')),
    "no object": conversation(*HELLO, Step(b'[{"jsonrpc":"2.0","id":5,"method":"ping"}]')),
    "a key of the message twice": conversation(*HELLO, text(PING, jsonrpc='id":5,"jsonrpc')),
    "an id that is null, a boolean, a fraction or no scalar": conversation(*HELLO, request("ping", 1.5)),
    "an id that is no Unicode": conversation(*HELLO, request("ping", "\ud800")),
    "an endless id": conversation(*HELLO, request("ping", "x" * 1_000)),
    "another jsonrpc": conversation(*HELLO, {**PING, "jsonrpc": "1.0"}),
    "neither a method nor an outcome": conversation(*HELLO, {"jsonrpc": "2.0", "id": 5}),
    "a method that is no text": conversation(*HELLO, request(7)),  # type: ignore[arg-type]  # as the line has it
    "an endless method": conversation(*HELLO, request("x" * 201)),
    "params of a request that are no object": conversation(*HELLO, {**PING, "params": []}),
    "a key of params twice": conversation(*HELLO, text(request("ping", once=1), once='once":1,"once')),
    "a number out of range, or half a character": conversation(
        *HELLO, text(request("ping", a="number"), **{'"number"': "1e400"})
    ),
    "arguments that are no object": conversation(
        *HELLO, request("tools/call", name="get_memory", arguments=[])
    ),
    "an id in flight": conversation(*HELLO, call("hold", 7), request("ping", 7)),
    "a cancellation of another id that looks alike": conversation(
        *HELLO,
        call("hold", 7),
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "7"}},
        Wait(31),
    ),
}


@pytest.mark.quick
@pytest.mark.promise("mcp.as-the-sdk", "mcp.hostile-frames")
@pytest.mark.parametrize("row", DEVIATIONS, ids=lambda row: row.name)
def test_each_row_of_the_table_is_true_and_needed(row: Deviation) -> None:
    held = ODD_LINES[row.name]
    assert_alike(held)
    assert difference(held, ()) is not None, "the SDK does the same by now"
