"""Parse lines of bytes into messages, and write answers as lines: JSON-RPC without I/O.

Rules:

1. A message is one line. A line over the limit is counted and skipped, never held.
2. Bytes that are not UTF-8 are an error; nothing is replaced.
3. The ``arguments`` of a tool call stay the received bytes. They are parsed where the parameters are known,
            so a nested value is never re-encoded on its way to the store.
4. An error answers with the request's id whenever the line reveals it.
5. A reply's JSON goes into the answer byte for byte (`result_line`).

About MCP's methods this module knows only that ``tools/call`` carries arguments. About connections it knows
nothing: its caller tracks the ids in flight.
"""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from typing import Any, Literal, NamedTuple

import msgspec

from greenroom.transports.base.defaults import MAX_MESSAGE_BYTES
from greenroom.transports.mcp.frames.json_members import RepeatedKeyError, ScanError, members_of

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603


MAX_ID_BYTES = 1_000
MAX_METHOD_LENGTH = 200

NO_ID = b"null"
RequestKey = int | str
"""A request id by value: 7 and "7" are two ids."""


class Frame(NamedTuple):
    """One request, notification or response.

    Attributes:
        method: The JSON-RPC method; empty for a response.
        params: The decoded parameters; for ``tools/call`` without ``arguments``. For a response, its
            ``result`` or ``error`` member.
        id: The id as received; None for a notification.
        name: The tool's name when the method is ``tools/call`` and the name is a string.
        is_response: Whether it answers a request of this side.
        problem: What is wrong with the arguments. A caller that may call the tool gets this as the answer.
    """

    method: str
    params: dict[str, Any] | None
    id: bytes | None
    key: RequestKey | None
    name: str | None
    arguments: bytes
    size: int
    is_response: bool = False
    problem: str = ""

    @property
    def is_request(self) -> bool:
        """Whether it needs an answer."""
        return self.key is not None and not self.is_response


class FrameError(Exception):
    """A line that is not a message; the connection continues.

    Attributes:
        id: The id to answer with, as JSON.
    """

    def __init__(self, code: int, sentence: str, id: bytes = NO_ID) -> None:
        super().__init__(sentence)
        self.code = code
        self.id = id


class RequestError(Exception):
    """A completely parsed request that is answered with a protocol error."""

    def __init__(self, code: int, sentence: str, data: Any = None) -> None:
        super().__init__(sentence)
        self.code = code
        self.data = data


class Oversized(NamedTuple):
    """A line that was skipped because it exceeds the limit; sizes in bytes."""

    size: int
    limit: int


_BLANK = frozenset((b"", b"\r", b" ", b"\t"))


class LineSplitter:
    """Splits a byte stream into lines, holding at most one line of the limit's length."""

    def __init__(self, limit: int = MAX_MESSAGE_BYTES) -> None:
        self._limit = limit
        self._held = bytearray()
        self._skipped = 0

    def feed(self, chunk: bytes) -> list[bytes | Oversized]:
        """Return the lines that this chunk completes, without their line ends; skip blank lines."""
        first, *lines = chunk.split(b"\n")
        self._hold(first)
        if not lines:
            return []
        last = lines.pop()
        found = self._complete()
        for line in lines:
            if len(line) > self._limit or line[-1:] in _BLANK:
                self._hold(line)
                found += self._complete()
            else:
                found.append(line)
        if last:
            self._hold(last)
        return found

    def finish(self) -> list[bytes | Oversized]:
        """Return the rest after the last line end, which a client may omit."""
        return self._complete()

    def _hold(self, part: bytes) -> None:
        if self._skipped or len(self._held) + len(part) > self._limit + 1:  # one more byte for a CR
            self._skipped += len(self._held) + len(part)
            self._held.clear()
        else:
            self._held += part

    def _complete(self) -> list[bytes | Oversized]:
        """Return the held line unless it is blank, and clear it."""
        size, self._skipped = self._skipped, 0
        line = bytes(self._held)
        self._held.clear()
        if size == 0:
            line = line.removesuffix(b"\r")
            size = len(line)
        if size > self._limit:
            return [Oversized(size, self._limit)]
        return [line] if line.strip(b" \t\r") else []


_INTEGER = re.compile(rb"-?(?:0|[1-9][0-9]*)")
_KINDS = {
    b'"': "a string",
    b"{": "an object",
    b"[": "an array",
    b"t": "a boolean",
    b"f": "a boolean",
    b"n": "null",
}


_MISSING = msgspec.Raw(b"")


