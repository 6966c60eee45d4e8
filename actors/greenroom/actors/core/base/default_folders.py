"""The default folders of this program's files, by the conventions of each system.

Linux has separate folders for data, configuration and state; macOS has one for all of them.
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


def default_data_folder() -> Path:
    """Return the folder of the user's store.

    A store needs a folder of its own. If a system has one folder for all files of a program, the store's
    folder is below it, unless an older version left a store in that folder itself.
    """
    folder = _folders().user_data_path
    is_shared = folder == _folders().user_config_path
    return folder / "data" if is_shared and not (folder / DATA_FILE).exists() else folder


def default_models_folder() -> Path:
    """Return the folder of installed models: from the environment, or in the user's data folder."""
    named = os.environ.get(MODELS_VARIABLE)
    return Path(named).expanduser() if named else _folders().user_data_path / MODELS_FOLDER


def default_secrets_folder() -> Path:
    """Return the folder of secrets, in the configuration folder, apart from the data."""
    return _folders().user_config_path / "secrets"


def default_config_file() -> Path:
    """Return the default configuration file."""
    return _folders().user_config_path / "config.toml"


def default_state_folder(of: str) -> Path:
    """Return the folder where a part, such as ``hooks``, keeps its state between runs."""
    return _folders().user_state_path / of
