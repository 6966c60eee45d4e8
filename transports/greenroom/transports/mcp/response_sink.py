"""The sink for the messages of one request: lines of a pipe, messages of a WebSocket, or a stream of HTTP."""

from __future__ import annotations

from typing import Protocol


class ResponseSink(Protocol):
    """Takes the lines for one request, or those that belong to none. Taking one never waits or fails.

    A line is the JSON of one message and ends with a newline.
    """

    def send(self, line: bytes) -> None:
        """Take a notification or a request of the server, before the answer."""

    def answer(self, line: bytes) -> None:
        """Take the answer, which is the last line."""

    def unanswered(self) -> None:
        """End without an answer, because the request was cancelled."""

    def close_stream(self) -> None:
        """Close the stream, where the client can resume it later."""

    async def room_for_notice(self) -> None:
        """Wait until the client has read nearly all that it was sent.

        So a notification that nobody reads stays a flag of its subscriber, and costs no more.
        """
