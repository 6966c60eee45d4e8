"""Map a store's namespaces and keys reversibly to namespaces and keys of memories.

Names may be any text. A label becomes a segment; each byte that a segment cannot have becomes ``~`` and two
hexadecimal digits. Further labels share the last segment, joined by ``~-``. A key uses ``%`` in place of
``~``. A name that gets too long ends with a digest; the memory's metadata then has the full name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any, NamedTuple

Namespace = tuple[str, ...]

MOST_SEGMENTS = 8
_MAX_SEGMENT = 100
_MAX_KEY = 255
_JOINT = "~-"
_NO_KEY = "%"
_FOREIGN_TO_SEGMENTS = re.compile(r"[^A-Za-z0-9_.@+-]")
_FOREIGN_TO_KEYS = re.compile(r'[%/\\:*?"<>|\x00-\x1f\x7f-\x9f]')
_ESCAPES = {mark: re.compile(rf"(?:{mark}[0-9a-f]{{2}})+") for mark in "~%"}
_DIGEST_BYTES = 20


class Place(NamedTuple):
    """An item's place: its memory's namespace and key, and names that do not fit."""

    namespace: str
    key: str
    rest: Mapping[str, Any]  # members of the metadata that hold names that are too long


class Places:
    """The places of a store's items."""

    def __init__(self, root: str) -> None:
        self.root = root
        self._segments = MOST_SEGMENTS - root.count(":") - 1

    def of(self, namespace: Namespace, key: str) -> Place:
        """Return the place of an item."""
        segments, written = self._write(namespace), _escape(key, _FOREIGN_TO_KEYS, "%") or _NO_KEY
        short = _cut(written, _MAX_KEY, "%")
        rest: dict[str, Any] = {}
        if any("~~" in segment for segment in segments):
            rest["namespace"] = list(namespace)
        if short != written:
            rest["key"] = key
        return Place(":".join([self.root, *segments]), short, rest)

    def above(self, prefix: Namespace) -> str:
        """Return the deepest namespace that includes all items with a prefix; it may include others."""
        whole = prefix if len(prefix) < self._segments else prefix[: self._segments - 1]
        return ":".join([self.root, *self._write(whole)])

    def namespace(self, written: str) -> Namespace | None:
        """Convert a memory's namespace back to the store's; None if only the metadata has it."""
        below = written[len(self.root) + 1 :]
        if "~~" in below:
            return None
        segments = below.split(":") if below else []
        return tuple(_read(label, "~") for segment in segments for label in segment.split(_JOINT))

    def item(self, written: str, key: str, rest: Mapping[str, Any]) -> tuple[Namespace, str] | None:
        """Return an item's namespace and key at a place; None if no item is there."""
        namespace = self.namespace(written)
        if namespace is None:
            given = rest.get("namespace")
            namespace = tuple(map(str, given)) if isinstance(given, list) else ()
        name = str(rest.get("key")) if "%%" in key else _read(key.removesuffix(_NO_KEY), "%")
        try:
            place = self.of(namespace, name)
        except ValueError:
            return None
        return (namespace, name) if place[:2] == (written, key) else None

    def _write(self, namespace: Namespace) -> list[str]:
        labels = [_escape(label, _FOREIGN_TO_SEGMENTS, "~") for label in namespace]
        if len(labels) > self._segments:
            alone = self._segments - 1
            labels = [*labels[:alone], _JOINT.join(labels[alone:])]
        return [_cut(label, _MAX_SEGMENT, "~") for label in labels]


def _escape(text: str, foreign: re.Pattern[str], mark: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{text!r} holds a lone surrogate: this is no text that can be kept") from None
    return foreign.sub(lambda found: "".join(f"{mark}{byte:02x}" for byte in found[0].encode()), text)


def _read(written: str, mark: str) -> str:
    try:
        return _ESCAPES[mark].sub(lambda run: bytes.fromhex(run[0].replace(mark, "")).decode(), written)
    except UnicodeDecodeError:
        return written


def _cut(written: str, most: int, mark: str) -> str:
    if len(written) <= most:
        return written
    digest = blake2b(written.encode(), digest_size=_DIGEST_BYTES).hexdigest()
    return f"{written[: most - len(digest) - 2].rstrip(mark)}{2 * mark}{digest}"
