"""Resolve the settings in force: flags, the environment, the configuration file, defaults.

Flags override the environment, the environment overrides the file, and the file overrides the defaults.
A whole list comes from one source: lists are never joined. An empty environment variable counts as absent, so
that a container may pass on a variable that is not set.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from greenroom.actors.core.base.default_folders import default_config_file
from greenroom.runtime.base.arguments import did_you_mean
from greenroom.transports.base.config.parsers import KeyLocation, Model, folder
from greenroom.transports.base.config.settings import (
    API_KEY_VARIABLE,
    CONFIG_VARIABLE,
    EMBEDDER_KEY_VARIABLE,
    PASSPHRASE_VARIABLE,
    PASSPORT_SECRET_VARIABLE,
    PREFIX,
    Settings,
    all_settings,
    flag,
    variable,
)
from greenroom.transports.base.errors import InvalidSecretValueError, InvalidValueError

CONFIG_LIMIT: Final = 1 << 20  # bytes; a configuration file is a page of text


class SettingsError(Exception):
    """A flag, an environment variable or the configuration file has an invalid value.

    The message names the source, the value and what is allowed.
    """


@dataclass(frozen=True)
class Source:
    """The source of a value in force.

    Attributes:
        place: The flag, the variable or the path of the file; empty for a default.
    """

    kind: Literal["flag", "env", "file", "default"]
    place: str = ""

    def __str__(self) -> str:
        return f"{self.kind} {self.place}".rstrip()


@dataclass(frozen=True)
class Resolved:
    """The settings in force, and the source of each.

    Attributes:
        config: The configuration file that was read, if any.
        strangers: Environment variables with our prefix that are not settings: probably misspelt.
    """

    settings: Settings
    sources: Mapping[str, Source]
    config: Path | None
    strangers: tuple[str, ...]


def resolve(
    flags: Mapping[str, object],
    environment: Mapping[str, str],
    *,
    default_file: Callable[[], Path] = default_config_file,
) -> Resolved:
    """Resolve the value of every setting, and its source.

    Args:
        flags: The flags by field name, also ``config``; None stands for a flag that was not given.
        environment: The process's environment variables.
        default_file: Returns the path of the file if neither a flag nor a variable names it.

    Raises:
        SettingsError: A value is invalid, or the file cannot be read.
    """
    file, document = _find_document(flags.get("config"), environment, default_file)
    values: dict[str, Any] = {}
    sources: dict[str, Source] = {}
    for key, setting in all_settings().items():
        raw, source = _choose(key, flags, environment, document, file)
        if source.kind == "default":
            sources[key] = source
            continue
        try:
            value = setting.reader(raw)
        except InvalidSecretValueError as error:
            raise SettingsError(f"{_where(key, source)} cannot be read: {error}") from None
        except InvalidValueError as error:
            raise SettingsError(f"{_where(key, source)} is {_clip(raw)}, but {error}") from None
        # A path in the file is relative to the file, not to the working directory.
        base = file.parent if file and source.kind == "file" else Path()
        if isinstance(value, Path):
            value = _absolute(base / value)
        elif isinstance(value, Model):
            value = Model(_absolute(base / value.path))
        elif isinstance(value, KeyLocation) and value.kind == "file":
            value = KeyLocation(value.kind, str(_absolute(base / value.name)))
        values[key], sources[key] = value, source
    known = {
        CONFIG_VARIABLE,
        API_KEY_VARIABLE,
        EMBEDDER_KEY_VARIABLE,
        PASSPORT_SECRET_VARIABLE,
        PASSPHRASE_VARIABLE,
        *map(variable, all_settings()),
    }
    strangers = tuple(sorted(each for each in environment if each.startswith(PREFIX) and each not in known))
    return Resolved(Settings(**values), sources, file, strangers)


def _choose(
    key: str,
    flags: Mapping[str, object],
    environment: Mapping[str, str],
    document: Mapping[str, object],
    file: Path | None,
) -> tuple[object, Source]:
    if flags.get(key) is not None:
        return flags[key], Source("flag", flag(key))
    if environment.get(variable(key)):
        return environment[variable(key)], Source("env", variable(key))
    if key in document:
        return document[key], Source("file", str(file))
    return None, Source("default")


def _find_document(
    named_by_flag: object, environment: Mapping[str, str], default_file: Callable[[], Path]
) -> tuple[Path | None, Mapping[str, object]]:
    """Return the configuration file and its content; a named file must exist."""
    if named_by_flag is not None:
        source, named = "--config", str(named_by_flag)
    else:
        source, named = CONFIG_VARIABLE, environment.get(CONFIG_VARIABLE, "")
    if not named and named_by_flag is None:
        file = default_file()
        if not file.is_file():
            return None, {}
        source = "the configuration file"
    else:
        try:
            file = _absolute(folder(named))
        except InvalidValueError:
            raise SettingsError(f"{source} is {_clip(named)}, but the path of a file is allowed") from None
    return file, _read_document(source, file)


def _read_document(source: str, file: Path) -> Mapping[str, object]:
    import tomllib  # noqa: PLC0415 - costs 15 ms, and most users have no such file

    try:
        with file.open("rb") as stream:
            content = stream.read(CONFIG_LIMIT + 1)
    except OSError as error:
        raise SettingsError(f"{source} {str(file)!r} cannot be read: {error.strerror}") from None
    if len(content) > CONFIG_LIMIT:
        raise SettingsError(f"{source} {str(file)!r} is larger than {CONFIG_LIMIT:,} bytes")
    try:
        document = tomllib.loads(content.decode())
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise SettingsError(f"{source} {str(file)!r} is not TOML: {error}") from None
    for key in document:
        if key not in all_settings():
            raise SettingsError(
                f"{file}: there is no setting {_clip(key)}{did_you_mean(key, all_settings())}"
            )
    return document


def _absolute(path: Path) -> Path:
    return Path(os.path.abspath(path))  # noqa: PTH100 - Path.absolute keeps "..", resolve follows links


def _where(key: str, source: Source) -> str:
    return f"{key} in {source.place}" if source.kind == "file" else source.place


def _clip(value: object, longest: int = 80) -> str:
    text = repr(value)
    return text if len(text) <= longest else text[: longest - 1] + "…"
