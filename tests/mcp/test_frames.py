"""Frames without I/O: which lines are requests, and what each bad one is answered with."""

from __future__ import annotations

import json
from typing import Any

import outcome
import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom.transports.mcp.frames.frames import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    MAX_ID_BYTES,
    MAX_METHOD_LENGTH,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    FrameError,
    LineSplitter,
    Oversized,
    _parse_closely,
    error_line,
    parse_frame,
)

CALL = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":%b}'
DEEP = b"[" * 3_000 + b"]" * 3_000

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


def refused(line: bytes) -> tuple[int, bytes, str]:
    with pytest.raises(FrameError) as caught:
        parse_frame(line)
    return caught.value.code, caught.value.id, str(caught.value)


def test_the_arguments_of_a_call_stay_the_bytes_received() -> None:
    arguments = b'{ "value" : 1.50, "big":123456789012345678901234567890,"value2":"\\u00e9" }'
    frame = parse_frame(
        CALL % (b'{"name":"set_memory", "arguments": %b, "_meta":{"progressToken":7}}' % arguments)
    )
    assert frame is not None
    assert frame.arguments == arguments
    assert frame.name == "set_memory"
    assert frame.params == {"name": "set_memory", "_meta": {"progressToken": 7}}


@pytest.mark.parametrize("params", [b'{"name":"x"}', b'{"name":"x","arguments":null}'])
def test_a_call_without_arguments_has_an_empty_object(params: bytes) -> None:
    frame = parse_frame(CALL % params)
    assert frame is not None
    assert frame.arguments == b"{}"


@pytest.mark.parametrize(
    ("id", "key"),
    [
        (b"0", 0),
        (b"-7", -7),
        (b'"7"', "7"),
        (b'""', ""),
        (b'"a\\u0062\\u0000"', "ab\0"),
        (b"123456789012345678901234567890", 123456789012345678901234567890),
    ],
)
def test_an_id_is_kept_as_it_came(id: bytes, key: int | str) -> None:
    frame = parse_frame(b'{"jsonrpc":"2.0","id":%b,"method":"ping"}' % id)
    assert frame is not None
    assert (frame.id, frame.key) == (id, key)


@pytest.mark.parametrize(
    "id",
    [
        b"null",
        b"true",
        b"1.0",
        b"1e2",
        b"{}",
        b"[1]",
        b'"\\ud800"',
        b'"%b"' % (b"x" * MAX_ID_BYTES),
        b"9" * 1001,
    ],
)
def test_an_id_of_another_kind_is_an_invalid_request(id: bytes) -> None:
    code, reply_id, _ = refused(b'{"jsonrpc":"2.0","id":%b,"method":"ping"}' % id)
    assert (code, reply_id) == (INVALID_REQUEST, b"null")


