"""Words of corpora and entities that the command line shows without importing the schemas."""

from __future__ import annotations

from typing import Final, Literal

DEFAULT_CORPUS: Final = "default"
EntityType = Literal["vendor", "library", "framework", "service"]
