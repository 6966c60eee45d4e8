"""Default paths of this program's files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import platformdirs

MODELS_VARIABLE: Final = "GREENROOM_MODELS"


def default_models() -> Path:
    """The folder of installed models: that of the environment, or one among the user's data."""
    named = os.environ.get(MODELS_VARIABLE)
    return (
        Path(named).expanduser()
        if named
        else platformdirs.user_data_path("greenroom", appauthor=False) / "models"
    )


def default_secrets() -> Path:
    """The platform's folder for what is configured, which the data are not in."""
    return platformdirs.user_config_path("greenroom", appauthor=False) / "secrets"
