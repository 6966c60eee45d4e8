"""The tools, made of the operations of `greenroom.actors`, and their older names.

Schemas come from the request types; titles and descriptions come from the declarations.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from greenroom.actors import REQUESTS, is_write, parse_request
from greenroom.actors.app.requests import TOOL_TEXTS
from greenroom.actors.core.auth.scopes import ADMIN, AUDIT, EVERYTHING, allows, needed_for_request
from greenroom.actors.core.auth.tool_profiles import SchemaForm
from greenroom.actors.core.validation.coercion import MOST_CHANGES
from greenroom.runtime import reply_type
from greenroom.transports.mcp.tools.aliases import ALIASES, Alias, OlderForm
from greenroom.transports.mcp.tools.schema import listed_input, output_schema


class Tool(msgspec.Struct, frozen=True, kw_only=True):
    """One tool of the listing.

    Attributes:
        title: As in `ToolText`; the same holds for the next four attributes.
        asks: The request type that a call becomes; None for a tool of a program that embeds this server,
            which lists its own tools itself.
        alias: What its older name means; only some profiles list it.
        older: What its name meant before, if a call can still mean that.
        parameters: Its additional older parameters; None if it has none.
    """

    name: str
    title: str
    description: str
    overwrites: bool = False
    repeatable: bool = False
    weight: int = 0
    asks: type[Any] | None = None
    alias: Alias | None = None
    older: Alias | None = None
    parameters: OlderForm | None = None

    @property
    def request(self) -> type[Any]:
        """The struct of the tool's parameters."""
        return REQUESTS[self.name] if self.alias is None else self.alias.request

    @property
    def scope(self) -> str:
        """The scope that a caller needs."""
        return needed_for_request(self.name if self.alias is None else self.alias.successor)

    @property
    def answer(self) -> type[Any]:
        """The struct of its answer."""
        form = self._form
        answer: type[Any] = reply_type(self.request if form is None else REQUESTS[form.successor])
        return answer

    @property
    def _form(self) -> Alias | None:
        """The older form in which it is listed, if any."""
        return self.older if self.older is not None and self.older.is_usual else self.alias

    def with_defaults(self, defaults: Mapping[str, Any]) -> Tool:
        """Return the tool for clients of its older form, with these defaults."""
        if self.alias is not None:
            alias = msgspec.structs.replace(self.alias, fixed={**self.alias.fixed, **defaults})
            return msgspec.structs.replace(self, alias=alias)
        assert self.older is not None, "only an older form has other defaults"
        older = msgspec.structs.replace(self.older, defaults=defaults, is_usual=True)
        return msgspec.structs.replace(self, older=older)

    def parse(self, arguments: bytes) -> Any:
        """Parse a call's arguments to its request."""
        older = self.older if self.older is not None and self.older.matches(arguments) else None
        meant = older or self.parameters or self.alias
        if meant is not None:
            return meant.parse(arguments)
        return parse_request(self.request, arguments, most_changes=MOST_CHANGES)

    def alias_for(self, arguments: bytes) -> Alias | None:
        """Return the older name that a call with these arguments means, or None."""
        if self.older is not None and self.older.matches(arguments):
            return self.older
        return self.alias

    def listing(self, schemas: SchemaForm = "plain") -> dict[str, Any]:
        """Return the tool's entry of ``tools/list``, with the chosen form of its schema."""
        form = self._form
        takes = self.request if form is None else form.request
        if self.parameters is not None and form is self.alias:
            takes = self.parameters.listed
        reads = not is_write(self.request if self.asks is None else self.asks)
        words = self.description if form is None else f"Older name of {form.successor}, which see."
        return {
            "name": self.name,
            "title": self.title,
            "description": words,
            "inputSchema": listed_input(takes, schemas),
            "outputSchema": output_schema(self.answer),
            "annotations": {
                "readOnlyHint": reads,
                "destructiveHint": self.overwrites,
                "idempotentHint": reads or self.repeatable,
                "openWorldHint": False,
            },
        }


def visible_tools(names: Iterable[str], tools: Mapping[str, Tool], scopes: frozenset[str]) -> tuple[str, ...]:
    """Return the names of the tools that are listed to a holder of ``scopes``.

    Administration and the audit log are listed only to holders of those scopes by name. A holder of all
    scopes, such as the user of this machine, may call them as well, but its model does not have to read them
    at every start.
    """
    named = scopes - {EVERYTHING}
    return tuple(
        name
        for name in names
        if allows(scopes, needed := tools[name].scope)
        and (needed not in _BY_NAME or allows(named, needed) or tools[name].asks is None)
    )


_BY_NAME = frozenset({ADMIN, AUDIT})


_ALL = tuple(Tool(name=name, asks=REQUESTS[name], **text._asdict()) for name, text in TOOL_TEXTS.items())


def _with_aliases(tools: tuple[Tool, ...]) -> dict[str, Tool]:
    table = {tool.name: tool for tool in tools}
    for alias in ALIASES:
        if alias.told_by is None:
            successor = table[alias.successor]
            table[alias.name] = msgspec.structs.replace(successor, name=alias.name, alias=alias, older=None)
        else:
            table[alias.name] = msgspec.structs.replace(table[alias.name], older=alias)
    return table


TOOLS: Mapping[str, Tool] = _with_aliases(_ALL)
"""Every tool by name, in listing order, then the older names."""
