"""How the server is: what is asked, and what is answered."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from greenroom.actors.app.savings.requests import SavingsReport
from greenroom.actors.core.replies.replies import Reply
from greenroom.actors.core.validation.types import BRIEF

ServerStatus = Literal["ok", "stopping", "failed"]
"""What ``/healthz`` says: whether it serves."""
PartStatus = Literal["ok", "off", "degraded", "failed"]

Whose = Annotated[Literal["mine", "all"], Meta(description="all: everybody's; needs the scope admin")]


class PartHealth(msgspec.Struct, frozen=True, kw_only=True):
    """How one part of the server is.

    Attributes:
        status: ``degraded``: it works, and something should be looked at.
        cause: Why it is so, and what to do where something is to be done.
    """

    part: str
    status: PartStatus
    cause: str


class Health(Reply, frozen=True, kw_only=True):
    """Answers `HealthCheck`.

    Attributes:
        status: What ``/healthz`` says: whether the server serves.
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
        savings: What was saved.
        server: What `greenroom stats --json` says; for administrators alone.
    """

    version: str
    savings: Annotated[SavingsReport, Meta(extra_json_schema=BRIEF)]
    server: dict[str, Any] | UnsetType = UNSET
