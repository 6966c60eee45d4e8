"""The commands that remedies name, with the flags with which the doctor was called."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from typing import Final

import msgspec

from greenroom.actors.core.base.default_folders import default_config_file
from greenroom.transports.base.config.load import Resolved
from greenroom.transports.base.config.parsers import boolean
from greenroom.transports.base.config.settings import CONFIG_VARIABLE, all_settings, flag
from greenroom.transports.ops.cli.catalogue import COMMANDS
from greenroom.transports.ops.cli.doctor.finding import Finding

_NAMES: Final = "|".join(sorted(map(re.escape, COMMANDS), key=len, reverse=True))
_COMMAND: Final = re.compile(rf"(?<![\w/])greenroom (?P<name>{_NAMES})(?=[\s`;,.)]|$)")


def with_flags(finding: Finding, resolved: Resolved) -> Finding:
    """Let each command in a remedy work on the folder that the doctor looked at."""
    if finding.remedy is None:
        return finding
    remedy = _COMMAND.sub(
        lambda found: " ".join([found[0], *_flags(found["name"], resolved)]), finding.remedy
    )
    return msgspec.structs.replace(finding, remedy=remedy)


def _flags(name: str, resolved: Resolved) -> Iterator[str]:
    """Yield the flags that were given to the doctor and that another command takes, too."""
    command = COMMANDS[name]
    for key, setting in all_settings().items():
        is_taken = command.every_setting or key in command.settings or (command.shared and setting.everywhere)
        if not is_taken or resolved.sources[key].kind != "flag":
            continue
        value = getattr(resolved.settings, key)
        if setting.reader is boolean:
            yield flag(key)
            continue
        for each in value if setting.reader.repeatable else [setting.reader.show(value)]:
            yield f"{flag(key)} {shlex.quote(str(each))}"
    if resolved.config not in {None, default_config_file()} and CONFIG_VARIABLE not in os.environ:
        yield f"--config {shlex.quote(str(resolved.config))}"
