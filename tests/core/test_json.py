"""Strict JSON: a value comes back as it went in, or is refused with the reason."""

from __future__ import annotations

from json import dumps
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.agents import keep, keys, refused, value_of

from greenroom.actors import (
    CreateSession,
    GetMemory,
    ListMemory,
    SetMemory,
    parse_request,
)

if TYPE_CHECKING:
    from support.agents import Enter


@pytest.mark.promise("memory.json")
@pytest.mark.parametrize(
    "text",
    [
        '"123"',
        "123",
        "123456789012345678901234567890",
        "-0",
        "-0.0",
        "1.10",
        "1E5",
        "1e-400",
        "9" * 308,
        "-" + "9" * 307,
        "null",
        "true",
        '""',
        '"\\u0000\\ud83d\\ude00\\/"',
        '"\U0001f600\u2028\x7f"',
        "[]",
        "{}",
        '{"b": 1, "a" : [ 1,2.50 ],"": null}',
        '{"a": {"a": {"a": 1}}, "A": 2}',
        "[" * 100 + "]" * 100,
        '["\\\\", "\\\\\\"", {"\\"": "\\u0022"}, "' + "7" * 400 + '"]',
        '"' + "x" * 1_048_574 + '"',
    ],
    ids=lambda text: text[:20],
)
async def test_a_value_comes_back_as_it_went_in(enter: Enter, text: str) -> None:
    arguments = f'{{"key": "k", "value": {text}, "metadata": {{"n": 1.10}}}}'.encode()
    async with enter() as at:
        alice = at.agent("alice")
        await alice.ask(parse_request(SetMemory, arguments), checked=True)
        assert await value_of(alice, "k") == text
    async with enter() as at:
        read = await at.agent("alice").ask(GetMemory(key="k"))
        assert (bytes(read.value).decode(), bytes(read.metadata)) == (text, b'{"n": 1.10}')
        [entry] = (await at.agent("alice").ask(ListMemory())).entries
        assert entry.value_size == len(text.encode())


@pytest.mark.promise("memory.json")
@pytest.mark.parametrize(
    "text",
    [
        "1e400",
        "-1e400",
        "9" * 309,
        "-" + "9" * 5_000,
        "[1, 1e999]",
        "NaN",
        "Infinity",
        "-Infinity",
        '"\\ud800"',
        '"\\udc00\\ud800"',
        '{"\\udfff": 1}',
        '[{"a": "\\ud83d x"}]',
        '{"a": 1, "a": 1}',
        '[{"a": {"b": 1, "c": 2, "b": 3}}]',
        "[" * 101 + "]" * 101,
        '{"a":' * 101 + "1" + "}" * 101,
        "[" * 100_000 + "]" * 100_000,
        "[" * 100_000,
        "",
        "1,",
        "01",
        "'a'",
        '"\n"',
        '"\\x"',
        "tru",
        '{"a\\\\": 1, "a\\\\": "\\""}',
        '{"a": "\\"", "\\u0061": 1}',
    ],
    ids=lambda text: text[:20],
)
def test_what_cannot_be_kept_is_refused(text: str) -> None:
    with refused("SERIALIZATION_ERROR"):
        parse_request(SetMemory, f'{{"key": "k", "value": {text}}}'.encode())
    with refused("SERIALIZATION_ERROR"):
        parse_request(CreateSession, f'{{"purpose": "p", "metadata": {{"x": {text}}}}}'.encode())


@pytest.mark.promise("memory.json")
@pytest.mark.parametrize(
    "raw",
    [
        b'{"key": "k", "value": "\xff"}',
        b'{"key": "k", "value": "\xed\xa0\x80"}',
        b'{"key": "k", "value": 1, "value": 2}',
        b'{"key": "\\ud800", "value": 1}',
        b'\xef\xbb\xbf{"key": "k", "value": 1}',
        b'{"key": "k", "value": 1} {}',
        b"",
    ],
)
def test_bytes_that_are_no_strict_json_are_refused(raw: bytes) -> None:
    with refused("SERIALIZATION_ERROR"):
        parse_request(SetMemory, raw)


@pytest.mark.promise("memory.json")
async def test_a_value_made_in_python_is_checked_as_one_from_outside(enter: Enter) -> None:
    async with enter() as at:
        alice = at.agent("alice")
        for text in ("1e400", '{"a":1,"a":1}', "[" * 101 + "]" * 101, "no json", ""):
            with refused("SERIALIZATION_ERROR"):
                await keep(alice, "k", text)
        with refused("SERIALIZATION_ERROR"):
            await keep(alice, "\ud800")
        with refused("VALIDATION_ERROR", field="key"):
            await keep(alice, "")
        for no_key in (object(), 10**5_000):
            with refused("SERIALIZATION_ERROR"):
                await keep(alice, no_key)  # type: ignore[arg-type]  # on purpose
        assert await keys(alice) == []


texts = st.text(st.characters(codec="utf-8"))
plain = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts


@given(value=st.recursive(plain, lambda inner: st.lists(inner) | st.dictionaries(texts, inner)))
def test_every_representable_value_is_let_in(value: Any) -> None:
    text = dumps(value).encode()
    request = parse_request(SetMemory, b'{"key":"k","value":' + text + b"}")
    assert bytes(request.value) == text


@pytest.mark.promise("mcp.limits")
@pytest.mark.parametrize("field", ["value", "metadata"])
def test_a_value_has_a_limit_in_bytes(field: str) -> None:
    text = {"value": '"%s"', "metadata": '{"a":"%s"}'}[field]
    arguments = {"key": '"k"', "value": "1", "metadata": "{}"}
    for size in (1_048_576, 1_048_577):
        arguments[field] = text % ("é" * ((size - len(text) + 2) // 2) + "x" * ((size - len(text)) % 2))
        assert len(arguments[field].encode()) == size
        raw = "{" + ",".join(f'"{name}":{value}' for name, value in arguments.items()) + "}"
        if size == 1_048_576:
            parse_request(SetMemory, raw.encode())
        else:
            with refused("VALIDATION_ERROR", field=field, limit=1_048_576, size=size, unit="bytes"):
                parse_request(SetMemory, raw.encode())


@pytest.mark.promise("memory.json")
@pytest.mark.parametrize("field", ["value", "metadata", "no_such_field"])
def test_a_value_beyond_every_limit_is_not_taken_apart_first(field: str) -> None:
    value = '{"a": 1, "a": [' + "{}," * 400_000 + "1]}"  # who takes it apart finds a name twice
    with refused("VALIDATION_ERROR", field=field, size=len(value), unit="bytes"):
        parse_request(SetMemory, f'{{"key": "k", "{field}": {value}}}'.encode())


def test_null_leaves_optional_things_out() -> None:
    request = parse_request(
        SetMemory, b'{"key":"k","value":null,"metadata":null,"session_id":null,"expires_in":null}'
    )
    assert (bytes(request.value), bytes(request.metadata), request.session_id) == (b"null", b"{}", None)


@pytest.mark.parametrize("raw", [b"[]", b"1", b"null", b'"key"'])
def test_arguments_are_an_object(raw: bytes) -> None:
    with refused("VALIDATION_ERROR", field="arguments"):
        parse_request(SetMemory, raw)
