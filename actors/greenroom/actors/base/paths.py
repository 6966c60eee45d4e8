"""Default paths of this program's files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import platformdirs

if TYPE_CHECKING:
    from pathlib import Path


def default_secrets() -> Path:
    """The platform's folder for what is configured, which the data are not in."""
    return platformdirs.user_config_path("greenroom", appauthor=False) / "secrets"
