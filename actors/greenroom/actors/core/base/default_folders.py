"""Where this program's files lie unless somebody says otherwise, by the customs of each system.

Linux has folders for data, for configuration and for states; macOS has one for all of them.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import platformdirs

from greenroom.runtime.lmdb.files import DATA_FILE, MODELS_FOLDER

MODELS_VARIABLE: Final = "GREENROOM_MODELS"


def _folders() -> platformdirs.PlatformDirs:
    return platformdirs.PlatformDirs("greenroom", appauthor=False)


def default_data() -> Path:
    """The folder of the user's store.

    It must be alone in its folder, so where a system has one folder for all that a program keeps, the store's
    is within that; unless a store is in that folder itself, where older versions had it.
    """
    kept = _folders().user_data_path
    is_shared = kept == _folders().user_config_path
    return kept / "data" if is_shared and not (kept / DATA_FILE).exists() else kept


def default_models() -> Path:
    """The folder of installed models: that of the environment, or one among the user's data."""
    named = os.environ.get(MODELS_VARIABLE)
    return Path(named).expanduser() if named else _folders().user_data_path / MODELS_FOLDER


def default_secrets() -> Path:
    """The folder of secrets, among what is configured, which the data are not in."""
    return _folders().user_config_path / "secrets"


def default_config() -> Path:
    """The configuration file that is read when nobody names one."""
    return _folders().user_config_path / "config.toml"


def default_states(of: str) -> Path:
    """The folder of what a part of the program notes between its runs.

    Args:
        of: The part, such as ``hooks``.
    """
    return _folders().user_state_path / of