@pytest.mark.promise("mcp.errors")
@pytest.mark.parametrize(
    ("line", "code", "id", "word"),
    [
        (b"nonsense", PARSE_ERROR, b"null", "JSON"),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping"', PARSE_ERROR, b"null", "JSON"),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping"} {}', PARSE_ERROR, b"null", "JSON"),
        (b'{"jsonrpc":"2.0","id":1,"method":"p\xff"}', PARSE_ERROR, b"null", "UTF-8"),
        (b'{"jsonrpc":"2.0","id":1,"method":"\xed\xa0\x80"}', PARSE_ERROR, b"null", "UTF-8"),
        (b'{"jsonrpc":"2.0","id":1,"method":"\x00"}', PARSE_ERROR, b"null", "JSON"),
        (b"[" * 100_000, INVALID_REQUEST, b"null", "batch"),
        (b'{"jsonrpc":"2.0","id":1,"method":' + b"[" * 100_000, PARSE_ERROR, b"null", "nested"),
        (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', INVALID_REQUEST, b"null", "batch"),
        (b'"ping"', INVALID_REQUEST, b"null", "object"),
        (b"{}", INVALID_REQUEST, b"null", "jsonrpc"),
        (
            b'{"jsonrpc":"2.0","id":5,"method":"ping","params":{"a":"\\ud800",b"}}',
            PARSE_ERROR,
            b"null",
            "JSON",
        ),
        (b'{"jsonrpc":"2.0","id":5,"method":"ping","params":["\\ud800",NaN]}', PARSE_ERROR, b"null", "JSON"),
        (b'{"jsonrpc":"1.0","id":5,"method":"ping"}', INVALID_REQUEST, b"5", "2.0"),
        (b'{"jsonrpc":2.0,"id":5,"method":"ping"}', INVALID_REQUEST, b"5", "2.0"),
        (b'{"jsonrpc":"2.0","id":5}', INVALID_REQUEST, b"5", "method"),
        (b'{"jsonrpc":"2.0","id":5,"method":7}', INVALID_REQUEST, b"5", "method"),
        (b'{"jsonrpc":"2.0","id":5,"method":"\\udfff"}', INVALID_REQUEST, b"5", "Unicode"),
        (b'{"jsonrpc":"2.0","id":5,"id":6,"method":"ping"}', INVALID_REQUEST, b"null", "twice"),
        (b'{"jsonrpc":"2.0","id":1,"id":12,"method":"ping"}', INVALID_REQUEST, b"null", "twice"),
        (b'{"jsonrpc":"2.0","id":12,"id":1,"method":"ping"}', INVALID_REQUEST, b"null", "twice"),
        (
            b'{"jsonrpc":"2.0","id":5,"method":"ping","meth\\u006fd":"ping"}',
            INVALID_REQUEST,
            b"null",
            "twice",
        ),
        (b'{"jsonrpc":"2.0","id":5,"method":"ping","params":[1]}', INVALID_PARAMS, b"5", "an array"),
        (b'{"jsonrpc":"2.0","id":5,"method":"ping","params":"null"}', INVALID_PARAMS, b"5", "a string"),
        (b'{"jsonrpc":"2.0","id":5,"method":"ping","params":{"a":1e400}}', INVALID_PARAMS, b"5", "params.a"),
        (
            b'{"jsonrpc":"2.0","id":5,"method":"ping","params":{"a":"\\ud800"}}',
            INVALID_PARAMS,
            b"5",
            "params.a",
        ),
        (
            b'{"jsonrpc":"2.0","id":5,"method":"ping","params":{"a":' + DEEP + b"}}",
            INVALID_PARAMS,
            b"5",
            "nested",
        ),
        (CALL % b'{"name":"x","name":"y"}', INVALID_PARAMS, b"1", "twice"),
    ],
    ids=lambda value: value[:60].decode(errors="replace") if isinstance(value, bytes) else str(value),
)
@pytest.mark.promise("mcp.errors", "mcp.hostile-frames")
def test_a_bad_line_says_what_is_wrong_under_the_id_it_has(
    line: bytes, code: int, id: bytes, word: str
) -> None:
    found, reply_id, sentence = refused(line)
    assert (found, reply_id) == (code, id)
    assert word in sentence


@pytest.mark.parametrize("params", [b"", b',"params":null', b',"params":{}'])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_a_byte_order_mark_and_params_of_null_are_passed_over(mark: bytes, params: bytes) -> None:
    frame = parse_frame(mark + b'{"jsonrpc":"2.0","id":1,"method":"ping"%b}' % params)
    assert frame is not None
    assert (frame.method, frame.id, frame.params or {}) == ("ping", b"1", {})


def test_a_method_name_beyond_reason_is_not_echoed() -> None:
    code, reply_id, sentence = refused(
        b'{"jsonrpc":"2.0","id":5,"method":"%b"}' % (b"m" * (MAX_METHOD_LENGTH + 1))
    )
    assert (code, reply_id) == (METHOD_NOT_FOUND, b"5")
    assert "mmm" not in sentence


