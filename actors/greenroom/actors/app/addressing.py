"""Route a client's requests: find the actor of each request, and fill in defaults."""

from __future__ import annotations

import secrets
import string
from hashlib import blake2b
from typing import Any, Final

import msgspec

from greenroom.actors.app.client.context import ClientContext
from greenroom.actors.app.requests import Route
from greenroom.actors.app.resources.kinds import ResourceReader, find_kind, scope_kind
from greenroom.actors.app.resources.listing import CompleteResource, ListResources
from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.core.auth import scopes as auth_scopes
from greenroom.actors.core.auth.corpora import CORPUS_KIND
from greenroom.actors.core.auth.namespaces import (
    agent_namespace,
    memory_address,
    tag_of_id,
    tag_of_root,
    user_namespace,
)
from greenroom.actors.core.auth.principal import Principal
from greenroom.actors.core.base.unicode_forms import compose
from greenroom.actors.core.resources.resource_uris import is_of_current_session
from greenroom.actors.core.resources.resources import ReadResource
from greenroom.actors.core.validation.strict_json import canonicalize
from greenroom.actors.knowledge.corpora.handlers.completion import CompleteNames
from greenroom.actors.memories.preferences.actor import preferences_address
from greenroom.actors.memories.recall.search_requests import MemorySearch
from greenroom.actors.memories.storage.directory import RootOfMemory
from greenroom.actors.sessions.requests import requests as sessions
from greenroom.actors.sessions.search.context_search import SearchSession
from greenroom.runtime import Address, Idempotency, Procedure, RuntimeClient

_ID_ALPHABET: Final = string.ascii_letters + string.digits


