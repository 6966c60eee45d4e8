"""The server that the conformance suite tests: its tools and resources on Greenroom's own code.

What only answers takes the way of every tool and prompt: a struct, a door, a reply. What talks back
and what Greenroom has none of (logging) handlers of the SDK answer (`extension`). As a program this
serves over one transport until it is killed, or until its input ends.
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
from collections.abc import Callable, Mapping
from math import inf
from typing import TYPE_CHECKING, Any, Self

import msgspec
import outcome
import trio
from conformance import answers

from greenroom.actors import (
    CompletePrompt,
    CompleteResource,
    GetPrompt,
    ListPrompts,
    ListResources,
    NameCompletion,
    Prompt,
    PromptArgument,
    PromptList,
    ReadResource,
    ResourceItem,
    ResourceList,
)
from greenroom.actors.core.auth.errors import invalid, resource_not_found
from greenroom.actors.core.auth.tool_profiles import SchemaForm
from greenroom.transports import Limits, McpServer, ServerInfo, Tool, serve_stdio
from greenroom.transports.mcp.clients.open_requests import Client
from greenroom.transports.mcp.frames.calls import Call
from greenroom.transports.mcp.tools.content_blocks import Content

if TYPE_CHECKING:
    from greenroom.transports import HttpServer, WebSocketServer

PROFILE = ServerInfo(
    name="fixture",
    version="1",
    capabilities={
        "completions": {},
        "logging": {},
        "prompts": {"listChanged": False},
        "resources": {"listChanged": False, "subscribe": True},
        "tools": {"listChanged": False},
    },
)


class Nothing(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The arguments of most tools here."""


