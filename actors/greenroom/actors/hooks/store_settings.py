"""Settings of a store for code below its actors: languages and an extractor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from greenroom.actors.content.text.analyze import TextSettings, text_settings
from greenroom.actors.hooks.findings import Extractor


@dataclass(frozen=True, slots=True)
class StoreSettings(TextSettings):
    """The settings of one store; see `current_settings` of the runtime.

    Attributes:
        extractor: Finds in turns what is worth a memory; None: the plain rules.
    """

    extractor: Extractor | None = None


def store_settings(languages: Sequence[str], extractor: Extractor | None) -> StoreSettings:
    """Return the settings of a store.

    Raises:
        ValueError: there is no stemmer for a language.
    """
    text = text_settings(tuple(languages))
    return StoreSettings(text.rules, text.code, extractor)