class Addressing:
    """Finds the actors of a client's requests.

    Args:
        timezone: The default time zone of words such as "yesterday"; None means the machine's time zone.
    """

    def __init__(
        self,
        runtime: RuntimeClient,
        principal: Principal,
        state: ClientContext,
        scope: str,
        timezone: str | None,
    ) -> None:
        self._runtime = runtime
        self._principal = principal
        self._client_state = state
        self._scope = scope
        self._timezone = timezone
        self._memory = memory_address(agent_namespace(principal))
        self._namespace = user_namespace(principal)
        self._resources = auth_scopes.resources_of(principal.scopes)

    def addressed(self, request: Any, route: Route) -> tuple[Address, Any, Idempotency | None]:
        """Return a request's actor, the completed request, and its idempotency data."""
        idempotency = None
        if route.is_write and request.idempotency_key is not None:
            # The arguments as the caller sent them: a session id that is generated below does not count.
            arguments = msgspec.structs.replace(request, idempotency_key=None)
            scope = f"{self._scope} {route.tool}"
            idempotency = Idempotency(scope, compose(request.idempotency_key), _fingerprint(arguments))
        if route.makes_id and request.session_id is None:
            session_id = "session_" + "".join(secrets.choice(_ID_ALPHABET) for _ in range(16))
            request = msgspec.structs.replace(request, session_id=session_id)
        if route.kind == "session":
            if request.session_id is None:
                request = self._client_state.session.fill_in(request)
            return Address("session", request.session_id), request, idempotency
        if route.kind == "agent":
            named = getattr(request, "namespace", None)
            return self._memory if named is None else memory_address(named), request, idempotency
        if route.kind == "namespace":
            namespaced = self._namespaced(request)
            namespace = getattr(namespaced, "namespace", None) or self._namespace
            return memory_address(namespace), namespaced, idempotency
        if route.kind == "preferences":
            return preferences_address(self._principal), request, idempotency
        return self.address_of_resource(request.uri), request, idempotency

    def address_of_resource(self, uri: str) -> Address:
        """Return the actor of a resource.

        Raises:
            Refusal: ``RESOURCE_NOT_FOUND``: no actor has it, for this client; ``PERMISSION_DENIED``: the
                client's scopes do not suffice.
        """
        if (scoped := scope_kind(uri)) is not None:
            self.check_resource_kind(scoped)
        found = find_kind(uri)
        if found is None:
            raise auth_errors.resource_not_found(uri)
        kind, named = found
        address = kind.address(named, self.reader())
        if address is not None:
            return address
        if is_of_current_session(uri):
            raise auth_errors.no_current_session(uri)
        raise auth_errors.denial(auth_errors.resource_not_found(uri))

    async def address_of(self, memory_id: str) -> Address:
        """Return the actor of a memory; if it is unknown, the user's own memory actor."""
        if tag_of_root(self._namespace) == tag_of_id(memory_id):
            return memory_address(self._namespace)
        root = await self._runtime.query(RootOfMemory(memory_id=memory_id), principal=self._principal)
        return memory_address(root or self._namespace)

    def in_full(self, request: Any) -> Any:
        """Return the procedure for a request, with the state of the client."""
        if isinstance(request, sessions.SearchContext):
            return SearchSession(
                session_id=self._client_state.session.resolve(request.session_id), asked=request
            )
        if isinstance(request, ReadResource):
            return self._procedure(request.uri)
        if isinstance(request, ListResources):
            return msgspec.structs.replace(request, current=self._client_state.session.latest)
        if isinstance(request, CompleteResource) and request.is_path and CORPUS_KIND in self._resources:
            corpus = request.known.get("corpus", "")
            return CompleteNames(corpus=corpus, kind="path", value=request.value)
        if isinstance(request, MemorySearch) and self._timezone is not None:
            return request.with_words_in(self._timezone)
        return request

    def check_resource_kind(self, kind: str) -> None:
        """Check that a kind of resource is open to the client."""
        if kind not in self._resources:
            raise auth_errors.scope_missing("this resource", auth_scopes.RESOURCES[kind])

    def reader(self) -> ResourceReader:
        """Return the current reader of resources."""
        state = self._client_state
        return ResourceReader(self._principal, state.session.latest, state.session.token)

    def _procedure(self, uri: str) -> Procedure[Any]:
        """Return the procedure for a resource of several actors; raises what `address_of_resource` raises."""
        self.address_of_resource(uri)
        found = find_kind(uri)
        assert found is not None, "it has an address"
        assert found[0].procedure is not None, "it takes several actors"
        return found[0].procedure(uri)

    def _namespaced(self, request: Any) -> Any:
        """Return a request with its default namespace, unless an id implies it."""
        if getattr(request, "memory_id", None) is not None or request.namespace is not None:
            return request
        filters = getattr(request, "filters", None)
        within = None if filters is None else filters.namespace
        return msgspec.structs.replace(request, namespace=within or self._namespace)


def idempotency_scope(principal: Principal) -> str:
    """Return the scope of an identity's idempotency keys: fewer rights get no old answer.

    It is a digest. It covers whether there is an API key, since a caller without a key sees more, but not
    which key or address, because a retry may use others. Stores from before scopes have this encoding, too.
    """
    everything = auth_scopes.EVERYTHING in principal.scopes
    identity = {
        "agent_id": principal.agent_id,
        "agent_type": principal.agent_type,
        "user": principal.user,
        "projects": None if principal.projects is None else sorted(principal.projects),
        "scopes": [] if everything else sorted(principal.scopes),
        **({"authenticated": True} if principal.is_authenticated else {}),
    }
    return blake2b(msgspec.json.encode(identity), digest_size=16).hexdigest()


def _fingerprint(arguments: msgspec.Struct) -> bytes:
    """Return a digest of the arguments, independent of their spelling.

    An argument that older versions lack counts only if it is present, so that their retries are recognised.
    """
    said = msgspec.json.encode(arguments)
    newer = [name for name in getattr(arguments, "newer", ()) if getattr(arguments, name) is None]
    if newer:
        members = msgspec.json.decode(said, type=dict[str, msgspec.Raw])
        said = msgspec.json.encode({name: value for name, value in members.items() if name not in newer})
    return blake2b(canonicalize(said), digest_size=16).digest()
