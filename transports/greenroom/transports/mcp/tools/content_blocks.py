"""What a tool or a resource answers with when that is not JSON: images, sound, text."""

from __future__ import annotations

from typing import Any

import msgspec

from greenroom.actors import ExportResource, MemoriesExported, SessionExported


class Content(msgspec.Struct, frozen=True, kw_only=True):
    """A tool's answer as the protocol's content blocks, or a resource's as the protocol's contents.

    Attributes:
        blocks: The blocks or the contents, in the protocol's terms.
        structured: The same for programs, where there is such a thing.
        is_error: Whether this says that the tool failed.
    """

    blocks: list[dict[str, Any]]
    structured: dict[str, Any] | None = None
    is_error: bool = False


def shown(reply: Any) -> Any:
    """Return a reply that is more than JSON as `Content`, and any other as it is."""
    if isinstance(reply, MemoriesExported):
        return _linked(reply)
    if isinstance(reply, SessionExported):
        return _carried(reply)
    if isinstance(reply, ExportResource):
        return Content(blocks=[{"uri": reply.uri, "mimeType": reply.mime_type, "text": reply.text}])
    return reply


def _linked(reply: MemoriesExported) -> Content:
    """Return what was exported, with links to the resources that its parts can be read as."""
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
    """Return what there is to know of a passport, with a link to it, and its QR code as an image."""
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
