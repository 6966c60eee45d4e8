"""Who may see what: the one place, as pure functions of a principal and a value.

Every read, search, statistic and notification asks these functions and decides
nothing itself. They know neither actors nor storage.

1. A message's *audience* is fixed when it is written: ``public``, ``type:<agent type>`` or
   ``agent:<agent id>``. A principal sees it when the audience is among its own.
2. A *shelf* is the pair (audience, visibility). Messages lie on shelves and a reader is
   handed its own shelves only, so what is hidden is not even touched.
3. A session without a project is seen by everyone, one with a project by its members.
4. A memory belongs to one agent.
5. A change of a resource is published with a label that says who may hear of it: those who may see it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from greenroom.actors import _refusals

if TYPE_CHECKING:
    from greenroom.actors._principal import Principal

Visibility = Literal["public", "private", "agent_only"]
VisibilityFilter = Literal["all", "public", "private", "agent_only"]

PUBLIC = "public"
RESERVED_SESSION_IDS = frozenset({"all", "current"})


class Shelf(NamedTuple):
    """Where messages of one audience and one visibility lie."""

    audience: str
    visibility: Visibility


_COMMON = Shelf(PUBLIC, "public")


class Heard(NamedTuple):
    """Who may hear of a change: an audience, among those who may see a session of this project."""

    audience: str
    project_id: str | None = None


def audience_of(principal: Principal, visibility: Visibility) -> str:
    """Return who may see a message that ``principal`` sends with ``visibility``."""
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
    """Return whether ``principal`` may know of a message of this audience."""
    return audience in audiences(principal)


def shelf_of(principal: Principal, visibility: Visibility) -> Shelf:
    """Return the shelf on which a message of ``principal`` goes."""
    return _COMMON if visibility == "public" else Shelf(audience_of(principal, visibility), visibility)


def shelves(principal: Principal, wanted: VisibilityFilter = "all") -> tuple[Shelf, ...]:
    """Return the shelves that ``principal`` may read, narrowed to one visibility unless ``all`` is wanted.

    Raises:
        Refusal: ``VALIDATION_ERROR`` for an unknown filter: never data.
    """
    own = own_audience(principal.agent_id)
    readable = [Shelf(PUBLIC, "public"), Shelf(own, "private"), Shelf(own, "agent_only")]
    if principal.agent_type is not None:
        readable.append(Shelf(f"type:{principal.agent_type}", "agent_only"))
    if wanted == "all":
        return tuple(readable)
    narrowed = tuple(shelf for shelf in readable if shelf.visibility == wanted)
    if not narrowed:
        raise _refusals.invalid("visibility_filter", f"visibility_filter: {wanted!r} is unknown")
    return narrowed


def may_see_session(principal: Principal, project_id: str | None) -> bool:
    """Return whether ``principal`` may know of a session of this project (None: of no project)."""
    return project_id is None or principal.projects is None or project_id in principal.projects


def own_audience(agent_id: str) -> str:
    """Return the audience that is one agent alone."""
    return f"agent:{agent_id}"


def hears(principal: Principal, label: Heard) -> bool:
    """Return whether ``principal`` may hear of a change."""
    return may_see_message(principal, label.audience) and may_see_session(principal, label.project_id)


def check_new_session(
    principal: Principal, session_id: str, user_id: str | None, project_id: str | None
) -> None:
    """Check what a caller claims for a session that it creates.

    Raises:
        Refusal: ``VALIDATION_ERROR`` for a reserved id, ``PERMISSION_DENIED`` for another
            user or for a project that the caller is no member of.
    """
    if session_id in RESERVED_SESSION_IDS:
        raise _refusals.invalid(
            "session_id", f"session_id: {session_id!r} is a reserved word; choose another id"
        )
    check_user(principal, user_id)
    if not may_see_session(principal, project_id):
        raise _refusals.permission_denied("project_id", f"project_id: you are no member of {project_id!r}")


def check_user(principal: Principal, user_id: str | None) -> None:
    """Check a ``user_id`` argument against the identity.

    Raises:
        Refusal: ``PERMISSION_DENIED`` when the principal has a user and it is another one.
    """
    if user_id is not None and principal.user is not None and user_id != principal.user:
        raise _refusals.permission_denied("user_id", "user_id: it must be your own; leave it out")


def memory_owner(principal: Principal) -> str:
    """Return whose memory ``principal`` reads and writes: its own, never another's."""
    return principal.agent_id
