"""The visibility policy, all in this module: pure functions of a principal and a value.

Every read, search, statistic and notification calls these functions and decides nothing itself. They know
neither actors nor storage.

1. A message's *audience* is fixed when it is written: ``public``, ``type:<agent type>`` or
   ``agent:<agent id>``. A principal sees a message if it belongs to this audience.
2. Messages are stored by *partition*, the pair (audience, visibility). A reader gets only its own partitions,
   so hidden messages are not even touched.
3. A session without a project is visible to everyone; a session with a project, to the project's members.
   Every user is a member of the project with the name of the user's namespace. With keys and tokens this
   project is open to that user alone, whatever projects and scopes others have.
4. A memory is owned by one user, or by one agent if it is in the agent's own namespace or there is no user. A
   private memory is visible to its owner, a shared one also to members of its projects, a public one to
   everyone. This class of visibility, its *partition*, is fixed when it is written. A key or token that is
   bound to projects sees its owner's memories of these projects and of no project.
5. Only the owner may write into a user's or an agent's namespace, and only members into a project's. Everyone
   may write into any other.
6. A corpus of documents is seen and filled by its user, by the members of its project, or by all. A corpus of
   all is renamed and dropped only by its creator or an administrator. To see the index of a code folder, a
   caller must also be allowed to read code.
7. Workflow steps are seen and recorded by their user, or by the agent if there is no user. Steps in a project
   are seen and recorded by its members.
8. The scopes of a principal limit what it may do at all; see `scopes`.
9. The author of a memory is the agent that writes it. Only administrators may name another author; if there
   are no keys, everyone may.
10. A change of a resource is published with a label; only callers who may see the resource are notified.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Literal, NamedTuple

import msgspec

from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.core.auth.namespaces import (
    AGENT,
    PROJECT,
    USER,
    agent_namespace,
    project_in,
    project_part,
    reads_as_users,
    root_of,
    segment,
    user_namespace,
)
from greenroom.actors.core.auth.principal import Principal
from greenroom.actors.core.auth.scopes import ADMIN, CODE, EVERYTHING
from greenroom.actors.core.auth.scopes import allows as allows

Visibility = Literal["public", "private", "agent_only"]
VisibilityFilter = Literal["all", "public", "private", "agent_only"]

ALL = "all"
"""The owner of public corpora."""
PUBLIC = "public"
RESERVED_SESSION_IDS = frozenset({"all", "current"})


class Partition(NamedTuple):
    """The messages of a session with one audience and one visibility, which are stored together."""

    audience: str
    visibility: Visibility


_COMMON = Partition(PUBLIC, "public")

MemoryScope = Literal["private", "shared", "public"]


class MemoryPartition(msgspec.Struct, frozen=True, array_like=True):
    """The memories of one class of visibility and one owner.

    Attributes:
        scope: Who may see it: its owner, members of the same project, everyone.
        user: The user who owns it, if a user does.
        agent: The agent that owns it, if an agent does.
        projects: The projects that it is shared with, as segments: the namespace's project, or the writer's
            projects; None: all.
    """

    scope: MemoryScope
    user: str | None = None
    agent: str | None = None
    projects: tuple[str, ...] | None = ()


class ChangeLabel(NamedTuple):
    """The label of a published change.

    Attributes:
        audience: Its subscribers must be in this audience ...
        project_id: ... and may see this project's sessions ...
        owner: ... and are this owner, or see its corpora; ``project:`` means members of any project;
            after a slash follow the projects of a memory, see `memory_projects` ...
        scope: ... and have this scope.
    """

    audience: str
    project_id: str | None = None
    owner: str | None = None
    scope: str | None = None


def audience_of(principal: Principal, visibility: Visibility) -> str:
    """Return the audience of a message that ``principal`` sends with ``visibility``."""
    if visibility == "public":
        return PUBLIC
    if visibility == "agent_only" and principal.agent_type is not None:
        return f"type:{principal.agent_type}"
    return own_audience(principal.agent_id)


def audiences(principal: Principal) -> tuple[str, ...]:
    """Return the audiences that ``principal`` belongs to, `PUBLIC` first."""
    own = (PUBLIC, own_audience(principal.agent_id))
    return own if principal.agent_type is None else (*own, f"type:{principal.agent_type}")


def may_see_message(principal: Principal, audience: str) -> bool:
    """Return whether ``principal`` may see a message of this audience."""
    return audience in audiences(principal)


def partition_of(principal: Principal, visibility: Visibility) -> Partition:
    """Return the partition of a new message of ``principal``."""
    return _COMMON if visibility == "public" else Partition(audience_of(principal, visibility), visibility)


def partitions(principal: Principal, wanted: VisibilityFilter = "all") -> tuple[Partition, ...]:
    """Return the partitions that ``principal`` may read, of one visibility or of ``all``."""
    own = own_audience(principal.agent_id)
    readable = [Partition(PUBLIC, "public"), Partition(own, "private"), Partition(own, "agent_only")]
    if principal.agent_type is not None:
        readable.append(Partition(f"type:{principal.agent_type}", "agent_only"))
    if wanted == "all":
        return tuple(readable)
    narrowed = tuple(partition for partition in readable if partition.visibility == wanted)
    if not narrowed:
        raise auth_errors.invalid("visibility_filter", f"visibility_filter: {wanted!r} is unknown")
    return narrowed


def may_see_session(principal: Principal, project_id: str | None) -> bool:
    """Return whether ``principal`` may see a session of this project (None: no project)."""
    if project_id is None:
        return True
    if project_id.startswith(USER):
        if principal.user is not None and project_id in _own_projects(principal.user):
            return True
        if principal.is_authenticated:
            return False
    return principal.projects is None or project_id in principal.projects


def memberships(principal: Principal) -> frozenset[str] | None:
    """Return a principal's projects, but not other users' own projects; None: all.

    The own project of the principal's user is included only if it is listed.
    """
    if principal.projects is None or not principal.is_authenticated:
        return principal.projects
    return frozenset(each for each in principal.projects if may_see_session(principal, each))


def own_project(user: str) -> str:
    """Return a user's own project; the user is always its member."""
    return USER + segment(user)


