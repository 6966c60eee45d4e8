"""The SDK's checks of a request, and the errors of invalid requests.

`McpServer.checks` imports this module only when a request needs it, because importing the SDK's types takes
longer than everything else. The SDK answers no request: a valid request goes to the same handler as a request
that needs no check (`methods`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcp_types import methods
from pydantic import ValidationError

from greenroom.transports.mcp.frames.frames import INVALID_PARAMS, METHOD_NOT_FOUND, RequestError


def check_request(
    method: str, version: str, params: Mapping[str, Any] | None, *, is_served: bool
) -> dict[str, Any]:
    """Return a request's parameters as the SDK parses them, without its ``_meta``.

    Raises:
        RequestError: The request is invalid, or the method is not served.
    """
    request = None
    if method in methods.SPEC_CLIENT_METHODS:
        try:
            request = methods.parse_client_request(method, version, params)
        except KeyError:  # not in this revision
            is_served = False
        except ValidationError:
            raise RequestError(INVALID_PARAMS, "Invalid request parameters", "") from None
    if request is None or not is_served:
        raise RequestError(METHOD_NOT_FOUND, "Method not found", method)
    read: dict[str, Any] = request.model_dump(by_alias=True, exclude_none=True, exclude={"params": {"meta"}})
    return read.get("params") or {}


def is_notification(method: str, version: str, params: Mapping[str, Any] | None) -> bool:
    """Return whether a notification is valid for its method."""
    try:
        methods.validate_client_notification(method, version, params)
    except (KeyError, ValidationError):
        return False
    return True
