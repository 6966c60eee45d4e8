"""What a tool or a resource answers with when that is not JSON: images, sound, text."""

from __future__ import annotations

from typing import Any

import msgspec


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
