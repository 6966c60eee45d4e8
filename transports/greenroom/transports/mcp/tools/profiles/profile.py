"""The declaration of a tool profile."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from greenroom.actors.app.requests import TOOL_SCOPES
from greenroom.transports.mcp.tools.answer_times import Moment


class Made(msgspec.Struct, frozen=True):
    """An older member of an answer; no current member has its value."""

    kind: Any
    make: Callable[[Any], Any]


class Told(msgspec.Struct, frozen=True):
    """An older member of an answer; its value depends on the time of the answer."""

    kind: Any
    tell: Callable[[Moment], Any]


OlderName = str | Made | Told
"""The meaning of an older name: a current name with the same value, or a computed value."""

OlderNames = Mapping[type[msgspec.Struct], Mapping[str, OlderName]]
"""Older names by type: the type of an answer, of a part of an answer, or of a base that several share."""


class OlderParameter(msgspec.Struct, frozen=True):
    """A parameter of a tool's older form; null means absent, if it is optional.

    Attributes:
        read: Converts a value to the value of the current parameter; returns None to leave that out.
        spreads: Whether ``read`` returns several current parameters by name.
        listed: The listed type, if it is narrower than the accepted type.
    """

    name: str
    kind: Any
    read: Callable[[Any], Any] = lambda given: given
    spreads: bool = False
    listed: Any = None


def tools_of_area(area: str) -> tuple[str, ...]:
    """Return the tools whose scope belongs to an area, such as ``code``, in listing order."""
    return tuple(name for name, scope in TOOL_SCOPES.items() if scope.partition(":")[0] == area)


class ToolProfile(msgspec.Struct, frozen=True, kw_only=True):
    """The declaration of one profile.

    Attributes:
        tools: The listed tools in order; None for every current tool.
        defaults: Additional arguments by tool, for calls whose arguments all fit the tool's older form.
        parameters: By tool, additional or wider parameters of its older form.
        descriptions: Descriptions of tools in the words of the profile's system, if its models need them.
        older_prompts: Whether prompts list the older names of their arguments.
        older: The older names in answers. A name that the current answer also has gets the older meaning.
    """

    tools: tuple[str, ...] | None
    defaults: Mapping[str, Mapping[str, Any]] = {}
    parameters: Mapping[str, tuple[OlderParameter, ...]] = {}
    descriptions: Mapping[str, str] = {}
    older_prompts: bool = False
    older: OlderNames = {}
