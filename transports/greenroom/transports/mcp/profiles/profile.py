"""What a tool profile declares."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from greenroom.transports.mcp.tools.answer_times import Moment


class Made(msgspec.Struct, frozen=True):
    """A member of an answer that no member of today's has the value of.

    Attributes:
        kind: Its type.
        make: Makes it of today's answer.
    """

    kind: Any
    make: Callable[[Any], Any]


class Told(msgspec.Struct, frozen=True):
    """A member of an answer that tells of the answering itself.

    Attributes:
        kind: Its type.
        tell: Makes it of the moment at which the answer is made.
    """

    kind: Any
    tell: Callable[[Moment], Any]


OlderName = str | Made | Told
"""What a member with an older name has: what today's name has, or what is made for it."""

OlderNames = Mapping[type[msgspec.Struct], Mapping[str, OlderName]]
"""By the type of an answer, of a part of one, or of what several are derived from: its older names."""


class OlderParameter(msgspec.Struct, frozen=True):
    """A parameter as the older form of a tool has it; one that may be left out, as null does.

    Attributes:
        name: Its name.
        kind: What it takes.
        read: Returns what today's parameter of the name is given for a value; None for nothing.
        spreads: Whether ``read`` returns several of today's parameters by their names.
        listed: What is listed of it, where that is less than it takes.
    """

    name: str
    kind: Any
    read: Callable[[Any], Any] = lambda given: given
    spreads: bool = False
    listed: Any = None


class ToolProfile(msgspec.Struct, frozen=True, kw_only=True):
    """What one profile declares.

    Attributes:
        tools: The tools that are listed, in order; None for every tool of today.
        defaults: What a call is given besides, by tool, where all its arguments are such as the tool's older
            form takes.
        parameters: By tool those parameters that its older form has besides, or takes more in.
        descriptions: What a tool is for, in the words of this system, where its clients' models want others.
        older_prompts: Whether prompts are listed with the older names of their arguments.
        older: The older names in answers. One that today's answer has as well means something else here.
    """

    tools: tuple[str, ...] | None
    defaults: Mapping[str, Mapping[str, Any]] = {}
    parameters: Mapping[str, tuple[OlderParameter, ...]] = {}
    descriptions: Mapping[str, str] = {}
    older_prompts: bool = False
    older: OlderNames = {}
