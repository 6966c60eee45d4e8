"""The registry of operations; each operation is declared once, beside its request.

A module that declares operations registers them when it is imported. `greenroom.actors.app.requests` imports
all of them and defines the order in lists. Scopes, routes, tools and HTTP routes derive from this registry.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal, NamedTuple, TypeVar

RouteKind = Literal["session", "agent", "namespace", "preferences"]
"""What determines the actor of a request: a session id, the agent, a namespace, or the user."""


class ToolText(NamedTuple):
    """The description of a tool for models and people.

    Models pay tokens for it in every list of tools, so it says when to use the tool and repeats nothing.

    Attributes:
        title: The tool's name for people.
        description: When a model should use this tool, and what it returns.
        overwrites: Whether it may replace or remove existing data.
        repeatable: Whether a second call with the same arguments has no further effect.
        weight: The size of its reply, in megabytes or so; 0 for a small one.
    """

    title: str
    description: str
    overwrites: bool = False
    repeatable: bool = False
    weight: int = 0


class Operation(NamedTuple):
    """An operation.

    Attributes:
        name: The name on the wire, used by its tool and its HTTP route.
        request: The type of its request.
        scope: The scope that a caller needs.
        route: What determines its actor; None if the request calls actors itself, or reads a snapshot.
        tool: The description of its tool; None if it is served only as HTTP and JSON.
        is_step: Whether a call of its tool may be recorded as a workflow step.
        after_notes: Whether pending notes of the session's work are written before it runs.
        keeps: Whether the reply is stored for a while, under the caller's name, though nothing is changed.
        writes: Whether it changes stored data; then a message takes an idempotency key.
        makes_id: Whether a request may omit the session's id, so that the server makes one.
        by_memory_id: Whether it may name a memory by id alone; the memory's actor is then looked up first.
    """

    name: str
    request: type[Any]
    scope: str
    route: RouteKind | None
    tool: ToolText | None
    is_step: bool
    after_notes: bool
    keeps: bool
    writes: bool
    makes_id: bool
    by_memory_id: bool


OPERATIONS: Final[dict[str, Operation]] = {}
"""Operations declared so far, by name."""
LISTED: Final[dict[str, Operation]] = {}
"""All operations by name; `greenroom.actors.app.requests` fills it after importing them."""

RequestType = TypeVar("RequestType", bound=type[Any])


def operation(
    name: str,
    *,
    scope: str,
    route: RouteKind | None = None,
    tool: ToolText | None = None,
    is_step: bool = True,
    after_notes: bool = False,
    keeps: bool = False,
    writes: bool | None = None,
    makes_id: bool = False,
    by_memory_id: bool = False,
) -> Callable[[RequestType], RequestType]:
    """Declare the operation of a request type; the arguments are the attributes of `Operation`.

    An operation with a scope such as ``memory:write`` writes unless ``writes`` says otherwise.

    Raises:
        ValueError: another type declared the name. The same type of a reimported module may declare it again.
    """

    def declare(request: RequestType) -> RequestType:
        known = OPERATIONS.get(name)
        if known is not None and _full_name(known.request) != _full_name(request):
            raise ValueError(
                f"{name} is declared by {_full_name(known.request)} and by {_full_name(request)}"
            )
        OPERATIONS[name] = Operation(
            name=name,
            request=request,
            scope=scope,
            route=route,
            tool=tool,
            is_step=is_step,
            after_notes=after_notes,
            keeps=keeps,
            writes=scope.endswith(":write") if writes is None else writes,
            makes_id=makes_id,
            by_memory_id=by_memory_id,
        )
        return request

    return declare


def all_operations() -> dict[str, Operation]:
    """Return all operations, by name; raise LookupError if not all are declared yet."""
    if not LISTED:
        raise LookupError("the operations are not known yet; import greenroom.actors.app.requests first")
    return LISTED


def _full_name(request: type[Any]) -> str:
    return f"{request.__module__}.{request.__qualname__}"