@pytest.mark.parametrize(
    "value",
    [b'"\\ud800"', b'{"\\udc00":1}', DEEP, b'{"a":%b}' % DEEP],
    ids=["value", "key", "array", "object"],
)
def test_what_only_the_arguments_cannot_represent_reaches_whoever_reads_them(value: bytes) -> None:
    """So that it is refused under its id, as a failure of that tool call."""
    arguments = b'{"key":"k","value":%b}' % value
    frame = parse_frame(CALL % (b'{"name":"set_memory","arguments":%b}' % arguments))
    assert frame is not None
    assert (frame.name, frame.arguments) == ("set_memory", arguments)


@pytest.mark.parametrize(
    ("method", "arguments", "word"),
    [
        ("tools/call", b"[]", "an array"),
        ("tools/call", b'"{}"', "a string"),
        ("prompts/get", b'{"path":"\\ud800"}', "represented"),
        ("prompts/get", DEEP, "nested"),
    ],
    ids=["array", "string", "half a character", "deep"],
)
@pytest.mark.promise("mcp.errors")
def test_arguments_that_are_none_are_told_with_the_frame(method: str, arguments: bytes, word: str) -> None:
    """So that who may not send any hears of that first."""
    line = b'{"jsonrpc":"2.0","id":1,"method":"%b","params":{"name":"x","arguments":%b}}'
    frame = parse_frame(line % (method.encode(), arguments))
    assert frame is not None
    assert word in frame.problem
    assert frame.arguments == b"{}"


@pytest.mark.parametrize(
    "line",
    [
        b'{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"x"}}',
        b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":[1]}',
        b'{"jsonrpc":"2.0","method":"%b"}' % (b"m" * (MAX_METHOD_LENGTH + 1)),
    ],
)
def test_wrong_notifications_and_responses_to_nothing_are_not_answered(line: bytes) -> None:
    assert parse_frame(line) is None


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b'{"jsonrpc":"2.0","id":1,"result":{"a":1}}', {"result": {"a": 1}}),
        (
            b'{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x"}}',
            {"error": {"code": 1, "message": "x"}},
        ),
    ],
)
def test_a_response_is_told_from_a_request(line: bytes, said: dict[str, Any]) -> None:
    frame = parse_frame(line)
    assert frame is not None
    assert not frame.is_request
    assert (frame.key, frame.params) == (1, said)


blanks = st.sampled_from(["", "", "", " ", "\t", "  "])
names = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


def written(members: list[tuple[str, str]], data: st.DataObject) -> str:
    """Return an object whose members stand as given, with blanks anywhere and perhaps one member twice."""
    members = list(data.draw(st.permutations(members)))
    if members and data.draw(st.integers(0, 3)) == 0:
        members.insert(data.draw(st.integers(0, len(members))), data.draw(st.sampled_from(members)))

    def blank() -> str:
        return data.draw(blanks)

    inside = ",".join(f'{blank()}"{key}"{blank()}:{blank()}{value}{blank()}' for key, value in members)
    return "{" + inside + "}"


@given(st.data())
def test_the_plain_way_to_read_a_call_and_the_close_one_agree(data: st.DataObject) -> None:
    members = [("name", json.dumps(data.draw(names), ensure_ascii=data.draw(st.booleans())))]
    for name in data.draw(st.sets(st.sampled_from(["arguments", "_meta", "cursor", "task"]))):
        value = data.draw(st.dictionaries(names, json_values, max_size=2) | json_values)
        members.append((name, json.dumps(value)))
    envelope = [("jsonrpc", '"2.0"'), ("method", '"tools/call"'), ("params", written(members, data))]
    if data.draw(st.booleans()):
        envelope.append(("id", json.dumps(data.draw(st.integers() | names))))
    line = written(envelope, data).encode()
    closely, either = outcome.capture(_parse_closely, line), outcome.capture(parse_frame, line)
    if isinstance(closely, outcome.Error):
        assert isinstance(either, outcome.Error)
        assert repr(either.error) == repr(closely.error)
    else:
        assert either == closely


