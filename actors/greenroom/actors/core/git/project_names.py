"""Names of the projects of folders."""

from __future__ import annotations

import re
from hashlib import blake2b
from typing import Final

_NO_PROJECT: Final = re.compile(r"[^A-Za-z0-9_.-]+")
_MAX_SLUG: Final = 60
DIGEST_BYTES: Final = 4


def project_of_path(path: str) -> str:
    """Return the project of a path: the folder's name and digits that distinguish it."""
    plain = path.replace("\\", "/").rstrip("/") or "/"
    name = _NO_PROJECT.sub("-", plain.rpartition("/")[2]).strip("-.")[:_MAX_SLUG] or "workspace"
    digest = blake2b(plain.encode(errors="surrogatepass"), digest_size=DIGEST_BYTES).hexdigest()
    return f"{name}-{digest}"
