"""The tables of docs/security.md, computed by the policy itself."""

from collections.abc import Callable, Mapping
from typing import Final

from greenroom.actors import Principal
from greenroom.actors.app.requests import NEEDED
from greenroom.actors.app.requests import TOOL_SCOPES as TOOLS
from greenroom.actors.core.auth import policy
from greenroom.actors.core.auth.namespaces import workflow_key
from greenroom.actors.core.auth.scopes import SCOPES, WILDCARDS, allows

YES: Final = "yes"
NO: Final = "no"

WRITER: Final = Principal(agent_id="scribe", agent_type="writer", user="ann", projects=frozenset({"p"}))
READERS: Final[Mapping[str, Principal]] = {
    "itself": WRITER,
    "another agent of its user": Principal(agent_id="clerk", user="ann", projects=frozenset({"p"})),
    "an agent of its type": Principal(
        agent_id="poet", agent_type="writer", user="bob", projects=frozenset({"p"})
    ),
    "another user of its project": Principal(agent_id="cook", user="bob", projects=frozenset({"p"})),
    "a user of another project": Principal(agent_id="spy", user="bob", projects=frozenset({"q"})),
}
"""By how they stand to the agent `scribe` of user ann and project p, all with every scope."""


def _message(visibility: policy.Visibility, project: str | None = None) -> Callable[[Principal], bool]:
    audience = policy.audience_of(WRITER, visibility)
    return lambda reader: policy.may_hear(reader, policy.ChangeLabel(audience, project))


def _memory(namespace: str, scope: policy.MemoryScope | None = None) -> Callable[[Principal], bool]:
    partition = policy.memory_partition(WRITER, namespace, scope)
    return lambda reader: policy.may_see_memory(reader, partition, namespace)


def _corpus(owner: str) -> Callable[[Principal], bool]:
    return lambda reader: policy.may_see_corpora(reader, owner)


SEES: Final[Mapping[str, Callable[[Principal], bool]]] = {
    "a session without a project": lambda reader: policy.may_see_session(reader, None),
    "a session of its project": lambda reader: policy.may_see_session(reader, "p"),
    "a session of its user's own project, `user:ann`": lambda reader: policy.may_see_session(
        reader, policy.own_project("ann")
    ),
    "a public message": _message("public"),
    "a public message in a session of its project": _message("public", "p"),
    "a private message": _message("private"),
    "a message for agents of its type": _message("agent_only"),
    "what it stores with `set_memory`": lambda reader: policy.memory_owner(reader) == WRITER.agent_id,
    "a private memory of its user": _memory("user:ann"),
    "a memory of its user shared with projects": _memory("user:ann", "shared"),
    "a public memory of its user": _memory("user:ann", "public"),
    "a memory in the namespace of its project": _memory("project:p"),
    "a memory in a shared namespace": _memory("team:kitchen"),
    "a corpus of its user": _corpus("user:ann"),
    "a corpus of its project": _corpus("project:p"),
    "a corpus of all": _corpus("all"),
    "the steps of its user in its project": lambda reader: policy.may_see_workflows(
        reader, workflow_key(WRITER, "p")
    ),
}
"""What others see of what `scribe` wrote; seeing is reading, finding, counting and hearing of changes.

Everyone who sees a corpus may also fill it."""

KEYS: Final[Mapping[str, Principal]] = {
    "ann, no project": Principal(agent_id="clerk", user="ann", key_id="k"),
    "ann, `p`": Principal(agent_id="clerk", user="ann", key_id="k", projects=frozenset({"p"})),
    "ann, `q`": Principal(agent_id="clerk", user="ann", key_id="k", projects=frozenset({"q"})),
    "bob, no project": Principal(agent_id="spy", user="bob", key_id="k"),
    "bob, `p` and `user:ann`": Principal(
        agent_id="spy", user="bob", key_id="k", projects=frozenset({"p", "user:ann"})
    ),
    "no user, no project": Principal(agent_id="spy", key_id="k"),
    "root, no project, with `admin`": Principal(
        agent_id="spy", user="root", key_id="k", scopes=frozenset({"*", "admin"})
    ),
    "the same, seeing as an agent of ann": Principal(
        agent_id="clerk", user="ann", key_id="k", scopes=frozenset({"*:read"}), seen_by="spy"
    ),
    "bob, a token without projects": Principal(
        agent_id="spy", user="bob", key_id="oauth:t", projects=frozenset()
    ),
    "bob, without a key": Principal(agent_id="spy", user="bob"),
}
"""The keys: the user of each, and the projects that it names."""

OPENS: Final[Mapping[str, Callable[[Principal], bool]]] = {
    "sessions of `user:ann`": SEES["a session of its user's own project, `user:ann`"],
    "sessions of `p`": SEES["a session of its project"],
    "ann's memories of no project": SEES["a private memory of its user"],
    "ann's memories of `p`": _memory("project:p", "private"),
    "memories of all in `p`": _memory("project:p"),
    "memories of `user:ann`": _memory("project:user~3aann"),
    "corpora of `user:ann`": _corpus("project:user~3aann"),
}
"""What a key opens."""

WRITES: Final[Mapping[str, str]] = {
    "the namespace of its user": "user:ann",
    "its own namespace": "agent:scribe",
    "the namespace of its project": "project:p",
    "a shared namespace": "team:kitchen",
}
"""Who writes into namespaces."""


def scope_rows() -> list[tuple[str, ...]]:
    """Return what each scope opens; of a wildcard, the scopes that it stands for."""
    rows: list[tuple[str, ...]] = []
    for scope in SCOPES:
        tools = [f"`{name}`" for name in TOOLS if allows({scope}, TOOLS[name])]
        others = [what for what, needed in NEEDED.items() if what not in TOOLS and allows({scope}, needed)]
        rows.append((f"`{scope}`", ", ".join(tools) or "nothing yet", ", ".join(others) or "none"))
    for wildcard in WILDCARDS:
        scopes = [f"`{scope}`" for scope in SCOPES if allows({wildcard}, scope)]
        named = "every scope" if len(scopes) == len(SCOPES) else ", ".join(scopes)
        rows.append((f"`{wildcard}`", f"as {named}", "the same"))
    return rows


def sight_rows() -> list[tuple[str, ...]]:
    """Return who sees what."""
    return [(what, *(YES if sees(each) else NO for each in READERS.values())) for what, sees in SEES.items()]


def key_rows() -> list[tuple[str, ...]]:
    """Return what each key opens."""
    return [(whose, *(YES if sees(each) else NO for sees in OPENS.values())) for whose, each in KEYS.items()]


def writing_rows() -> list[tuple[str, ...]]:
    """Return who writes where."""
    return [
        (what, *(YES if policy.may_write_namespace(each, namespace) else NO for each in READERS.values()))
        for what, namespace in WRITES.items()
    ]


TABLES: Final[Mapping[str, tuple[tuple[str, ...], Callable[[], list[tuple[str, ...]]]]]] = {
    "scopes": (("scope", "tools", "resources and prompts"), scope_rows),
    "sight": (("of what `scribe` wrote", *READERS), sight_rows),
    "keys": (("a key for", *OPENS), key_rows),
    "writing": (("writing into", *READERS), writing_rows),
}
