"""A whole server in this process, over WebSocket and HTTP, which lets in whoever has a key."""

from __future__ import annotations

from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import trio
from support.agents import House
from support.https import PATIENT, Guest, Pair
from support.https import Listener as HttpListener
from support.websockets import Listener, Peer
from trio.testing import memory_stream_pair, wait_all_tasks_blocked

from greenroom.actors import (
    Agent,
    ApiKeyMade,
    CreateApiKey,
    KeyCache,
    Ledger,
    PassportOptions,
    Reach,
    RevokeApiKey,
    open_key_cache,
    open_link,
)
from greenroom.actors.core.audit.actor import record_action
from greenroom.transports import (
    TOOLS,
    BrowserSessions,
    Caller,
    HttpApp,
    HttpOptions,
    HttpServer,
    Limits,
    McpServer,
    WebSocketOptions,
    WebSocketServer,
    browser_endpoints,
)
from greenroom.transports.base.config.settings import Settings
from greenroom.transports.base.observability.snapshot import ObservedServer
from greenroom.transports.ops.cli.support.authentication import Authentication

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from greenroom.transports.base.observability.meter import RequestMeter


BASE_URL = "http://localhost:8080"


async def create_key(at: House, *scopes: str, **options: Any) -> ApiKeyMade:
    """Have an administrator make a key."""
    request = CreateApiKey(name="n", scopes=list(scopes or ("*",)), **options)
    return await administrator(at).ask(request)


async def revoke_key(at: House, key: ApiKeyMade) -> None:
    await administrator(at).ask(RevokeApiKey(key_id=key.key.key_id))


def administrator(at: House) -> Agent:
    return at.agent("root", user="owner", scopes=frozenset({"admin"}))


class Premises:
    """A server and whoever comes.

    Attributes:
        at: The runtime.
        cache: The keys as the server knows them.
        admitting: Who is let in.
        browsers: Those that have logged in.
        meter: Counts requests.
        observed: What is told of the server.
        stop: Set it to end the server gracefully.
    """

    def __init__(self, at: House, cache: KeyCache, admitting: Authentication) -> None:
        self.at = at
        self.cache = cache
        self.admitting = admitting
        self.websockets, self.https = Listener(), HttpListener()
        self.app: HttpApp
        self.browsers: BrowserSessions
        self.meter: RequestMeter
        self.observed: ObservedServer
        self.stop = trio.Event()

    async def peer(self) -> Peer:
        """Let a WebSocket client come, which has not shaken hands."""
        ours, theirs = memory_stream_pair()
        await self.websockets.arrivals.send(theirs)
        return Peer(ours)

    async def guest(self, pair: Pair = memory_stream_pair) -> Guest:
        """Let an HTTP client come."""
        ours, theirs = pair()
        await self.https.arrivals.send(theirs)
        return Guest(ours)

    async def websocket(self, key: ApiKeyMade | None = None, **headers: str | None) -> Peer:
        """Return a WebSocket client that has come in with a key."""
        shown = bearer(key) | headers
        return await (await (await self.peer()).open("/", **shown)).initialize()

    async def session(self, key: ApiKeyMade | None = None, **headers: Any) -> Guest:
        """Return an HTTP client in a session of its own that has come in with a key."""
        return await (await self.guest()).initialize(**bearer(key), **headers)

    async def settled(self) -> None:
        """Wait until everybody has heard of what has changed."""
        await wait_all_tasks_blocked(0.001)


def bearer(key: ApiKeyMade | None) -> dict[str, Any]:
    """Return the header that shows a key."""
    return {} if key is None else {"authorization": f"Bearer {key.api_key}"}


@asynccontextmanager
async def premises(
    at: House,
    *,
    required: bool = False,
    tokens: Any = None,
    connections: int = 4096,
    reach: Reach | None = None,
    path: str | None = None,
    savings: Ledger | None = None,
    **settings: Any,
) -> AsyncIterator[Premises]:
    """Serve the tools over WebSocket and HTTP on streams in memory.

    Browsers come as over TLS unless there is a secret ``path`` for those that come without.
    """
    chosen = Settings(user="owner", **settings)
    async with open_key_cache(at.runtime, required=required, clock=at.clock) as cache:
        here = Premises(
            at, cache, Authentication(chosen, cache, tokens, heard=partial(record_action, at.runtime))
        )

        def agent_for(caller: Caller, name: str) -> Agent:
            principal = here.admitting.principal(name, caller)
            passports = PassportOptions(base_url=BASE_URL)
            quota = here.admitting.quota(caller)
            return Agent(
                at.runtime,
                principal,
                passports=passports,
                quota=quota,
                reach=reach,
                server=here.observed,
                savings=savings,
                is_person=caller.is_person,
            )

        server = McpServer(
            TOOLS,
            lambda name: agent_for(Caller(), name),
            profiles=chosen.tools,
            schemas=chosen.schemas,
            request_timeout=chosen.request_timeout,
        )
        here.meter = server.meter
        here.observed = ObservedServer(server.meter, at.runtime)
        here.observed.reporter.add_clients(server.connected.list_clients)
        authenticator = here.admitting.authenticator
        websockets = WebSocketServer(
            server,
            agent_for,
            WebSocketOptions(limits=Limits(), authenticator=authenticator, connections=connections),
        )
        here.browsers = BrowserSessions(
            authenticator, here.admitting.owner(), partial(record_action, at.runtime)
        )
        here.observed.reporter.add_clients(here.browsers.connected, here.browsers.end_by_id)
        browsers = browser_endpoints(
            server, agent_for, authenticator, here.browsers, limits=Limits(), path=path
        )
        here.app = HttpApp(
            server,
            agent_for,
            HttpOptions(
                limits=Limits(),
                authenticator=authenticator,
                routes={"/metrics": figures},
                endpoints=browsers,
                open_link=partial(
                    open_link, at.runtime, options=PassportOptions(), is_valid=authenticator.is_valid
                ),
            ),
        )
        https = HttpServer(here.app, timeouts=PATIENT, connections=connections)
        async with server.running(), trio.open_nursery() as nursery:
            await nursery.start(websockets.serve, [here.websockets], here.stop)
            await nursery.start(https.serve, [here.https], here.stop)
            yield here
            here.stop.set()


async def figures(_scope: Any, _receive: Any, send: Any) -> None:
    """Answer a scrape."""
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"42"})