@lru_cache(maxsize=4_096)
def _own_projects(user: str) -> tuple[str, ...]:
    """Return the spellings of a user's own project.

    The spelling is the namespace, or has the plain name. No two users share a spelling: a plain name without
    a tilde is either its own segment or no segment.
    """
    return (own_project(user),) if "~" in user else (own_project(user), USER + user)


@lru_cache(maxsize=4_096)
def _own_segments(user: str) -> tuple[str, ...]:
    return tuple(map(segment, _own_projects(user)))


_OF_USERS = segment(USER)
"""The prefix of the segment of each user's own project."""


def own_audience(agent_id: str) -> str:
    """Return the audience of one agent."""
    return f"agent:{agent_id}"


def preferences_owner(principal: Principal) -> str:
    """Return the owner of a principal's preferences: its user, else the agent."""
    return principal.agent_id if principal.user is None else principal.user


def label_of_owner(owner: str) -> ChangeLabel:
    """Return the label of a change of data with an owner's namespace."""
    if owner.startswith(AGENT):
        agent, slash, _ = owner[len(AGENT) :].partition("/")
        return ChangeLabel(own_audience(agent), owner=owner if slash else None)
    return ChangeLabel(PUBLIC, owner=owner)


@lru_cache(maxsize=1_024)
def labels_of_memory(partition: MemoryPartition, namespace: str = "") -> tuple[ChangeLabel, ...]:
    """Return the labels of a memory's change; together they reach all its readers."""
    if partition.scope == "public":
        return (ChangeLabel(PUBLIC),)
    owners: list[str] = []
    of = memory_projects(partition, namespace)
    about = f"/{','.join(of)}" if of else ""
    if partition.agent is not None:
        owners.append(AGENT + partition.agent + about)
    elif partition.user is not None:
        owners.append(USER + segment(partition.user) + about)
    if partition.scope == "shared":
        projects = ("",) if partition.projects is None else partition.projects
        owners += [PROJECT + project for project in projects]
    return tuple(label_of_owner(owner) for owner in owners)


def may_hear(principal: Principal, label: ChangeLabel) -> bool:
    """Return whether ``principal`` may be notified of a change."""
    return (
        may_see_message(principal, label.audience)
        and may_see_session(principal, label.project_id)
        and (label.owner is None or _is_of(principal, label.owner))
        and (label.scope is None or allows(principal.scopes, label.scope))
    )


def _is_of(principal: Principal, owner: str) -> bool:
    """Return whether the owner in a label includes ``principal``."""
    if owner == PROJECT:
        return _is_member_of_any(principal)
    owner, slash, projects = owner.partition("/")
    if slash and not _is_open(principal, tuple(projects.split(","))):
        return False
    return owner == agent_namespace(principal) or may_see_corpora(principal, owner)


