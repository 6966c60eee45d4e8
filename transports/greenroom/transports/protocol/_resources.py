"""MCP's methods for resources: the templates, a listing, reading, completion.

What a resource holds and who may see it is the domain's affair (`greenroom.actors`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    Annotations,
    CompleteRequestParams,
    CompleteResult,
    Completion,
    ListResourcesResult,
    ListResourceTemplatesResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    ResourceTemplateReference,
    TextResourceContents,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from greenroom.actors import (
    TEMPLATES,
    CompleteResource,
    ListResources,
    ReadResource,
    ResourceCompletion,
    ResourceList,
)
from greenroom.runtime import Refusal
from greenroom.transports.protocol._tool_errors import tool_error

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext

    from greenroom.transports.protocol._connection import Call
    from greenroom.transports.protocol._served import Served

    Context = ServerRequestContext[Served, Call]

R = TypeVar("R")

JSON = "application/json"
OLD_RESOURCE_NOT_FOUND = -32002
"""What the handshake era has for it; the later one has `INVALID_PARAMS`."""

_TEMPLATES = ListResourceTemplatesResult(
    resource_templates=[
        ResourceTemplate(
            uri_template=template.uri_template,
            name=template.name,
            title=template.title,
            description=template.description,
            mime_type=JSON,
        )
        for template in TEMPLATES
    ]
)


async def list_templates(_context: Context, _params: PaginatedRequestParams) -> ListResourceTemplatesResult:
    """Answer ``resources/templates/list``."""
    return _TEMPLATES


async def list_resources(context: Context, params: PaginatedRequestParams) -> ListResourcesResult:
    """Answer ``resources/list``."""
    page = await _asked(context, ListResources(cursor=params.cursor), ResourceList)
    return ListResourcesResult(
        resources=[
            Resource(
                uri=item.uri,
                name=item.name,
                title=item.title,
                mime_type=JSON,
                annotations=None
                if item.last_modified is None
                else Annotations(last_modified=item.last_modified.isoformat().replace("+00:00", "Z")),
            )
            for item in page.resources
        ],
        next_cursor=page.next_cursor,
    )


async def read_resource(context: Context, params: ReadResourceRequestParams) -> ReadResourceResult:
    """Answer ``resources/read``; the JSON itself goes past the SDK on `Call.reply`."""
    call = _call(context)
    call.reply = await _answer(context, ReadResource(uri=params.uri), large=True)
    return ReadResourceResult(contents=[TextResourceContents(uri=params.uri, mime_type=JSON, text="")])


async def complete(context: Context, params: CompleteRequestParams) -> CompleteResult:
    """Answer ``completion/complete``."""
    reference = params.ref
    template = reference.uri if isinstance(reference, ResourceTemplateReference) else ""
    request = CompleteResource(template=template, argument=params.argument.name, value=params.argument.value)
    found = await _asked(context, request, ResourceCompletion)
    total = None if found.has_more else len(found.values)
    return CompleteResult(completion=Completion(values=found.values, has_more=found.has_more, total=total))


async def _asked(context: Context, request: Any, reply: type[R]) -> R:
    return msgspec.json.decode(await _answer(context, request, large=False), type=reply)


async def _answer(context: Context, request: Any, *, large: bool) -> bytes:
    try:
        return await context.lifespan_context.ask(_call(context), lambda: request, large=large)
    except Exception as error:
        raise _worded(error, context.protocol_version) from error


def _call(context: Context) -> Call:
    assert context.request is not None, "every request comes through Connection"
    return context.request


def _worded(error: Exception, version: str) -> MCPError:
    """Return what the protocol answers to a failure."""
    failure = msgspec.json.decode(tool_error(error))
    code = INTERNAL_ERROR
    if isinstance(error, Refusal):
        old = error.code == "RESOURCE_NOT_FOUND" and version not in MODERN_PROTOCOL_VERSIONS
        code = OLD_RESOURCE_NOT_FOUND if old else INVALID_PARAMS
    return MCPError(code, failure["error"], {"code": failure["code"], **failure["details"]})