class _Envelope(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    jsonrpc: Literal["2.0"]
    method: str
    id: msgspec.Raw = _MISSING
    params: msgspec.Raw = _MISSING


class _CallParams(msgspec.Struct, forbid_unknown_fields=True, gc=False, rename={"meta": "_meta"}):
    name: msgspec.Raw
    arguments: msgspec.Raw = _MISSING
    meta: msgspec.Raw = _MISSING


_read_envelope = msgspec.json.Decoder(_Envelope).decode
_read_call = msgspec.json.Decoder(_CallParams).decode
_read_string = msgspec.json.Decoder(str).decode

# The length of a message without blanks, apart from the values of its members.
_PUNCTUATION = len('{"jsonrpc":"2.0","id":,"method":"tools/call","params":}')
_CALL_PUNCTUATION = {
    (False, False): len('{"name":}'),
    (True, False): len('{"name":,"arguments":}'),
    (False, True): len('{"name":,"_meta":}'),
    (True, True): len('{"name":,"arguments":,"_meta":}'),
}
_SPACED = b'{"jsonrpc": "2.0", "'  # the style of the standard library: a blank after each colon and comma
_SPACES = 7
_SHORTEST_REPEAT = len('"id":0,')
_SHORTEST_REPEAT_IN_CALL = len('"name":"",')
_EXACT_DIGITS = 15


def parse_frame(line: bytes) -> Frame | None:
    """Parse the message on a line; return None if it needs no action.

    A notification with a wrong method or wrong parameters needs no action, because notifications are never
    answered. A response without an id needs no action either.

    Raises:
        FrameError: The line is not a message; the error has the answer.
    """
    return _plain_call(line) or _parse_closely(line)


def _plain_call(line: bytes) -> Frame | None:
    """Parse a tool call in its usual form; return None for any other line.

    msgspec silently keeps the last of two equal keys. So a line that is longer than its members passes only
    if the rest is too short for a member, or is the usual blanks.
    """
    try:
        if not line.isascii():
            line.decode()
        envelope = _read_envelope(line)
        if envelope.method != "tools/call":
            return None
        raw_id, raw = bytes(envelope.id), bytes(envelope.params)
        blanks = len(line) - _PUNCTUATION - len(raw_id) - len(raw)
        if blanks >= _SHORTEST_REPEAT and not (blanks == _SPACES and line.startswith(_SPACED)):
            return None
        call = _read_call(raw)
        name, arguments, meta = bytes(call.name), bytes(call.arguments), bytes(call.meta)
        blanks = len(raw) - _CALL_PUNCTUATION[arguments != b"", meta != b""]
        if blanks - len(name) - len(arguments) - len(meta) >= _SHORTEST_REPEAT_IN_CALL:
            return None
        key = _plain_key(raw_id)
        if key is None or name[:1] != b'"' or arguments[:1] not in (b"{", b""):
            return None
        params: dict[str, Any] = {"name": _read_string(name)}
        if meta:
            params["_meta"] = msgspec.json.decode(meta)
    except (ValueError, RecursionError):  # the careful parser finds the error
        return None
    return Frame("tools/call", params, raw_id, key, params["name"], arguments or b"{}", len(line))


def _plain_key(id: bytes) -> RequestKey | None:
    if id.isdigit() and len(id) <= _EXACT_DIGITS and (id[:1] != b"0" or id == b"0"):
        return int(id)
    return _read_string(id) if len(id) <= MAX_ID_BYTES and id[:1] == b'"' else None


def _parse_closely(line: bytes) -> Frame | None:
    members = _envelope(line.removeprefix(BOM_UTF8))  # some clients send a BOM
    raw_id, key = _id_of(members)
    reply_id = NO_ID if raw_id is None else raw_id
    if _decoded(members.get("jsonrpc")) != "2.0":
        raise FrameError(INVALID_REQUEST, 'jsonrpc must be the string "2.0"', reply_id)
    if "method" not in members:
        if "result" in members or "error" in members:
            return _response(members, raw_id, key, len(line))
        raise FrameError(INVALID_REQUEST, "the message has neither a method nor a result", reply_id)
    method = _decoded(members["method"])
    if not isinstance(method, str):
        raise FrameError(INVALID_REQUEST, "method must be a string of valid Unicode", reply_id)
    if len(method) > MAX_METHOD_LENGTH:
        if raw_id is None:
            return None
        sentence = f"no method has a name of {len(method)} characters; the limit is {MAX_METHOD_LENGTH}"
        raise FrameError(METHOD_NOT_FOUND, sentence, reply_id)
    try:
        params, name, arguments, problem = _params_of(members.get("params"), is_call=method == "tools/call")
    except ValueError as error:
        if raw_id is None:
            return None
        raise FrameError(INVALID_PARAMS, str(error), raw_id) from None
    if problem and raw_id is None:
        return None
    return Frame(method, params, raw_id, key, name, arguments, len(line), problem=problem)


def _response(
    members: dict[str, bytes], raw_id: bytes | None, key: RequestKey | None, size: int
) -> Frame | None:
    """Return a response without parts that cannot be represented; None if it has no id."""
    outcome: dict[str, Any] = {
        name: _decoded(members[name]) for name in ("result", "error") if name in members
    }
    return None if key is None else Frame("", outcome, raw_id, key, None, b"{}", size, is_response=True)


def _envelope(line: bytes) -> dict[str, bytes]:
    """Split the line's object into its raw members."""
    try:
        return members_of(line)
    except UnicodeDecodeError as error:
        sentence = f"the frame is not UTF-8: byte {error.start} cannot be read"
        raise FrameError(PARSE_ERROR, sentence) from None
    except RepeatedKeyError as error:
        raise FrameError(INVALID_REQUEST, f"the message {error}") from None
    except msgspec.ValidationError:
        kind = "a batch, which this protocol does not have" if line.lstrip()[:1] == b"[" else "no object"
        raise FrameError(INVALID_REQUEST, f"a message must be an object; this one is {kind}") from None
    except msgspec.DecodeError as error:
        raise FrameError(PARSE_ERROR, f"the frame is not JSON: {error}") from None
    except ScanError as error:
        raise FrameError(PARSE_ERROR, f"the frame cannot be read: {error}") from None


def _decoded(raw: bytes | None) -> Any:
    """Return a small member's value; None if it is missing or cannot be represented."""
    if raw is None:
        return None
    try:
        return msgspec.json.decode(raw)
    except (ValueError, RecursionError):  # msgspec's errors and UnicodeDecodeError are ValueErrors
        return None


def _id_of(members: dict[str, bytes]) -> tuple[bytes | None, RequestKey | None]:
    raw = members.get("id")
    if raw is None:
        return None, None
    if len(raw) > MAX_ID_BYTES:
        raise FrameError(INVALID_REQUEST, f"the id has {len(raw)} bytes; the limit is {MAX_ID_BYTES}")
    if _INTEGER.fullmatch(raw):
        return raw, int(raw)
    if raw[:1] == b'"':
        key = _decoded(raw)
        if not isinstance(key, str):
            raise FrameError(INVALID_REQUEST, "the id is not valid Unicode")
        return raw, key
    kind = _KINDS.get(raw[:1], "a number with a fraction or an exponent")
    if kind == "null" and "method" not in members:
        return None, None  # an error response to a message with an unreadable id
    raise FrameError(INVALID_REQUEST, f"the id must be a string or an integer, not {kind}")


def _params_of(raw: bytes | None, *, is_call: bool) -> tuple[dict[str, Any] | None, str | None, bytes, str]:
    """Return the parameters, a call's tool and raw arguments, and the fault of the arguments."""
    if raw is None or raw == b"null":  # some clients send null for no parameters
        return None, None, b"{}", ""
    if raw[:1] != b"{":
        raise ValueError(f"params must be an object, not {_KINDS.get(raw[:1], 'a number')}")
    try:
        members = members_of(raw)
    except (RepeatedKeyError, ScanError) as error:
        raise ValueError(f"params: {error}") from None
    arguments, problem = b"{}", ""
    if is_call and (given := members.pop("arguments", b"null")) != b"null":
        if given[:1] == b"{":
            arguments = given
        else:
            problem = f"arguments must be an object, not {_KINDS.get(given[:1], 'a number')}"
    params: dict[str, Any] = {}
    for key, value in members.items():
        try:
            params[key] = _param(key, value)
        except ValueError as error:
            if key != "arguments":
                raise
            problem = str(error)
    name = params.get("name") if is_call else None
    return params, name if isinstance(name, str) else None, arguments, problem


def _param(key: str, value: bytes) -> Any:
    try:
        return msgspec.json.decode(value)
    except RecursionError:
        raise ValueError(f"params.{key[:50]} is nested too deeply") from None
    except ValueError:
        reason = "it holds a lone surrogate, or a number out of range"
        raise ValueError(f"params.{key[:50]} cannot be represented: {reason}") from None


def error_line(id: bytes, code: int, sentence: str, data: Any = None) -> bytes:
    """Return the line that answers `id` with a JSON-RPC error."""
    error: dict[str, Any] = {"code": code, "message": sentence}
    if data is not None:
        error["data"] = data
    return b'{"jsonrpc":"2.0","id":%b,"error":%b}\n' % (id, msgspec.json.encode(error))