def check_new_session(
    principal: Principal, session_id: str, user_id: str | None, project_id: str | None
) -> None:
    """Check the claims of a caller that creates a session."""
    if session_id in RESERVED_SESSION_IDS:
        raise auth_errors.invalid(
            "session_id", f"session_id: {session_id!r} is a reserved word; choose another id"
        )
    check_user(principal, user_id)
    if project_id is not None and reads_as_users(project_id):
        raise auth_errors.invalid(
            "project_id",
            f"project_id: {project_id!r} reads like one that begins with {USER!r} and would be open to "
            f"others; write {USER!r} if you mean that, or choose another name",
        )
    if not may_see_session(principal, project_id):
        raise auth_errors.permission_denied(
            "project_id", f"project_id: you are not a member of {project_id!r}"
        )


def check_user(principal: Principal, user_id: str | None) -> None:
    """Check a ``user_id`` argument against the identity."""
    if user_id is not None and principal.user is not None and user_id != principal.user:
        raise auth_errors.permission_denied("user_id", "user_id: it must be your own; leave it out")


def check_deletes_session(principal: Principal, user_id: str | None, created_by: str) -> None:
    """Check that a caller may delete a session: its user, else its creator."""
    check_user(principal, user_id)
    if user_id is None and principal.agent_id != created_by:
        raise auth_errors.permission_denied(
            "session", f"session: it names no user, so only the agent {created_by!r} may delete it"
        )


def memory_owner(principal: Principal) -> str:
    """Return the owner of the key-value memory of ``principal``: its own agent."""
    return principal.agent_id


def agent_partition(agent_id: str) -> MemoryPartition:
    """Return the partition of an agent's own key-value memory."""
    return MemoryPartition("private", None, agent_id)


def usual_scope(namespace: str) -> MemoryScope:
    """Return the scope of a memory that is written without one.

    In a user's or an agent's namespace it is private, in any other shared.
    """
    return "private" if namespace.startswith((AGENT, USER)) else "shared"


def memory_partition(
    principal: Principal, namespace: str, scope: MemoryScope | None = None
) -> MemoryPartition:
    """Return the partition of a memory that ``principal`` writes, by default of the `usual_scope`."""
    root = root_of(namespace)
    scope = scope or usual_scope(namespace)
    user, agent = principal.user, None
    if root.startswith(AGENT) or user is None:
        user, agent = None, principal.agent_id
    return MemoryPartition(scope, user, agent, _shared_with(principal, root) if scope == "shared" else ())


def moved_partition(
    partition: MemoryPartition, principal: Principal, namespace: str, scope: MemoryScope
) -> MemoryPartition:
    """Return the partition of a memory after its owner changed the scope."""
    if scope == partition.scope:
        return partition
    if not owns_memory(principal, partition):
        raise auth_errors.permission_denied("scope", "scope: only its owner changes who may see a memory")
    projects = _shared_with(principal, root_of(namespace)) if scope == "shared" else ()
    return MemoryPartition(scope, partition.user, partition.agent, projects)


def owns_memory(principal: Principal, partition: MemoryPartition) -> bool:
    """Return whether ``principal`` owns a memory."""
    if partition.agent is not None:
        return partition.agent == principal.agent_id
    return partition.user is not None and partition.user == principal.user


def may_see_memory(principal: Principal, partition: MemoryPartition, namespace: str = "") -> bool:
    """Return whether ``principal`` may see a memory in this partition and namespace."""
    if partition.scope == "public":
        return True
    if owns_memory(principal, partition) and (
        principal.projects is None or _is_open(principal, memory_projects(partition, namespace))
    ):
        return True
    if partition.scope == "private":
        return False
    if partition.projects is None:
        return _is_member_of_any(principal)
    return any(is_member(principal, each) for each in partition.projects)


def memory_projects(partition: MemoryPartition, namespace: str) -> tuple[str, ...]:
    """Return a memory's projects, as segments: its namespace's, else the ones that share it."""
    project = project_in(namespace)
    if project is not None:
        return (project,)
    return partition.projects or ()


def is_narrowed(principal: Principal) -> bool:
    """Return whether a key or a token limits ``principal`` to some projects of its user."""
    return principal.projects is not None and principal.is_authenticated


def may_see_about(principal: Principal, namespace: str) -> bool:
    """Return whether ``principal`` may see its own memories in a namespace, judging by the name."""
    project = project_in(namespace)
    return project is None or _is_open(principal, (project,))