class Region(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The argument that HTTP clients repeat in a header."""

    region: str


class Person(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """The arguments of the tool whose schema is what counts."""

    name: str | None = None
    address: dict[str, Any] | None = None
    contact_method: str | None = None
    phone: str | None = None
    email: str | None = None


ARGUMENTS: Mapping[str, type[msgspec.Struct]] = {
    "test_custom_header": Region,
    "json_schema_2020_12_tool": Person,
}


class Asked(msgspec.Struct, frozen=True):
    """A call of a tool, on its way to the door."""

    tool: str
    arguments: msgspec.Struct


class FixtureTool(Tool, frozen=True, kw_only=True):
    """A tool of the fixture."""

    input_schema: Mapping[str, Any]

    def parse(self, arguments: bytes) -> Asked:
        """Return the request in a call's arguments."""
        return Asked(self.name, msgspec.json.decode(arguments, type=ARGUMENTS.get(self.name, Nothing)))

    def listing(self, schemas: SchemaForm = "plain") -> dict[str, Any]:  # noqa: ARG002
        """Return the tool's entry of ``tools/list``."""
        return {"name": self.name, "description": self.description, "inputSchema": self.input_schema}


HOLD, HELD = "hold", "held"
OURS: Mapping[str, answers.Talk] = {
    HOLD: answers.Talk("Never answers."),
    HELD: answers.Talk(f"Tells what became of the calls of {HOLD}, and whether the SDK is imported."),
}
"""Tools that the suite does not ask for."""


def tools() -> dict[str, Tool]:
    """Return the tools by name."""
    declared: dict[str, answers.Answer | answers.Talk] = {**answers.TOOLS, **answers.TALKS, **OURS}
    return {
        name: FixtureTool(
            name=name,
            title=name,
            description=tool.description,
            input_schema=tool.input_schema,
        )
        for name, tool in declared.items()
    }


class Silence:
    """Hears of resources that never change."""

    def __init__(self) -> None:
        self._uris: set[str] = set()

    def __len__(self) -> int:
        """Return how many resources it hears of."""
        return len(self._uris)

    def add(self, uri: str) -> None:
        """Hear of a resource from now on."""
        self._uris.add(uri)

    def remove(self, uri: str) -> None:
        """Hear of a resource no more."""
        self._uris.discard(uri)

    async def wait_heard(self) -> None:
        await trio.lowlevel.checkpoint()

    async def next(self) -> str:
        """Wait for a change."""
        await trio.sleep_forever()

    def __enter__(self) -> Self:
        """Return this."""
        return self

    def __exit__(self, *_error: object) -> None:
        """Hear of nothing any more."""
        self._uris.clear()


class Held(msgspec.Struct):
    """What became of calls that are never answered, and whether the SDK is imported."""

    begun: int = 0
    called_off: int = 0
    sdk: bool = False


class _Posted:
    def __init__(self, called_off: Callable[[], None]) -> None:
        self.wanted = True
        self._called_off = called_off

    def cancel(self) -> None:
        if self.wanted:
            self.wanted = False
            self._called_off()


class Counter:
    """The door of every client: who asks gets what is written in `answers`."""

    scopes = frozenset({"*"})

    def check_scope(self, request: type[Any], arguments: bytes = b"") -> None:
        """Open everything."""

    def __init__(self) -> None:
        self._held = Held()

    async def ask(
        self, request: Any, *, checked: bool = False, on_accepted: Callable[[], None] | None = None
    ) -> Any:
        """Return the reply to a request."""
        assert checked, "the tools' own parser has made it"
        await trio.lowlevel.checkpoint()
        if on_accepted is not None:
            on_accepted()
        return self._reply(request)

    def post(
        self,
        request: Any,
        done: Callable[[Any], None],
        in_task: Callable[[Callable[[], Any]], None],  # noqa: ARG002  (nothing needs one)
        *,
        on_accepted: Callable[[], None] | None = None,
        deadline: float = inf,
    ) -> _Posted:
        """Have a request answered in the loop's next round, which is before any deadline."""
        assert deadline > trio.current_time()
        if on_accepted is not None:
            on_accepted()
        if isinstance(request, Asked) and request.tool == HOLD:
            self._held.begun += 1
            return _Posted(self._called_off)
        posted = _Posted(lambda: None)

        def answer() -> None:
            if posted.wanted:
                done(outcome.capture(self._reply, request))

        trio.lowlevel.current_trio_token().run_sync_soon(answer)
        return posted

    def _called_off(self) -> None:
        self._held.called_off += 1

    def close(self) -> None:
        """Do nothing: nothing is held."""

    def subscriber(self, window: float) -> Silence:
        """Return what hears of resources."""
        assert window > 0
        return Silence()

    def _reply(self, request: Any) -> Any:
        if isinstance(request, ListResources):
            return ResourceList(resources=[_listed(each) for each in answers.RESOURCES], next_cursor=None)
        if isinstance(request, ReadResource):
            return _contents(request.uri)
        if isinstance(request, ListPrompts | GetPrompt | CompletePrompt | CompleteResource):
            return _of_prompts(request)
        if request.tool == HELD:
            return msgspec.structs.replace(self._held, sdk="mcp_types" in sys.modules)
        answer = answers.TOOLS[request.tool]
        return Content(blocks=[dict(block) for block in answer.blocks], is_error=answer.is_error)


def _listed(resource: answers.Contents) -> ResourceItem:
    return ResourceItem(
        uri=resource.uri,
        name=resource.name,
        title=resource.name,
        description=resource.description,
        last_modified=None,
    )


def _of_prompts(request: ListPrompts | GetPrompt | CompletePrompt | CompleteResource) -> Any:
    if isinstance(request, ListPrompts):
        listed = [
            Prompt(
                name=name,
                title=name,
                description=prompt.description,
                arguments=tuple(
                    PromptArgument(name=each, description=f"The {each}.", required=True)
                    for each in prompt.required
                ),
            )
            for name, prompt in answers.PROMPTS.items()
        ]
        return PromptList(prompts=listed, next_cursor=None)
    if isinstance(request, GetPrompt):
        try:
            return Content(blocks=answers.prompt_blocks(request.name, request.arguments))
        except LookupError as error:
            raise invalid("name", str(error)) from None
    known = [word for word in answers.COMPLETED if word.startswith(request.value)]
    return NameCompletion(values=known, has_more=False)


def _contents(uri: str) -> Content:
    found = answers.contents(uri)
    if found is None:
        raise resource_not_found(uri)
    held = {"text": found.text} if found.text is not None else {"blob": found.blob}
    return Content(blocks=[{"uri": found.uri, "mimeType": found.mime_type, **held}])


def extend(client: Client, call: Call) -> bool:
    """Have a handler of the SDK answer what talks back; return whether a request is such a one."""
    frame, params = call.frame, call.frame.params or {}
    asks = frame.method == "prompts/get" and params.get("name") == answers.ASKING_PROMPT
    if not asks and frame.name not in answers.TALKS and frame.method != "logging/setLevel":
        return False
    from conformance import extension  # noqa: PLC0415  (it imports the SDK, which comes when it is needed)

    return extension.side().take(client, call)


async def serve(transport: str) -> None:
    """Serve over one transport: ``stdio``, ``ws`` or ``http``."""
    counter = Counter()
    server = McpServer(tools(), lambda _name: counter, profile=PROFILE, extend=extend)
    async with server.running():
        if transport == "stdio":
            await serve_stdio(server, limits=Limits())
            return
        (listener,) = listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
        port = listener.socket.getsockname()[1]
        network: WebSocketServer | HttpServer
        if transport == "ws":
            network = _websocket_server(server, counter)
            url = f"ws://127.0.0.1:{port}/"
        else:
            network = _http_server(server, counter)
            url = f"http://127.0.0.1:{port}/mcp"
        async with trio.open_nursery() as nursery:
            await nursery.start(network.serve, listeners, trio.Event())
            sys.stdout.write(json.dumps({"url": url}) + "\n")
            sys.stdout.flush()


# A process has one transport, and imports what it needs.


def _websocket_server(server: McpServer, counter: Counter) -> WebSocketServer:
    from greenroom.transports import WebSocketOptions, WebSocketServer  # noqa: PLC0415

    return WebSocketServer(server, lambda _caller, _name: counter, WebSocketOptions(limits=Limits()))


def _http_server(server: McpServer, counter: Counter) -> HttpServer:
    from greenroom.transports import (  # noqa: PLC0415
        HttpApp,
        HttpOptions,
        HttpServer,
    )

    return HttpServer(HttpApp(server, lambda _caller, _name: counter, HttpOptions(limits=Limits())))


def main() -> None:
    """Run the program."""
    parser = argparse.ArgumentParser(description=__doc__)
    transport = parser.add_mutually_exclusive_group(required=True)
    for name in ("stdio", "ws", "http"):
        transport.add_argument(f"--{name}", dest="transport", action="store_const", const=name)
    trio.run(serve, parser.parse_args().transport)
    gc.freeze()  # to collect the SDK at the end takes longer than to serve


if __name__ == "__main__":
    main()
