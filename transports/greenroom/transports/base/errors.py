"""Errors that several rooms raise, and one place answers: the command line, or whatever answers over HTTP."""

from __future__ import annotations

from http import HTTPStatus

from greenroom.actors.core.auth.key_format import without_keys
from greenroom.runtime import GreenroomError


class InvalidValueError(Exception):
    """The value is none that the setting may have; the message says which it may."""


class InvalidSecretValueError(InvalidValueError):
    """As `InvalidValueError`, of a value that may be a secret by mistake: nothing shows it."""


class FileAccessError(GreenroomError):
    """A file that a command needs cannot be opened, read or made; the sentence says which and why."""


class HttpRefusedError(Exception):
    """A request that is refused with an HTTP status; its sentence, without any key, is the answer's body."""

    def __init__(self, status: HTTPStatus, sentence: str, **headers: str) -> None:
        super().__init__(without_keys(sentence))
        self.status = status
        self.headers = headers


class AccessDeniedError(HttpRefusedError):
    """A request that is refused for where it comes from, for what it may, or for a key in a wrong place.

    Unlike any other `HttpRefusedError` the audit log tells of it.
    """
