"""The upper bound of `mcp`: no more than one decode, a look into a dict and one encode a call, on trio.

It answers `set_memory` and `get_memory` as Greenroom does, keeps nothing, bounds nothing,
refuses nothing and tells nobody: what it takes is what reading, writing and JSON take here.
"""

from __future__ import annotations

import os
from typing import Any

import msgspec
import trio

CHUNK = 64 * 1024
NONE = msgspec.Raw()


class Arguments(msgspec.Struct):
    """The arguments of both tools."""

    key: str
    value: msgspec.Raw = msgspec.Raw(b"null")


class Params(msgspec.Struct):
    """The parameters of a call."""

    name: str = ""
    arguments: Arguments | None = None


class Request(msgspec.Struct):
    """A frame."""

    method: str
    params: Params = msgspec.field(default_factory=Params)
    id: msgspec.Raw = NONE


class Text(msgspec.Struct):
    """What `content` holds."""

    text: str
    type: str = "text"


class Result(msgspec.Struct, rename="camel"):
    """The answer to a call."""

    content: list[Text]
    structured_content: msgspec.Raw


class Response(msgspec.Struct):
    """The answer to a request."""

    id: msgspec.Raw
    result: Any
    jsonrpc: str = "2.0"


class Entry(msgspec.Struct):
    """What both tools answer."""

    key: str
    value: msgspec.Raw
    version: int = 1
    updated_at: str = "2026-01-01T00:00:00.000000Z"
    updated_by: str = "bare"
    success: bool = True


BEGIN = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "bare", "version": "1"},
}


async def main() -> None:
    """Serve standard input and output."""
    read = msgspec.json.Decoder(Request).decode
    write = msgspec.json.Encoder().encode
    kept: dict[str, msgspec.Raw] = {}

    def answer(line: bytes) -> bytes:
        request = read(line)
        if request.id is NONE:
            return b""
        arguments = request.params.arguments
        if arguments is None:
            return write(Response(request.id, BEGIN)) + b"\n"
        if request.params.name == "set_memory":
            kept[arguments.key] = arguments.value.copy()
        entry = write(Entry(arguments.key, kept[arguments.key]))
        result = Result([Text(entry.decode())], msgspec.Raw(entry))
        return write(Response(request.id, result)) + b"\n"

    rest = b""
    async with trio.lowlevel.FdStream(os.dup(0)) as incoming, trio.lowlevel.FdStream(os.dup(1)) as outgoing:
        while chunk := await incoming.receive_some(CHUNK):
            lines = (rest + chunk).split(b"\n")
            rest = lines.pop()
            if answers := b"".join(map(answer, lines)):
                await outgoing.send_all(answers)


if __name__ == "__main__":
    trio.run(main)
