"""Encode answers: constant parts are encoded once, and replies are never parsed again."""

from __future__ import annotations

from typing import Any

import msgspec

from greenroom.transports.mcp.frames.versions import SERVER_INFO_KEY, Era
from greenroom.transports.mcp.server_info import ServerInfo
from greenroom.transports.mcp.tools.answer_times import AT_KEY, Moment
from greenroom.transports.mcp.tools.content_blocks import Content

encode = msgspec.json.encode

FRESH = (0, "private")
STATIC = (3_600_000, "public")
"""The cache lifetime (ms) and scope of a constant answer in the later era: an hour."""


class ResponseEncoder:
    """Encodes the answers of one era."""

    def __init__(self, era: Era, profile: ServerInfo) -> None:
        self._era = era
        self._signed: dict[str, Any] = {}
        self._meta: dict[str, Any] = {}
        if era is Era.MODERN:
            self._signed = {"resultType": "complete"}
            self._meta = {SERVER_INFO_KEY: profile.implementation}
        # The members after the first member and before the time.
        self._tail = b"," + encode({**self._signed, "_meta": {**self._meta, AT_KEY: 0}})[1:-3]

    def result(
        self, result: dict[str, Any], kept: tuple[int, str] | None = None, moment: Moment | None = None
    ) -> bytes:
        """Return the JSON of a result."""
        meta = {**self._meta, **result.get("_meta", {})}
        full = {**result, **self._signed}
        if meta or moment is not None:
            full["_meta"] = meta if moment is None else moment.meta(meta)
        if kept is not None and self._era is Era.MODERN:
            full["ttlMs"], full["cacheScope"] = kept
        return encode(full)

    def tool_line(
        self,
        id: bytes,
        reply: bytes,
        moment: Moment,
        *,
        is_error: bool = False,
        meta: dict[str, Any] | None = None,
    ) -> bytes:
        """Return the answer to a tool call: a JSON object as text and structured content."""
        text = encode(reply.decode())
        if meta is None:
            tail = self._tail + moment.json + b"}"
        else:
            tail = b"," + self.result({"_meta": meta}, moment=moment)[1:-1]
        if is_error:
            return (
                b'{"jsonrpc":"2.0","id":%b,"result":{"content":[{"type":"text","text":%b}],"isError":true%b}}\n'
                % (id, text, tail)
            )
        return (
            b'{"jsonrpc":"2.0","id":%b,"result":{"content":[{"type":"text","text":%b}],'
            b'"structuredContent":%b,"isError":false%b}}\n' % (id, text, reply, tail)
        )

    def content_line(
        self, id: bytes, content: Content, moment: Moment, meta: dict[str, Any] | None = None
    ) -> bytes:
        """Return the line that answers a tool call with content blocks."""
        result: dict[str, Any] = {"content": content.blocks, "isError": content.is_error}
        if meta is not None:
            result["_meta"] = meta
        if content.structured is not None:
            result["structuredContent"] = content.structured
        return result_line(id, self.result(result, moment=moment))


def result_line(id: bytes, result: bytes) -> bytes:
    """Return the line that answers `id` with a result, both in JSON."""
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}\n' % (id, result)
