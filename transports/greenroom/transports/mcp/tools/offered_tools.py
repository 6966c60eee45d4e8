"""Tools as certain tool profiles offer them: listing, calls, answers."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cached_property, lru_cache
from typing import Any

import msgspec

from greenroom.actors.app.requests import TOOL_SCOPES
from greenroom.actors.core.auth.scopes import ADMIN, AUDIT, allows
from greenroom.actors.core.auth.tool_profiles import SCHEMA_FORMS, SchemaForm
from greenroom.transports.auth.caller import ToolChoice
from greenroom.transports.base.tool_names import tools_in, with_tools
from greenroom.transports.mcp.tools.aliases import older_form
from greenroom.transports.mcp.tools.answer_times import Moment
from greenroom.transports.mcp.tools.legacy_answers import LegacyAnswers
from greenroom.transports.mcp.tools.schema import output_schema
from greenroom.transports.mcp.tools.tool_profiles import DEFAULT, PROFILES, SYSTEMS, older_names
from greenroom.transports.mcp.tools.tools import Tool, visible_tools

KEPT = 64  # cached offers, by combination of profiles
AN_ANSWER = {"type": "object"}
"""The output schema where every token counts: the answer itself shows its members."""


class ToolOffers:
    """The offers of a server, by tool profiles.

    Args:
        profiles: The profiles for clients for which neither they nor their keys chose profiles.
        schemas: The form of the parameters' schemas if neither they nor their keys chose it.
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
        """Return a client's offer; the server's own if the client chose nothing."""
        chosen = ToolChoice(choice.profiles or self._usual.profiles, choice.schemas or self._usual.schemas)
        return self.usual if chosen == self._usual else self._made(*chosen)

    def _make(self, profiles: tuple[str, ...], schemas: SchemaForm) -> ToolOffer:
        return ToolOffer(self._tools, profiles, schemas, self._entries[schemas])


class ToolOffer:
    """A server's tools under certain profiles.

    Args:
        profiles: The names of the profiles; where they differ, the first one decides.
        entries: Cached listing entries of tools that no profile changes.

    Attributes:
        tools: The callable tools by name: all that the server has.
        listed: The names of the listed tools in order, for a client that may call all of them.
        renaming: The tools with older names in their answers.
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
        self.renaming = frozenset(SYSTEMS if self.older is None else tools)

    def renamed(self, reply: Any, moment: Moment, called: str | None = None) -> Any:
        """Return a reply or a failure as this offer answers it.

        If `called` is an older name, the reply always has the names of that name's system.
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
        """The listing entries of the listed tools, by name."""
        return {name: self._entry(self.tools[name]) for name in self.listed}

    def listing_of(self, names: Collection[str]) -> list[dict[str, Any]]:
        """Return the entries of some listed tools; their descriptions name no other tools."""
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
        if self._is_brief and tool.asks is not None:
            return {**entry, "outputSchema": AN_ANSWER}
        if self.older is None or (answer := self.older.type_of(tool.answer)) is tool.answer:
            return entry
        return {**entry, "outputSchema": output_schema(answer)}

    def worded(self, sentence: str, scopes: frozenset[str]) -> str:
        """Return a sentence as a holder of ``scopes`` gets it.

        It names no tool that the holder may not call, and says how to reach tools that are not listed.
        """
        if not tools_in(sentence):
            return sentence
        text = open_to(sentence, scopes)
        listed = frozenset(visible_tools(self.listed, self.tools, scopes))
        missing = list(dict.fromkeys(name for name in tools_in(text) if name not in listed))
        return f"{text} ({_how_to_call(missing)})" if missing else text

    @cached_property
    def known(self) -> tuple[str, ...]:
        """The names for hints to a client: listed names, and every other current tool."""
        today = (name for name, tool in self.tools.items() if tool.alias is None)
        return tuple(dict.fromkeys((*self.listed, *today)))


def _listed(tools: Mapping[str, Tool], profiles: tuple[str, ...]) -> tuple[str, ...]:
    """Return the tools that the profiles list, in turn, then the common tools."""
    today = [name for name, tool in tools.items() if tool.alias is None]
    names: dict[str, None] = {}
    for profile in profiles:
        wanted = PROFILES[profile].tools
        names |= dict.fromkeys(today if wanted is None else wanted)
    always = (name for name in today if tools[name].asks is None or tools[name].scope in {ADMIN, AUDIT})
    return tuple(name for name in dict.fromkeys((*names, *always)) if name in tools)


def open_to(sentence: str, scopes: frozenset[str]) -> str:
    """Return a sentence without the tools that a holder of ``scopes`` may not call."""
    return with_tools(sentence, lambda name: name if allows(scopes, TOOL_SCOPES[name]) else None)


def _how_to_call(names: list[str]) -> str:
    are, them = ("is", "it") if len(names) == 1 else ("are", "them")
    text = f"{' and '.join(names)} {are} not listed here: call {them} by name"
    profile = _listing(names)
    return text if profile is None else f"{text}, or connect with the tool profile {profile}"


def _listing(names: Collection[str]) -> str | None:
    """Return the narrowest profile that lists some tools; None if only a scope lists them."""
    fitting = [
        (len(profile.tools), name)
        for name, profile in PROFILES.items()
        if profile.tools is not None and set(names) <= set(profile.tools)
    ]
    return (
        min(fitting)[1] if fitting else "all" if all(TOOL_SCOPES[name] != ADMIN for name in names) else None
    )
