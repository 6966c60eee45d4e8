"""The names by which things are stored, or travel between processes: what no renaming may change.

`python tests/support/stored_names.py` writes `tests/data/names.txt` anew. A line that is added is a new name.
A line that goes breaks what an older program stored, and its talk with a newer one on the same folder.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, get_args

import msgspec
import trio

from greenroom.actors import REQUESTS, open_greenroom
from greenroom.actors.app.open import shared_indexes
from greenroom.actors.core.audit.record import action_of, journal
from greenroom.runtime import reply_type, reply_variants
from greenroom.runtime.sharing import frames, type_registry
from greenroom.transports.ops.control import client as control

NAMES = Path(__file__).parents[1] / "data" / "names.txt"


def stored_names(registry: type_registry.TypeRegistry) -> list[str]:
    """Return a line for each name, and with it the fields that are stored or travel under it."""
    lines = [*_relay_words(), *_control_words()]
    lines += [f"error {name}" for name in frames._BY_NAME]
    lines += [f"index {index.name}" for index in shared_indexes(1)]
    lines += [f"journal {journal(ttl=1, max_bytes=None).name}"]
    lines += [f"action {action_of(request)}" for request in REQUESTS.values()]
    for (kind, name), (message, _) in registry._messages.items():
        lines.append(_line("message", f"{kind}/{name}", message))
        lines += [f"reply {kind}/{name} {variant}" for variant in _variants(message)]
    decoders: dict[str, Any] = registry._queries
    lines += [_line("query", name, decode.__self__.type) for name, decode in decoders.items()]
    return sorted(set(lines))


def _relay_words() -> list[str]:
    words = {*get_args(frames.FromAttached), *get_args(frames.FromOwner)}
    return [_line("relay", f"{word.__struct_config__.tag:02}", word) for word in words]


def _control_words() -> list[str]:
    words = (*get_args(control.Request), control.Done, control.Failed)
    return [_line("control", word.__struct_config__.tag, word) for word in words]


def _variants(message: Any) -> list[str]:
    """Return the names of the types between which a stored answer chooses, if there are several."""
    reply = reply_type(message)
    structs = [
        each for each in reply_variants(reply) if isinstance(each, type) and issubclass(each, msgspec.Struct)
    ]
    return [each.__name__ for each in structs] if len(structs) > 1 else []


def _line(what: str, name: str, struct: Any) -> str:
    fields = [field.encode_name + "?" * (not field.required) for field in msgspec.structs.fields(struct)]
    return " ".join([what, name, *(fields if struct.__struct_config__.array_like else sorted(fields))])


async def names_now(folder: Path) -> list[str]:
    """Return the names of this program, whose registry is made when a folder is opened."""
    async with open_greenroom(folder / "data", embedder="none", secrets=folder / "secrets") as runtime:
        return stored_names(runtime._process.owner_side.types)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        NAMES.write_text("\n".join(trio.run(names_now, Path(scratch))) + "\n")
