"""What a tool profile declares."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec


class Made(msgspec.Struct, frozen=True):
    """A member of an answer that no member of today's has the value of.

    Attributes:
        kind: Its type.
        make: Makes it of today's answer.
    """

    kind: Any
    make: Callable[[Any], Any]


OlderNames = Mapping[type[msgspec.Struct], Mapping[str, str | Made]]
"""By the type of an answer or of a part of one: its older names, each with today's or what makes it."""


class ToolProfile(msgspec.Struct, frozen=True, kw_only=True):
    """What one profile declares.

    Attributes:
        tools: The tools that are listed, in order; None for every tool of today.
        defaults: What a call is given besides, by tool, where all its arguments are such as the tool's older
            form takes.
        descriptions: What a tool is for, in the words of this system, where its clients' models want others.
        older: The older names in answers. One that today's answer has as well means something else here.
    """

    tools: tuple[str, ...] | None
    defaults: Mapping[str, Mapping[str, Any]] = {}
    descriptions: Mapping[str, str] = {}
    older: OlderNames = {}
