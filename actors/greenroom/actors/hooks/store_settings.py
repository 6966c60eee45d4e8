"""Settings of a store for its actors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from greenroom.actors.content.text.analyze import TextSettings, text_settings
from greenroom.actors.hooks.extraction.findings import Extractor
from greenroom.actors.sessions.conversation_tiers import TierSizes


@dataclass(frozen=True, slots=True)
class StoreSettings(TextSettings):
    """The settings of one store; see `current_settings` of the runtime.

    Attributes:
        extractor: Finds memories in turns; None for the plain rules.
    """

    content_limit: int
    tiers: TierSizes
    extractor: Extractor | None = None


def store_settings(
    languages: Sequence[str], content_limit: int, tiers: TierSizes, extractor: Extractor | None
) -> StoreSettings:
    """Build the settings of a store; `ValueError` if a language has no stemmer."""
    text = text_settings(tuple(languages))
    return StoreSettings(text.rules, text.code, content_limit, tiers, extractor)
