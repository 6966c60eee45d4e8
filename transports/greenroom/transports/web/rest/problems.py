"""Failures as problem documents (RFC 9457), with the codes and sentences of tool errors."""

from __future__ import annotations

import math
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

import msgspec

from greenroom.transports.base.errors import HttpRefusedError
from greenroom.transports.mcp.tools.tool_errors import Failure
from greenroom.transports.sockets.http.responses import Header, Response
from greenroom.transports.web.rest.confirmation import CONFIRMATION_NEEDED, ConfirmationNeededError

PROBLEM: Final = (b"content-type", b"application/problem+json")

STATUSES: Final[Mapping[str, HTTPStatus]] = {
    "BROWSER_NOT_FOUND": HTTPStatus.NOT_FOUND,
    "CHECKPOINT_NOT_FOUND": HTTPStatus.NOT_FOUND,
    "CORPUS_NOT_FOUND": HTTPStatus.NOT_FOUND,
    "DEADLINE_EXCEEDED": HTTPStatus.GATEWAY_TIMEOUT,
    "IDEMPOTENCY_CONFLICT": HTTPStatus.CONFLICT,
    "INTERNAL_ERROR": HTTPStatus.INTERNAL_SERVER_ERROR,
    "KEY_EXISTS": HTTPStatus.CONFLICT,
    "KEY_NOT_FOUND": HTTPStatus.NOT_FOUND,
    "MEMORY_NOT_FOUND": HTTPStatus.NOT_FOUND,
    "OVERLOADED": HTTPStatus.SERVICE_UNAVAILABLE,
    "PARENT_MESSAGE_NOT_FOUND": HTTPStatus.NOT_FOUND,
    "PASSPHRASE_NEEDED": HTTPStatus.UNPROCESSABLE_ENTITY,
    "PASSPORT_EXPIRED": HTTPStatus.GONE,
    "PASSPORT_INVALID": HTTPStatus.UNPROCESSABLE_ENTITY,
    "PASSPORT_NOT_FOR_YOU": HTTPStatus.FORBIDDEN,
    "PASSPORT_REDEEMED": HTTPStatus.CONFLICT,
    "PASSPORT_TOO_LARGE": HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    "PASSPORT_UNTRUSTED": HTTPStatus.FORBIDDEN,
    "PERMISSION_DENIED": HTTPStatus.FORBIDDEN,
    "QUOTA_EXCEEDED": HTTPStatus.FORBIDDEN,
    "RATE_LIMITED": HTTPStatus.TOO_MANY_REQUESTS,
    "RESOURCE_NOT_FOUND": HTTPStatus.NOT_FOUND,
    "SERIALIZATION_ERROR": HTTPStatus.UNPROCESSABLE_ENTITY,
    "SESSION_CLOSED": HTTPStatus.CONFLICT,
    "SESSION_NOT_FOUND": HTTPStatus.NOT_FOUND,
    "SET_ASIDE": HTTPStatus.SERVICE_UNAVAILABLE,
    "SHUTTING_DOWN": HTTPStatus.SERVICE_UNAVAILABLE,
    "STORAGE_FULL": HTTPStatus.INSUFFICIENT_STORAGE,
    "STORE_DAMAGED": HTTPStatus.INTERNAL_SERVER_ERROR,
    "TIMED_OUT": HTTPStatus.GATEWAY_TIMEOUT,
    "VALIDATION_ERROR": HTTPStatus.UNPROCESSABLE_ENTITY,
    "VERSION_CONFLICT": HTTPStatus.CONFLICT,
}
"""The HTTP status of each code; the default status is 422, unprocessable entity."""

_RETRY: Final = "retry_after_ms"


class Problem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A problem document.

    Attributes:
        title: What the status means.
        status: The HTTP status.
        detail: What was wrong, with which value, and what to do.
        code: The code of a request's failure, or CONFIRMATION_NEEDED; None for other errors of HTTP.
        details: Details of the code, such as the field.
    """

    title: str
    status: int
    detail: str
    code: str | None = None
    details: dict[str, Any] | None = None


def failure_response(failure: Failure) -> Response:
    """Render a failure of the domain."""
    status = STATUSES.get(failure.code, HTTPStatus.UNPROCESSABLE_ENTITY)
    headers: list[Header] = []
    if (milliseconds := failure.details.get(_RETRY)) is not None:
        headers.append((b"retry-after", b"%d" % max(1, math.ceil(milliseconds / 1_000))))
    return _response(status, failure.error, headers, code=failure.code, details=failure.details)


def refusal_response(error: HttpRefusedError) -> Response:
    """Render a refusal that came before the domain."""
    headers = [(name.encode(), value.encode("latin-1", "replace")) for name, value in error.headers.items()]
    if isinstance(error, ConfirmationNeededError):
        return _response(error.status, str(error), headers, code=CONFIRMATION_NEEDED, details=error.details)
    return _response(error.status, str(error), headers)


def _response(
    status: HTTPStatus,
    sentence: str,
    headers: list[Header],
    *,
    code: str | None = None,
    details: dict[str, Any] | None = None,
) -> Response:
    problem = Problem(title=status.phrase, status=status, detail=sentence, code=code, details=details)
    return Response(status, [PROBLEM, *headers], msgspec.json.encode(problem))
