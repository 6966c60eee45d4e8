"""Errors from several rooms that one place handles: the command line, or the HTTP server."""

from __future__ import annotations

import math
from http import HTTPStatus

from greenroom.actors.core.auth.key_format import mask_keys
from greenroom.runtime import GreenroomError
from greenroom.transports.base.defaults import RETRY_SECONDS


class InvalidValueError(Exception):
    """A setting has an invalid value; the message says what is allowed."""


class InvalidSecretValueError(InvalidValueError):
    """An `InvalidValueError` for a possible secret: its value is never shown."""


class FileAccessError(GreenroomError):
    """A file cannot be opened, read or made; the message says which and why."""


class HttpRefusedError(Exception):
    """A request rejected with an HTTP status; its sentence becomes the response body."""

    def __init__(self, status: HTTPStatus, sentence: str, **headers: str) -> None:
        super().__init__(mask_keys(sentence))
        self.status = status
        self.headers = headers


def retry_later(
    sentence: str, seconds: float = RETRY_SECONDS, status: HTTPStatus = HTTPStatus.TOO_MANY_REQUESTS
) -> HttpRefusedError:
    """Return a rejection for too many requests, with ``Retry-After`` in whole seconds."""
    return HttpRefusedError(status, sentence, **{"Retry-After": str(math.ceil(seconds))})


class AccessDeniedError(HttpRefusedError):
    """A request denied for its origin, its rights, or a key in the wrong place.

    Unlike other `HttpRefusedError`, it is recorded in the audit log.
    """
