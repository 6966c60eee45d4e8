"""The OpenAPI 3.1 description of the interface, made from the structs of requests and replies."""

from __future__ import annotations

from functools import cache
from inspect import cleandoc
from typing import Any, Final

import msgspec

from greenroom.actors import API_REQUESTS, ResourceList
from greenroom.actors.core.auth.scopes import needed_for_request
from greenroom.runtime import reply_type
from greenroom.transports.mcp.tools.schema import input_schema, output_schema
from greenroom.transports.mcp.tools.tools import TOOLS
from greenroom.transports.web.rest.browser_sessions import CSRF_HEADER, LogIn, SessionView
from greenroom.transports.web.rest.impersonation import HEADERS, PARAMETERS
from greenroom.transports.web.rest.problems import Problem

ROOT: Final = "/api/v1"
_JSON: Final = "application/json"
_EVERYBODY: Final = ("bearer",), ("session",)
_CHANGES: Final = ("bearer",), ("session", "csrf")

_INTRODUCTION: Final = """\
Every request of Greenroom's tools, as HTTP and JSON. A program sends an API key or an access token. A \
browser logs in, and gets a cookie and a CSRF token; it sends this token with each POST request. \
To make keys, to export, or to read as another agent, a confirmation is needed (`CONFIRMATION_NEEDED`): a \
browser sends the code of its terminal, or its key, in the header X-Confirmation. \
Failures are problem documents (RFC 9457) with the codes that tools answer."""


@cache
def document() -> bytes:
    """Return the description as JSON."""
    paths: dict[str, Any] = {f"{ROOT}/{name}": {"post": operation(name)} for name in API_REQUESTS}
    return msgspec.json.encode(
        {
            "openapi": "3.1.0",
            "info": {"title": "Greenroom", "version": "1", "description": _INTRODUCTION},
            "security": _security(_EVERYBODY),
            "paths": {**_LOG_IN, **paths, **_reads()},
            "components": {
                "parameters": _impersonation_headers(),
                "schemas": {"Problem": output_schema(Problem)},
                "responses": {
                    "Problem": {
                        "description": "It was refused, or it failed.",
                        "content": {"application/problem+json": {"schema": _ref("schemas/Problem")}},
                    }
                },
                "securitySchemes": {
                    "bearer": {"type": "http", "scheme": "bearer"},
                    "session": {"type": "apiKey", "in": "cookie", "name": "__Host-greenroom"},
                    "csrf": {"type": "apiKey", "in": "header", "name": CSRF_HEADER},
                },
            },
        }
    )


@cache
def operation(name: str) -> dict[str, Any]:
    """Describe one request of the domain."""
    request = API_REQUESTS[name]
    title, description = _words(name)
    return {
        "operationId": name,
        "summary": title,
        "description": f"{description} Needs the scope `{needed_for_request(name)}`.",
        "tags": [needed_for_request(name).partition(":")[0]],
        "security": _security(_CHANGES),
        "parameters": _AS,
        "requestBody": {"required": True, "content": {_JSON: {"schema": input_schema(request)}}},
        "responses": _answers(output_schema(reply_type(request))),
    }


def _words(name: str) -> tuple[str, str]:
    """Return a request's title and description; if it is no tool, the docstring describes it."""
    if name in TOOLS:
        return TOOLS[name].title, TOOLS[name].description
    return name.replace("_", " ").capitalize(), cleandoc(API_REQUESTS[name].__doc__ or "")


def _reads() -> dict[str, Any]:
    uri = {"type": "string", "description": "A resource's URI."}
    cursor = {"name": "cursor", "in": "query", "schema": {"type": "string"}}
    listed = {"anyOf": [output_schema(ResourceList), {"type": "object"}]}
    topics = {"type": "array", "items": uri, "minItems": 1}
    stream = {"description": "Changes, as they come.", "content": {"text/event-stream": {}}}
    return {
        f"{ROOT}/resources": {
            "get": {
                "operationId": "resources",
                "summary": "Read a resource, or list all resources",
                "parameters": [{"name": "uri", "in": "query", "schema": uri}, cursor, *_AS],
                "responses": _answers(listed),
            }
        },
        f"{ROOT}/events": {
            "get": {
                "operationId": "events",
                "summary": "Receive changes of resources, by server-sent events",
                "parameters": [{"name": "topic", "in": "query", "required": True, "schema": topics}, *_AS],
                "responses": {"200": stream, "default": _ref("responses/Problem")},
            }
        },
        f"{ROOT}/openapi.json": {
            "get": {
                "operationId": "openapi",
                "summary": "Read this description",
                "responses": _answers({"type": "object"}),
            }
        },
    }


def _impersonation_headers() -> dict[str, Any]:
    """Return the headers of an impersonation; a URL parameter may replace each."""
    return {
        key: {
            "name": HEADERS[key],
            "in": "header",
            "description": f"{meaning} Percent-encode it, or send it as `{key}` in the URL.",
            "schema": {"type": "string"},
        }
        for key, meaning in PARAMETERS.items()
    }


def _answers(schema: Any, status: str = "200") -> dict[str, Any]:
    done = {"description": "Done.", "content": {_JSON: {"schema": schema}}}
    return {status: done, "default": _ref("responses/Problem")}


def _security(ways: tuple[tuple[str, ...], ...]) -> list[dict[str, Any]]:
    return [{scheme: [] for scheme in way} for way in ways]


def _ref(part: str) -> dict[str, str]:
    return {"$ref": f"#/components/{part}"}


_AS: Final = [_ref(f"parameters/{key}") for key in PARAMETERS]
_LOG_IN: Final[dict[str, Any]] = {
    f"{ROOT}/login": {
        "post": {
            "operationId": "log_in",
            "summary": "Log a browser in by a key, or by a link of `greenroom console`",
            "security": [],
            "requestBody": {"required": True, "content": {_JSON: {"schema": input_schema(LogIn)}}},
            "responses": _answers(output_schema(SessionView)),
        }
    },
    f"{ROOT}/logout": {
        "post": {
            "operationId": "log_out",
            "summary": "End the browser's session",
            "security": _security((("session", "csrf"),)),
            "responses": {"204": {"description": "Done."}, "default": _ref("responses/Problem")},
        }
    },
    f"{ROOT}/session": {
        "get": {
            "operationId": "session",
            "summary": "Show who is logged in, and until when",
            "parameters": _AS,
            "responses": _answers(output_schema(SessionView)),
        }
    },
}
