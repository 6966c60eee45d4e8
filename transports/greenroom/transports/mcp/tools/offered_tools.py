"""Tools as they are offered under certain tool profiles: the listing, the calls, the answers."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cached_property, lru_cache
from typing import Any

import msgspec

from greenroom.actors.core.auth.scopes import ADMIN, AUDIT
from greenroom.actors.core.auth.tool_profiles import SCHEMA_FORMS, SchemaForm
from greenroom.transports.auth.caller import ToolChoice
from greenroom.transports.base.tool_names import with_tools
from greenroom.transports.mcp.tools.answer_times import Moment
from greenroom.transports.mcp.tools.legacy_answers import LegacyAnswers
from greenroom.transports.mcp.tools.older_parameters import older_form
from greenroom.transports.mcp.tools.schema import output_schema
from greenroom.transports.mcp.tools.tool_profiles import DEFAULT, PROFILES, SYSTEMS, older_names
from greenroom.transports.mcp.tools.tools import Tool

KEPT = 64  # combinations of profiles whose offers are kept
AN_ANSWER = {"type": "object"}
"""All that is listed of answers where every token counts: what is in one, its reader sees."""


class ToolOffers:
    """What a server offers, by tool profiles.

    Args:
        tools: The server's tools by name.
        profiles: The profiles of clients that chose none, neither themselves nor by their keys.
        schemas: The form of parameters' schemas of clients that chose none, likewise.

    Attributes:
        usual: What those clients are offered.
    """

    def __init__(
        self, tools: Mapping[str, Tool], profiles: tuple[str, ...], schemas: SchemaForm = "plain"
    ) -> None:
        self._tools = tools
        self._usual = ToolChoice(profiles, schemas)
        self._entries: dict[SchemaForm, dict[str, dict[str, Any]]] = {form: {} for form in SCHEMA_FORMS}
        self._made = lru_cache(maxsize=KEPT)(self._make)
        self.usual = self._make(profiles, schemas)

    def of(self, choice: ToolChoice) -> ToolOffer:
        """Return what a client is offered; the server's own where it chose nothing."""
        chosen = ToolChoice(choice.profiles or self._usual.profiles, choice.schemas or self._usual.schemas)
        return self.usual if chosen == self._usual else self._made(*chosen)

    def _make(self, profiles: tuple[str, ...], schemas: SchemaForm) -> ToolOffer:
        return ToolOffer(self._tools, profiles, schemas, self._entries[schemas])


class ToolOffer:
    """What certain profiles make of a server's tools.

    Args:
        tools: The server's tools by name.
        profiles: The profiles' names, the first of which decides where they differ.
        schemas: The form of parameters' schemas.
        entries: The entries of tools in a listing where no profile changes them, as far as they were made.

    Attributes:
        tools: What can be called, by name: all that the server has.
        listed: The names of what is listed, in order, to whoever may call all of it.
        unlisted: The other names.
        older: Writes answers with older names; None where there are none.
        older_prompts: Whether prompts are listed with the older names of their arguments.
    """

    def __init__(
        self,
        tools: Mapping[str, Tool],
        profiles: tuple[str, ...],
        schemas: SchemaForm,
        entries: dict[str, dict[str, Any]],
    ) -> None:
        self._profiles = profiles
        self._older_of_system: dict[str, LegacyAnswers] = {}
        self._server_tools = tools
        self._schemas = schemas
        self._entries = entries
        first = PROFILES[profiles[0]]
        self.tools = {**tools}
        for name in first.defaults.keys() & tools.keys():
            self.tools[name] = tools[name].with_defaults(first.defaults[name])
        for profile in profiles:
            for name, parameters in PROFILES[profile].parameters.items():
                if name in tools:
                    alias = tools[name].alias
                    form = older_form(name if alias is None else alias.successor, parameters)
                    self.tools[name] = msgspec.structs.replace(self.tools[name], parameters=form)
        self._descriptions = first.descriptions
        self.listed = _listed(tools, profiles)
        self.unlisted = self.tools.keys() - set(self.listed)
        self.older_prompts = any(PROFILES[profile].older_prompts for profile in profiles)
        self._is_brief = profiles == DEFAULT
        names = older_names(profiles)
        self.older = LegacyAnswers(names) if names else None

    def renamed(self, reply: Any, moment: Moment, called: str | None = None) -> Any:
        """Return a reply, or a failure, as it is answered here.

        Args:
            reply: What is answered.
            moment: When.
            called: The name of the tool that was called; an older one has its system's names in any case.
        """
        system = SYSTEMS.get(called or "")
        if system is None or system in self._profiles:
            older = self.older
        else:
            if system not in self._older_of_system:
                self._older_of_system[system] = LegacyAnswers(older_names((*self._profiles, system)))
            older = self._older_of_system[system]
        return reply if older is None else older.renamed(reply, moment)

    @cached_property
    def listing(self) -> dict[str, dict[str, Any]]:
        """The listed tools by name, as they are listed."""
        return {name: self._entry(self.tools[name]) for name in self.listed}

    def listing_of(self, names: Collection[str]) -> list[dict[str, Any]]:
        """Return the entries of some listed tools, whose descriptions point at none of the others."""
        entries = [self.listing[name] for name in names]
        listed = {name: name for name in names}
        described = (each.get("description", "") for each in entries)
        return [
            {**each, "description": with_tools(text, listed.get)} if text else each
            for each, text in zip(entries, described, strict=True)
        ]

    def _entry(self, tool: Tool) -> dict[str, Any]:
        if tool is not self._server_tools[tool.name]:
            entry = tool.listing(self._schemas)
        elif tool.name in self._entries:
            entry = self._entries[tool.name]
        else:
            entry = self._entries[tool.name] = tool.listing(self._schemas)
        if tool.name in self._descriptions:
            entry = {**entry, "description": self._descriptions[tool.name]}
        if self._is_brief and not tool.is_foreign:
            return {**entry, "outputSchema": AN_ANSWER}
        if self.older is None or (answer := self.older.type_of(tool.answer)) is tool.answer:
            return entry
        return {**entry, "outputSchema": output_schema(answer)}

    @cached_property
    def known(self) -> tuple[str, ...]:
        """The names that a client may be led to: those that are listed, and every other tool of today."""
        today = (name for name, tool in self.tools.items() if tool.alias is None)
        return tuple(dict.fromkeys((*self.listed, *today)))


def _listed(tools: Mapping[str, Tool], profiles: tuple[str, ...]) -> tuple[str, ...]:
    """Return what several profiles list, one after the other, and what every one of them lists."""
    today = [name for name, tool in tools.items() if tool.alias is None]
    names: dict[str, None] = {}
    for profile in profiles:
        wanted = PROFILES[profile].tools
        names |= dict.fromkeys(today if wanted is None else wanted)
    always = (name for name in today if tools[name].is_foreign or tools[name].scope in {ADMIN, AUDIT})
    return tuple(name for name in dict.fromkeys((*names, *always)) if name in tools)
