"""State that the handlers of one era's methods share, and the listings that clients share."""

from __future__ import annotations

from collections.abc import Sized
from functools import lru_cache
from typing import Final

from greenroom.actors import TEMPLATES
from greenroom.actors.core.auth.scopes import resources_of
from greenroom.transports.mcp.clients.subscriptions import Subscriptions
from greenroom.transports.mcp.frames.calls import Deadlines
from greenroom.transports.mcp.frames.versions import MODERN_VERSION, Era
from greenroom.transports.mcp.response_encoder import FRESH, STATIC, ResponseEncoder
from greenroom.transports.mcp.server_info import ServerInfo
from greenroom.transports.mcp.tools.answer_times import AnswerTimes
from greenroom.transports.mcp.tools.offered_tools import ToolOffer
from greenroom.transports.mcp.tools.tools import visible_tools

JSON: Final = "application/json"
ALL_SCOPES: Final = frozenset({"*"})
"""The scopes of every caller where no keys are used."""
CACHED: Final = 64  # cached answers per listing


class Listings:
    """The listings of one era, as JSON, shared by all clients with the same access."""

    def __init__(self, answers: ResponseEncoder, usual: ToolOffer, profile: ServerInfo) -> None:
        self._answers = answers
        self._usual = usual
        self._profile = profile
        self._tools_of_names = lru_cache(maxsize=CACHED)(self._list_tools)
        self.tools = lru_cache(maxsize=CACHED)(self._tools_for)
        self.templates = lru_cache(maxsize=CACHED)(self._list_templates)
        self.discovery = lru_cache(maxsize=CACHED)(self._discover)

    def _tools_for(self, offer: ToolOffer, scopes: frozenset[str]) -> bytes:
        return self._tools_of_names(offer, visible_tools(offer.listed, offer.tools, scopes))

    def _list_tools(self, offer: ToolOffer, names: tuple[str, ...]) -> bytes:
        kept = FRESH  # a chosen offer must not be cached for other clients
        if offer is self._usual:
            kept = _cache_policy(names, visible_tools(offer.listed, offer.tools, ALL_SCOPES))
        return self._answers.result({"tools": offer.listing_of(names)}, kept)

    def _list_templates(self, scopes: frozenset[str]) -> bytes:
        kinds = resources_of(scopes)
        listed = [
            {
                "uriTemplate": template.uri_template,
                "name": template.name,
                "title": template.title,
                "description": template.description,
                "mimeType": JSON,
            }
            for template in TEMPLATES
            if template.kind in kinds
        ]
        everything = [each for each in TEMPLATES if each.kind in resources_of(ALL_SCOPES)]
        return self._answers.result({"resourceTemplates": listed}, _cache_policy(listed, everything))

    def _discover(self, offer: ToolOffer, scopes: frozenset[str]) -> bytes:
        said = self._profile.described_to(scopes, offer.unlisted)
        return self._answers.result({"supportedVersions": [MODERN_VERSION], **said}, FRESH)


def _cache_policy(listed: Sized, usual: Sized) -> tuple[int, str]:
    """Return the cache lifetime and scope of a listing; an unusual listing is private."""
    return STATIC if len(listed) == len(usual) else FRESH


class HandlerContext:
    """The state that handlers need for their answers."""

    def __init__(
        self,
        era: Era,
        usual: ToolOffer,
        profile: ServerInfo,
        subscriptions: Subscriptions,
        deadlines: Deadlines,
        times: AnswerTimes,
    ) -> None:
        self.answers = ResponseEncoder(era, profile)
        self.listings = Listings(self.answers, usual, profile)
        self.era = era
        self.profile = profile
        self.subscriptions = subscriptions
        self.deadlines = deadlines
        self.times = times