def _is_open(principal: Principal, projects: tuple[str, ...]) -> bool:
    """Return whether memories of these projects, or of none, are open to ``principal``, their owner."""
    if not projects or not is_narrowed(principal):
        return True
    return any(is_member(principal, each) for each in projects)


def may_write_namespace(principal: Principal, namespace: str) -> bool:
    """Return whether ``principal`` may write into a namespace, whatever it contains."""
    root = root_of(namespace)
    if root.startswith(AGENT):
        return root == agent_namespace(principal) and may_see_about(principal, namespace)
    if root.startswith(USER):
        return root == user_namespace(principal) and may_see_about(principal, namespace)
    if root.startswith(PROJECT):
        return is_member(principal, root[len(PROJECT) :])
    return True


def may_name_authors(principal: Principal) -> bool:
    """Return whether ``principal`` may name other authors; a principal without a key may."""
    return allows(principal.scopes, ADMIN)


def check_writes_namespace(principal: Principal, namespace: str) -> None:
    """Check that a caller may write into a namespace."""
    if not may_write_namespace(principal, namespace):
        raise auth_errors.permission_denied(
            "namespace",
            f"namespace: you may not write into {namespace!r}; your own are {user_namespace(principal)!r} "
            f"and {agent_namespace(principal)!r}",
            namespace=namespace,
        )


def corpora_owner(principal: Principal) -> str:
    """Return the owner of a principal's own corpora; if there is no user, `ALL`."""
    return ALL if principal.user is None else USER + segment(principal.user)


def may_see_corpora(principal: Principal, owner: str) -> bool:
    """Return whether ``principal`` may see and fill the corpora of an owner."""
    if owner == ALL:
        return True
    if owner.startswith(PROJECT):
        return is_member(principal, owner[len(PROJECT) :])
    return owner == corpora_owner(principal)


def may_see_corpus(principal: Principal, owner: str, root: str | None) -> bool:
    """Return whether ``principal`` may see a corpus; a workspace's corpus needs `CODE`."""
    return may_see_corpora(principal, owner) and (root is None or allows(principal.scopes, CODE))


def corpus_maker(principal: Principal) -> str:
    """Return a corpus's creator: the user, else an agent with a key, else `ALL`."""
    if principal.user is not None:
        return USER + segment(principal.user)
    return ALL if principal.key_id is None else agent_namespace(principal)


def may_drop_corpus(principal: Principal, owner: str, made_by: str) -> bool:
    """Return whether ``principal``, who may see a corpus, may also rename and drop it.

    The scope `EVERYTHING` counts only with a key, because without keys every caller has it.
    """
    if owner != ALL or made_by == corpus_maker(principal) or ADMIN in principal.scopes:
        return True
    return EVERYTHING in principal.scopes and principal.key_id is not None


def may_see_workflows(principal: Principal, key: str) -> bool:
    """Return whether ``principal`` may see and record the steps of the workflow actor ``key``."""
    owner, _, project = key.partition("/")
    if owner != user_namespace(principal):
        return False
    if not project or (
        principal.user is not None and project in map(project_part, _own_projects(principal.user))
    ):
        return True
    if principal.is_authenticated and project.startswith(_OF_USERS):
        return False
    return principal.projects is None or any(project_part(mine) == project for mine in principal.projects)


def workflow_label(principal: Principal, project_id: str | None) -> ChangeLabel:
    """Return the label of a change of workflow steps: it reaches the user of ``principal``."""
    if principal.user is None:
        return ChangeLabel(own_audience(principal.agent_id), project_id)
    return ChangeLabel(PUBLIC, project_id, owner=corpora_owner(principal))


def is_member(principal: Principal, project: str) -> bool:
    """Return whether ``principal`` is a member of a project, given as a segment."""
    if project.startswith(_OF_USERS):
        if principal.user is not None and project in _own_segments(principal.user):
            return True
        if principal.is_authenticated:
            return False
    return principal.projects is None or any(segment(mine) == project for mine in principal.projects)


def _is_member_of_any(principal: Principal) -> bool:
    mine = memberships(principal)
    return mine is None or len(mine) > 0


def _shared_with(principal: Principal, root: str) -> tuple[str, ...] | None:
    if root.startswith(PROJECT):
        return (root[len(PROJECT) :],)
    mine = memberships(principal)
    return None if mine is None else tuple(sorted(map(segment, mine)))
