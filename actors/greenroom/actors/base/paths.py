"""Default paths of this program's files."""

from __future__ import annotations

from pathlib import Path

import platformdirs


def default_secrets() -> Path:
    """The platform's folder for what is configured, which the data are not in."""
    return platformdirs.user_config_path("greenroom", appauthor=False) / "secrets"
