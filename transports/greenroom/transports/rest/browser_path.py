"""The path for browsers that come without TLS: a secret of the store.

A browser sends a cookie to every port of its host, but only below the cookie's path. So a program on another
port that does not know the path gets none.

Invariants:

- The path stands in no log, no record and no refusal: none of them repeats what stands in a request's path.
- It follows from the store's secret, so it is in no store and no backup, and is the same when a server starts
  again.
- Another path is answered as if there were nothing, in the same time.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from typing import Final

from greenroom.runtime import RuntimeClient

_PURPOSE: Final = "browsers/path"
_BYTES: Final = 18


def browser_path(runtime: RuntimeClient) -> str:
    """Return the path of a store: a slash, and 24 characters.

    Raises:
        StoreError: the runtime has no secret.
    """
    return "/" + urlsafe_b64encode(runtime.derive(_PURPOSE)[:_BYTES]).decode()
