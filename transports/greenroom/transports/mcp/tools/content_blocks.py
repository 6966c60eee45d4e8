"""Answers of tools and resources that are not JSON: images, sound, text."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from greenroom.actors import ExportResource, MemoriesExported, SessionExported


class Content(msgspec.Struct, frozen=True, kw_only=True):
    """A tool's answer as content blocks, or a resource as contents, as MCP defines them."""

    blocks: list[dict[str, Any]]
    structured: dict[str, Any] | None = None
    is_error: bool = False


NO_JSON: Final = (Content, MemoriesExported, SessionExported, ExportResource)
"""The replies with more than JSON."""


def to_content(reply: Any) -> Any:
    """Convert a reply with more than JSON to `Content`; return other replies unchanged."""
    if isinstance(reply, MemoriesExported):
        return _linked(reply)
    if isinstance(reply, SessionExported):
        return _carried(reply)
    if isinstance(reply, ExportResource):
        return Content(blocks=[{"uri": reply.uri, "mimeType": reply.mime_type, "text": reply.text}])
    return reply


def _linked(reply: MemoriesExported) -> Content:
    """Return an export, with links to the resources of its parts."""
    said = msgspec.to_builtins(reply)
    text = {"type": "text", "text": msgspec.json.encode(reply).decode()}
    links = [
        {
            "type": "resource_link",
            "uri": part.uri,
            "name": f"memories{number if number > 1 else ''}.{reply.format}",
            "mimeType": reply.mime_type,
            "size": part.size_bytes,
        }
        for number, part in enumerate(reply.parts, start=1)
    ]
    return Content(blocks=[text, *links], structured=said)


def _carried(reply: SessionExported) -> Content:
    """Return a passport's description, its link, and its QR code as an image."""
    told = msgspec.structs.replace(reply, qr_png=None)
    link = {
        "type": "resource_link",
        "uri": reply.uri,
        "name": f"{reply.session_id}.passport.json",
        "mimeType": "application/json",
        "size": reply.size_bytes,
    }
    blocks: list[dict[str, Any]] = [{"type": "text", "text": msgspec.json.encode(told).decode()}, link]
    if reply.qr_png is not None:
        blocks.append({"type": "image", "data": reply.qr_png, "mimeType": "image/png"})
    return Content(blocks=blocks, structured=msgspec.json.decode(msgspec.json.encode(told)))
