"""One line of a file: what is taken, and how what is not is told."""

from __future__ import annotations

import json

import pytest

from greenroom.actors import Principal
from greenroom.actors.memories.requests.import_lines import check_line, decode_line
from greenroom.runtime import Refusal

ANN = Principal(agent_id="planner", user="ann", projects=frozenset({"atlas"}))
NAMESPACE = "user:ann"

BAD: list[tuple[bytes, str, str | None]] = [
    # (line, what the sentence says, the field)
    (b"", "this is not JSON", None),
    (b"not json", "this is not JSON", None),
    (b"[1, 2]", "expects `object`|Expected `object`", None),
    (b'{"key": "a", "content": "x"', "this is not JSON", None),
    (b'{"key": "a", "content": "x"} {"key": "b"}', "this is not JSON", None),
    (b'{"key": "a", "content": "\xff"}', "not UTF-8: invalid start byte at byte 25", None),
    (b'{"key": "a", "content": "\\ud800"}', "lone surrogate", None),
    (b'{"key": "a", "key": "b", "content": "x"}', "'key' appears twice", None),
    (b'{"key": "a", "value": NaN}', "NaN is not JSON", None),
    (b'{"key": "a", "value": 1e999}', "too large for a double", None),
    (b'{"content": "x"}', "key: it is required", "key"),
    (b'{"key": "", "content": "x"}', "key: it takes 1 to 255 characters", "key"),
    (b'{"key": "a/b", "content": "x"}', "none of / ", "key"),
    (b'{"key": "a\\u0000b", "content": "x"}', "no control characters", "key"),
    (json.dumps({"key": "k" * 256, "content": "x"}).encode(), r"\(256 characters\)|has 256", "key"),
    (b'{"key": 7, "content": "x"}', "key: it takes .* and got 7", "key"),
    (b'{"key": "a"}', "either content or value", "content"),
    (b'{"key": "a", "content": ""}', "content", "content"),
    (b'{"key": "a", "content": "x", "value": 1}', "either content or value", "content"),
    (b'{"key": "a", "content": "x", "colour": 1}', "colour: unknown", "colour"),
    (
        b'{"key": "a", "content": "x", "importance": 7}',
        "importance: it takes a number from 0 to 1 and got 7",
        "importance",
    ),
    (b'{"key": "a", "content": "x", "importance": "high"}', 'importance: .* got "high"', "importance"),
    (
        b'{"key": "a", "content": "x", "kind": "gossip"}',
        "'semantic', 'episodic' or 'procedural' and got \"gossip\"",
        "kind",
    ),
    (b'{"key": "a", "content": "x", "scope": "secret"}', "scope", "scope"),
    (b'{"key": "a", "content": "x", "tags": "one,two"}', "tags: it takes an array", "tags"),
    (b'{"key": "a", "content": "x", "tags": ["ok", ""]}', r"tags\[1\]", "tags[1]"),
    (b'{"key": "a", "content": "x", "position": -1}', "position: .* got -1", "position"),
    (b'{"key": "a", "content": "x", "created_at": "yesterday"}', "created_at: it takes a date", "created_at"),
    (
        b'{"key": "a", "content": "x", "created_at": "2026-01-01T25:00:00"}',
        "created_at: it takes a date .* or a time",
        "created_at",
    ),
    (b'{"key": "a", "content": "x", "expires_at": 7}', "expires_at: it takes a date", "expires_at"),
    (b'{"key": "a", "content": "x", "metadata": [1]}', "metadata: it takes an object", "metadata"),
    (b'{"key": "a", "content": "x", "namespace": "ann"}', "namespace: it takes 2 to 8 segments", "namespace"),
    (b'{"key": "a", "content": "x", "namespace": "user:bob"}', "may not write into 'user:bob'", "namespace"),
    (
        b'{"key": "a", "content": "x", "namespace": "agent:coder"}',
        "may not write into 'agent:coder'",
        "namespace",
    ),
    (
        b'{"key": "a", "content": "x", "namespace": "project:zeus"}',
        "may not write into 'project:zeus'",
        "namespace",
    ),
    (b'{"key": "a", "content": "x", "session_id": "s"}', "only memories of the agent's own", "session_id"),
    (b'{"key": "a", "content": "x", "supersedes": "a"}', "supersede itself", "supersedes"),
]


