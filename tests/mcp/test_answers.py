"""Answers as bytes: what the eras put around a reply, whose JSON is never parsed again."""

from __future__ import annotations

import json
from typing import Any

import pytest

from greenroom.transports.mcp.frames.versions import SERVER_INFO_KEY, Era
from greenroom.transports.mcp.response_encoder import FRESH, STATIC, ResponseEncoder
from greenroom.transports.mcp.server_info import GREENROOM
from greenroom.transports.mcp.tools.answer_times import AT_KEY, AnswerTimes
from greenroom.transports.mcp.tools.content_blocks import Content

NAMED = {SERVER_INFO_KEY: GREENROOM.implementation}
SIGNED = {"resultType": "complete", "_meta": NAMED}
NOW = 1_700_000_000_000_042_999  # nanoseconds
TIMED = {AT_KEY: "2023-11-14T22:13:20.000042Z"}
AROUND: dict[Era, dict[str, Any]] = {
    Era.HANDSHAKE: {"_meta": TIMED},
    Era.MODERN: {"resultType": "complete", "_meta": NAMED | TIMED},
}
MOMENT = AnswerTimes(lambda: NOW).moment(0)


@pytest.mark.parametrize("era", Era)
def test_a_reply_is_written_as_text_and_as_it_is(era: Era) -> None:
    reply = b'{"value":1.50,"text":"\xc3\xa9\\n"}'
    line = ResponseEncoder(era, GREENROOM).tool_line(b'"seven"', reply, MOMENT)
    assert line.endswith(b"}\n")
    assert b'"structuredContent":' + reply in line
    answer = json.loads(line)
    assert answer["id"] == "seven"
    assert answer["result"] == {
        "content": [{"type": "text", "text": reply.decode()}],
        "structuredContent": json.loads(reply),
        "isError": False,
        **AROUND[era],
    }


@pytest.mark.parametrize("era", Era)
def test_a_failure_has_no_structured_content(era: Era) -> None:
    line = ResponseEncoder(era, GREENROOM).tool_line(b"1", b'{"success":false}', MOMENT, is_error=True)
    text = {"type": "text", "text": '{"success":false}'}
    assert json.loads(line)["result"] == {"content": [text], "isError": True, **AROUND[era]}


@pytest.mark.parametrize("era", Era)
def test_content_is_written_block_by_block(era: Era) -> None:
    image = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
    line = ResponseEncoder(era, GREENROOM).content_line(
        b"1", Content(blocks=[image], structured={"kind": "image"}), MOMENT
    )
    assert json.loads(line)["result"] == {
        "content": [image],
        "structuredContent": {"kind": "image"},
        "isError": False,
        **AROUND[era],
    }


@pytest.mark.parametrize("kept", [FRESH, STATIC])
def test_only_the_later_era_says_how_long_a_result_may_be_kept(kept: tuple[int, str]) -> None:
    fresh = json.loads(ResponseEncoder(Era.MODERN, GREENROOM).result({"tools": []}, kept))
    assert fresh == {"tools": [], "ttlMs": kept[0], "cacheScope": kept[1], **SIGNED}
    assert json.loads(ResponseEncoder(Era.HANDSHAKE, GREENROOM).result({"tools": []}, kept)) == {"tools": []}


def test_a_results_own_meta_stands_beside_the_servers_name() -> None:
    answer = json.loads(ResponseEncoder(Era.MODERN, GREENROOM).result({"_meta": {"mine": 1}}))
    assert answer["_meta"] == {"mine": 1, SERVER_INFO_KEY: GREENROOM.implementation}


@pytest.mark.parametrize("era", Era)
def test_an_older_name_and_the_time_stand_beside_each_other(era: Era) -> None:
    line = ResponseEncoder(era, GREENROOM).tool_line(b"1", b"{}", MOMENT, meta={"mine": 1})
    assert json.loads(line)["result"]["_meta"] == {"mine": 1, **AROUND[era]["_meta"]}


def test_answers_of_one_millisecond_differ_by_microseconds() -> None:
    clock = iter([NOW, NOW + 1_000, NOW + 999_957_000, NOW + 999_958_000, NOW + 86_400_000_000_000])
    times = AnswerTimes(lambda: next(clock))
    made = [times.moment(0) for _ in range(5)]
    assert [json.loads(each.json) for each in made] == [
        "2023-11-14T22:13:20.000042Z",
        "2023-11-14T22:13:20.000043Z",
        "2023-11-14T22:13:20.999999Z",
        "2023-11-14T22:13:21.000000Z",
        "2023-11-15T22:13:20.000042Z",
    ]
    assert [each.at.isoformat(timespec="microseconds") for each in made] == [
        json.loads(each.json).replace("Z", "+00:00") for each in made
    ]