@pytest.mark.promise("mcp.hostile-frames")
@given(st.binary(max_size=200))
@pytest.mark.promise("mcp.hostile-frames")
def test_any_bytes_are_a_frame_or_an_error(line: bytes) -> None:
    try:
        parse_frame(line)
    except FrameError as error:
        assert error.code in {PARSE_ERROR, INVALID_REQUEST, INVALID_PARAMS, METHOD_NOT_FOUND}  # noqa: PT017  (either way)
        json.loads(error.id)


@given(st.data(), json_values, st.dictionaries(st.text(max_size=5), json_values, max_size=3))
@pytest.mark.promise("mcp.hostile-frames")
def test_a_frame_damaged_anywhere_is_a_frame_or_an_error(
    data: st.DataObject, id: Any, arguments: Any
) -> None:
    message = {
        "jsonrpc": "2.0",
        "id": id,
        "method": "tools/call",
        "params": {"name": "x", "arguments": arguments},
    }
    line = bytearray(json.dumps(message, ensure_ascii=data.draw(st.booleans())).encode())
    for _ in range(data.draw(st.integers(0, 3))):
        line[data.draw(st.integers(0, len(line) - 1))] = data.draw(st.integers(0, 255))
    try:
        parse_frame(bytes(line))
    except FrameError as error:
        json.loads(error.id)


@given(
    st.integers() | st.text(st.characters(exclude_categories=["Cs"]), max_size=50), json_values, st.booleans()
)
def test_every_message_of_a_proper_client_is_read(id: int | str, value: Any, ascii_only: bool) -> None:  # noqa: FBT001
    arguments = {"value": value}
    message = {
        "id": id,
        "params": {"arguments": arguments, "name": "x"},
        "method": "tools/call",
        "jsonrpc": "2.0",
    }
    for separators in ((",", ":"), (", ", ": "), (" ,\t", "\r:  ")):
        frame = parse_frame(json.dumps(message, ensure_ascii=ascii_only, separators=separators).encode())
        assert frame is not None
        assert frame.key == id
        assert json.loads(frame.arguments) == arguments


@given(st.lists(st.binary(max_size=12).map(lambda line: line.replace(b"\n", b"")), max_size=6), st.data())
def test_lines_come_out_as_they_went_in_however_they_are_cut(lines: list[bytes], data: st.DataObject) -> None:
    limit = data.draw(st.integers(1, 12))
    stream = b"\n".join(lines)
    splitter = LineSplitter(limit)
    seen: list[bytes | Oversized] = []
    while stream:
        size = data.draw(st.integers(1, len(stream)))
        seen += splitter.feed(stream[:size])
        stream = stream[size:]
    seen += splitter.finish()
    expected: list[bytes | Oversized] = []
    for line in lines:
        bare = line.removesuffix(b"\r")
        if len(bare) > limit:
            # A carriage return is told from the line only while the line is held.
            expected.append(Oversized(len(bare) if len(line) <= limit + 1 else len(line), limit))
        elif bare.strip(b" \t\r"):
            expected.append(bare)
    assert seen == expected


@pytest.mark.promise("mcp.frame-limit")
def test_a_line_over_the_limit_is_never_held() -> None:
    splitter = LineSplitter(1_000)
    for _ in range(100):
        assert list(splitter.feed(b"x" * 1_000)) == []
    assert len(splitter._held) <= 1_001
    assert list(splitter.feed(b"\nnext\n")) == [Oversized(100_000, 1_000), b"next"]


def test_an_error_carries_its_data_only_when_it_has_some() -> None:
    assert error_line(b"1", -32601, "no", "data") == (
        b'{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no","data":"data"}}\n'
    )
    assert b"data" not in error_line(b"null", -32700, "no")
