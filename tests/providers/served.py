"""How a library's program starts the servers, and tells what became of the tools. It imports no library."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from typing import Any

ENVIRONMENT = dict(os.environ)
"""The servers' environment, which says how tools are listed; clients leave out most of it by themselves."""


def servers() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each profile with what an MCP client's parameters are for a server of it on stdio."""
    command, *profiles = sys.argv[1:]
    for profile in profiles:
        yield profile, {"command": command, "args": ["serve", "--tools", profile], "env": ENVIRONMENT}


def tell(profile: str, name: str, schema: Mapping[str, Any], provider: str = "") -> None:
    """Print the schema that a library made of a tool's parameters."""
    made = {"tool": name, "profile": profile, "provider": provider, "schema": schema}
    sys.stdout.write(json.dumps(made, default=str) + "\n")
