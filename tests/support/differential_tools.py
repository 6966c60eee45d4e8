"""The real tools, and one more whose calls stay open."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import msgspec
from support.desk import NoteTool

from greenroom.actors.core.auth.tool_profiles import SchemaForm
from greenroom.transports import TOOLS, Tool


class ListedOnce(Tool, frozen=True, kw_only=True):
    """A tool whose listing is made once for all conversations: making it takes a millisecond."""

    def listing(self, schemas: SchemaForm = "plain") -> dict[str, Any]:
        return _listing(self.name, schemas)


class OpenTool(NoteTool, frozen=True, kw_only=True):
    """A tool that takes whatever it is given, and whose calls stay open."""

    def parse(self, arguments: bytes) -> Any:
        return self.name, arguments


@functools.cache
def _listing(name: str, schemas: SchemaForm) -> dict[str, Any]:
    return TOOLS[name].listing(schemas)


TOOLS_AND_HOLD: Mapping[str, Tool] = {
    **{name: ListedOnce(**msgspec.structs.asdict(each)) for name, each in TOOLS.items()},
    "hold": OpenTool(name="hold", title="", description=""),
}
