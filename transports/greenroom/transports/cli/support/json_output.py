"""Results of commands as JSON, for programs."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from greenroom.transports.ops.cli.output import say


def say_json(value: object) -> None:
    """Print a value as JSON in ASCII, so that nothing in it commands a terminal that shows it."""
    say(json.dumps(msgspec.to_builtins(value, enc_hook=_builtin), indent=2))


def _builtin(value: object) -> Any:
    return json.loads(bytes(value)) if isinstance(value, msgspec.Raw) else str(value)
