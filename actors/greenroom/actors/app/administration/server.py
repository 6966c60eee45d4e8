"""The replies about the server: its health, and its statistics."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from greenroom.actors.app.savings.requests import SavingsReport
from greenroom.actors.core.replies.replies import Reply
from greenroom.actors.core.validation.types import BRIEF

ServerStatus = Literal["ok", "stopping", "failed"]
"""The value of ``/healthz``: whether the server serves."""
PartStatus = Literal["ok", "off", "degraded", "failed"]

Whose = Annotated[Literal["mine", "all"], Meta(description="all: everybody's; needs the scope admin")]


class PartHealth(msgspec.Struct, frozen=True, kw_only=True):
    """The health of one part of the server.

    Attributes:
        status: ``degraded``: it works, but needs attention.
        cause: The reason, and the remedy if there is one.
    """

    part: str
    status: PartStatus
    cause: str


class Health(Reply, frozen=True, kw_only=True):
    """Answers `HealthCheck`.

    Attributes:
        status: The value of ``/healthz``: whether the server serves.
        worst: The worst of its parts.
        parts: Every part.
    """

    status: ServerStatus
    worst: PartStatus
    parts: Annotated[list[PartHealth], Meta(extra_json_schema=BRIEF)]
    checked_at: datetime


class ServerStats(Reply, frozen=True, kw_only=True):
    """Answers `GetStats`.

    Attributes:
        server: The output of `greenroom stats --json`; for administrators only.
    """

    version: str
    savings: Annotated[SavingsReport, Meta(extra_json_schema=BRIEF)]
    server: dict[str, Any] | UnsetType = UNSET
