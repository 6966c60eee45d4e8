"""The types of what searches are asked with, besides those that all requests about memories share."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from greenroom.actors.schemas.memory_types import Below as Below

OwnBelow = Annotated[Below, Meta(description="all below it; default your user's")]
After = Annotated[
    str, Meta(min_length=1, max_length=40, description="date or time, included; UTC unless timezone")
]
Before = Annotated[str, Meta(min_length=1, max_length=40, description="the same, not included")]
TimeWords = Annotated[
    str, Meta(min_length=1, max_length=200, description="such as yesterday or in March 2026")
]
Zone = Annotated[
    str, Meta(min_length=1, max_length=64, description="of all times named here, such as Europe/Berlin")
]
Boost = Annotated[float, Meta(ge=0, le=1, description="part of quality in the score; hybrid: 0.3")]
Budget = Annotated[int, Meta(ge=1, le=1_000_000, description="tokens at most")]
Task = Annotated[str, Meta(min_length=1, max_length=10_000, description="what you are about to do")]
