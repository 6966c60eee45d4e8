"""Which tools a local user is shown."""

from __future__ import annotations

from greenroom.actors import REQUESTS
from greenroom.actors import _scopes as scopes

LISTED = {name for name in REQUESTS if scopes.TOOLS[name] not in {scopes.ADMIN, scopes.AUDIT}}
"""The tools of administration are listed to those alone who hold their scopes by name."""
