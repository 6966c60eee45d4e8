"""How a library's program starts the server, and tells what became of the tools. It imports no library."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from typing import Any

COMMAND, *ARGUMENTS = sys.argv[1:] or [""]
"""What starts the server."""
ENVIRONMENT = dict(os.environ)
"""Its environment, which says which tools it lists and how; clients leave out most of it by themselves."""


def stdio() -> dict[str, Any]:
    """Return what an MCP client's parameters for a server on stdio are called."""
    return {"command": COMMAND, "args": ARGUMENTS, "env": ENVIRONMENT}


def tell(name: str, schema: Mapping[str, Any], provider: str = "") -> None:
    """Print the schema that a library made of a tool's parameters."""
    sys.stdout.write(json.dumps({"tool": name, "provider": provider, "schema": schema}, default=str) + "\n")
