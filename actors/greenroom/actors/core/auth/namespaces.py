"""Names of namespaces: pure functions of text.

A namespace is 2 to 8 segments joined by a colon, such as ``user:alice:preferences``. The *root*, its first
two segments, names the owner, and one actor has everything below one root. A memory's UUID begins with a
48-bit tag of the root, so the id alone leads to the actor.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from hashlib import blake2b

import msgspec

from greenroom.actors.core.auth.principal import Principal
from greenroom.actors.core.git.project_names import DIGEST_BYTES
from greenroom.runtime import Address

KIND = "memory"
AGENT = "agent:"
USER = "user:"
PROJECT = "project:"
RESERVED = (AGENT, USER, PROJECT)
"""The prefixes of roots with an owner; all other roots are public."""

ROOT_TAG_BYTES = 6
_MAX_SEGMENT = 100
MAX_ADDRESS = 200
_ROOT_SEGMENTS = 2
_DIGEST_CHARACTERS = 32
_MAX_PART = 90
"""A part of this length and the longest owner's name fit into an actor's key."""
_AGENT_ID = re.compile(r"[A-Za-z0-9_.-]{1,100}")
_ESCAPED = re.compile(r"(?:~[0-9a-f]{2})+")
_FOREIGN = re.compile(r"[^A-Za-z0-9_.@+-]")
OF_A_FOLDER = re.compile(rf".*-[0-9a-f]{{{2 * DIGEST_BYTES}}}")
"""The form that `project_of_path` makes. No other segment has it."""


def is_near(namespace: str, *projects: str) -> bool:
    """Return whether a namespace does not belong to another project, judged by its name.

    ``projects`` are the ids of the project: the present one, and older ones.
    """
    _, _, *below = namespace.split(":")
    own = {segment(each) for each in projects if each}
    return not below or below[0] in own or not OF_A_FOLDER.fullmatch(below[0])


def root_of(namespace: str) -> str:
    """Return the first two segments."""
    return ":".join(namespace.split(":", _ROOT_SEGMENTS)[:_ROOT_SEGMENTS])


def find_imitated(namespace: str) -> str | None:
    """Return the reserved prefix that a namespace imitates, such as ``user:``; None for others.

    Names are compared byte for byte, so an imitation is public, whatever a reader takes it for. Segments are
    ASCII, so only the case of letters can mislead.
    """
    first = namespace.split(":", 1)[0] + ":"
    plain = first.lower()
    return plain if plain != first and plain in RESERVED else None


def reads_as_users(project_id: str) -> bool:
    """Return whether a project imitates a user's own project, `USER` and a name.

    Project names are not ASCII, so letters of other widths and invisible characters can mislead, too.
    """
    plain = unicodedata.normalize("NFKC", project_id)
    seen = "".join(each for each in plain if each.isprintable() and not each.isspace()).casefold()
    return seen.startswith(USER) and not project_id.startswith(USER)


def is_below(namespace: str, prefix: str) -> bool:
    """Return whether a namespace is ``prefix`` or below it: ``user:alice`` is not below ``user:al``."""
    return namespace == prefix or namespace.startswith(prefix + ":")


def below_root(prefix: str | None) -> str | None:
    """Return leading segments if they contain at least a whole root; else None."""
    return None if prefix is None or ":" not in prefix else prefix


@lru_cache(maxsize=4_096)
def segment(name: str) -> str:
    """Encode any name as a segment; different names become different segments.

    Characters that a segment cannot contain become ``~`` and two hexadecimal digits for each byte. A long
    name ends with a digest.
    """
    written = _FOREIGN.sub(lambda found: "".join(f"~{byte:02x}" for byte in found[0].encode()), name)
    if 0 < len(written) <= _MAX_SEGMENT:
        return written
    return f"{written[: _MAX_SEGMENT - _DIGEST_CHARACTERS - 2]}~~{_digest(name)}"


@lru_cache(maxsize=4_096)
def project_in(namespace: str) -> str | None:
    """Return the project that a namespace names, as a segment; else None.

    A project's namespace contains the name; a user's or an agent's may contain a folder's project.
    """
    if namespace.startswith(PROJECT):
        return root_of(namespace)[len(PROJECT) :]
    if not namespace.startswith((USER, AGENT)):
        return None
    _, _, *below = namespace.split(":")
    return below[0] if below and OF_A_FOLDER.fullmatch(below[0]) else None


def agent_namespace(principal: Principal) -> str:
    """Return the agent's own namespace."""
    return AGENT + principal.agent_id


def user_namespace(principal: Principal) -> str:
    """Return the user's own namespace; if there is no user, the agent's."""
    return agent_namespace(principal) if principal.user is None else USER + segment(principal.user)


def project_part(project_id: str | None) -> str:
    """Encode a project for an actor's key and a URI; empty for none."""
    if project_id is None:
        return ""
    written = segment(project_id)
    return written if len(written) <= _MAX_PART else _digest(project_id)


def workflow_key(principal: Principal, project: str) -> str:
    """Return the key of a principal's workflow actor in a project (a `project_part`)."""
    return f"{user_namespace(principal)}/{project}"


def thread_key(principal: Principal, thread_id: str) -> str:
    """Return the key of the actor of one thread of the principal's user."""
    written = segment(thread_id)
    if len(written) > _MAX_PART:
        written = f"~~{_digest(thread_id)}"  # no segment looks like this
    return f"{user_namespace(principal)}/{written}"


def owner_of(namespace: str, otherwise: Principal) -> Principal:
    """Return a namespace's owner as a principal; ``otherwise`` for public and project namespaces."""
    first, name = root_of(namespace).split(":")
    if first + ":" == USER:
        return msgspec.structs.replace(otherwise, user=name_of_segment(name))
    if first + ":" == AGENT and _AGENT_ID.fullmatch(name):
        return msgspec.structs.replace(otherwise, agent_id=name)
    return otherwise


def name_of_segment(written: str) -> str:
    """Decode a segment; return a malformed one unchanged."""
    try:
        return _ESCAPED.sub(lambda run: bytes.fromhex(run[0].replace("~", "")).decode(), written)
    except UnicodeDecodeError:
        return written


@lru_cache(maxsize=4_096)
def memory_address(namespace: str) -> Address:
    """Return the address of a namespace's actor; an agent's key is the agent's id alone."""
    root = root_of(namespace)
    if root.startswith(AGENT):
        return Address(KIND, root[len(AGENT) :])
    if len(root) > MAX_ADDRESS:
        root = f"{root[: MAX_ADDRESS - _DIGEST_CHARACTERS - 1]}~{_digest(root)}"
    return Address(KIND, root)


def root_at(key: str) -> str:
    """Return the namespace root of an actor's key; for long roots only a digest."""
    return key if ":" in key else AGENT + key


def tag_of_root(root: str) -> bytes:
    """Return the tag of a root in memory ids."""
    return blake2b(root.encode(), digest_size=ROOT_TAG_BYTES, person=b"greenroom root").digest()


def tag_of_id(memory_id: str) -> bytes:
    """Return the tag of the root in a memory id."""
    return bytes.fromhex(memory_id[:8] + memory_id[9:13])


def _digest(name: str) -> str:
    return blake2b(name.encode(), digest_size=_DIGEST_CHARACTERS // 2).hexdigest()