@pytest.mark.promise("exchange.lines")
@pytest.mark.parametrize(("raw", "sentence", "field"), BAD)
def test_a_bad_line_is_refused_with_field_and_value(raw: bytes, sentence: str, field: str | None) -> None:
    with pytest.raises(Refusal, match=sentence) as refused:
        check_line(raw, NAMESPACE, ANN)
    assert field is None or refused.value.details["field"] == field


@pytest.mark.slow
@pytest.mark.promise("exchange.lines")
def test_sizes_have_limits_that_are_told() -> None:
    large = b'{"key": "a", "content": "%s"}' % (b"x" * (17 << 20))
    with pytest.raises(Refusal, match=r"content has 17,825,792 bytes .* limit is 16,777,216"):
        check_line(large, NAMESPACE, ANN)
    wide = json.dumps({"key": "a", "value": "é" * (9 << 20)}, ensure_ascii=False).encode()
    with pytest.raises(Refusal, match="value has"):
        check_line(wide, NAMESPACE, ANN)
    metadata = b'{"key": "a", "content": "x", "metadata": {"m": "%s"}}' % (b"x" * (1 << 20))
    with pytest.raises(Refusal, match="metadata has"):
        check_line(metadata, NAMESPACE, ANN)
    many = json.dumps({"key": "a", "content": "x", "tags": [f"t{n}" for n in range(10_001)]}).encode()
    with pytest.raises(Refusal, match="up to 10,000 elements"):
        check_line(many, NAMESPACE, ANN)
    deep = b'{"key": "a", "value": %s%s}' % (b"[" * 101, b"]" * 101)
    with pytest.raises(Refusal, match="deeper than 100"):
        check_line(deep, NAMESPACE, ANN)


@pytest.mark.parametrize(
    "raw",
    [
        b'{"key": "a", "content": "x"}',
        b' {"key":"a","value":null}',
        b'{"key": "a", "value": [1.0, 12345678901234567890, {"\\u00e9": "\\ud83d\\ude00"}]}',
        b'{"key": "a", "content": "x", "metadata": null, "tags": [], "namespace": null}',
        b'{"key": "a", "content": "x", "created_at": "0001-01-01T00:00:00Z", "importance": 1}',
        b'{"key": "a", "content": "x", "created_at": "2026-03-01T10:00:00.123456+05:45"}',
        b'{"key": "a", "content": "x", "namespace": "user:ann:notes", "scope": "public"}',
        b'{"key": "a", "content": "x", "namespace": "project:atlas"}',
        b'{"key": "a", "content": "x", "namespace": "agent:planner", "session_id": "s"}',
    ],
)
def test_a_good_line_keeps_what_it_says(raw: bytes) -> None:
    checked = check_line(raw, NAMESPACE, ANN)
    line, given = decode_line(checked.raw), json.loads(raw)
    assert line.namespace == checked.namespace == (given.get("namespace") or NAMESPACE)
    assert checked.root == ":".join(checked.namespace.split(":")[:2])
    assert (line.content, line.tags) == (given.get("content"), given.get("tags", []))
    if given.get("content") is None:
        assert isinstance(line.value, type(line.value))
        assert json.loads(bytes(line.value)) == given["value"]  # type: ignore[arg-type]


def test_what_tells_memories_apart_includes_the_scope_only_where_several_write() -> None:
    def identity(**fields: str) -> tuple[str, ...]:
        return check_line(
            json.dumps({"key": "a", "content": "x", **fields}).encode(), NAMESPACE, ANN
        ).identity

    assert identity(scope="public") == identity(scope="private") == identity()
    here = {"namespace": "project:atlas"}
    assert identity(**here, scope="public") != identity(**here, scope="private")
    assert identity(**here) == identity(**here, scope="shared")
