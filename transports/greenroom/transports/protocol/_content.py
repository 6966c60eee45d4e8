"""What a tool answers when a JSON text is not the answer: images, sound, resources."""

from __future__ import annotations

from typing import Any

import msgspec


class Content(msgspec.Struct, frozen=True, kw_only=True):
    """A tool's answer as the protocol's content blocks.

    Attributes:
        blocks: The blocks, in the protocol's terms.
        structured: The same for programs, where there is such a thing.
        is_error: Whether this says that the tool failed.
    """

    blocks: list[dict[str, Any]]
    structured: dict[str, Any] | None = None
    is_error: bool = False
