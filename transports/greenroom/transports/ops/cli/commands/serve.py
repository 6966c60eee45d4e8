"""`greenroom serve`: opens the store and serves MCP on stdio, WebSocket and HTTP.

At the end, this is the order: the input ends (if only stdio is served) or a signal arrives; open requests are
answered; the control socket closes; the runtime drains and closes the store; the lock is released.
"""

from __future__ import annotations

import argparse
import gc
import logging
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Final, Literal, NamedTuple

import trio

from greenroom.actors import (
    Agent,
    EmbedderChoice,
    PassportOptions,
    open_prompts,
    open_savings,
    open_work_notes,
)
from greenroom.actors.app.client.open_link import open_link
from greenroom.actors.app.savings.baselines import read_baseline
from greenroom.actors.core.audit.actor import record_action
from greenroom.actors.core.base.freed_memory import limit_freed_memory
from greenroom.actors.core.base.threads import read_in_thread
from greenroom.actors.knowledge.ingest.files.places import Reach
from greenroom.actors.knowledge.ingest.reread import renew_documents
from greenroom.actors.knowledge.workspaces.index_lease import Workspaces, open_workspaces
from greenroom.actors.sessions.requests.current_session import SessionLocator
from greenroom.actors.sessions.storage.migrations import client_tool
from greenroom.runtime import SharedRuntime
from greenroom.runtime.base.arguments import did_you_mean
from greenroom.transports.auth.caller import Caller
from greenroom.transports.base import exit_codes
from greenroom.transports.base.config.load import Resolved
from greenroom.transports.base.config.settings import Settings, all_settings, variable
from greenroom.transports.base.observability.access import AccessMeter
from greenroom.transports.base.observability.export import export_metrics, export_spans
from greenroom.transports.base.observability.request_log import EVENT
from greenroom.transports.base.observability.snapshot import ObservedServer
from greenroom.transports.clients.hooks import spool
from greenroom.transports.clients.hooks.drain import Drain
from greenroom.transports.mcp.clients.roots import MAX_PATH
from greenroom.transports.mcp.clients.subscriptions import ListChanges
from greenroom.transports.mcp.connection import Limits
from greenroom.transports.mcp.server import McpServer
from greenroom.transports.mcp.tools.tool_profiles import DEFAULT
from greenroom.transports.mcp.tools.tools import TOOLS
from greenroom.transports.ops.cli.output import complain, remark
from greenroom.transports.ops.cli.support.authentication import (
    Authentication,
    AuthenticationError,
    check_auth_settings,
    open_authentication,
)
from greenroom.transports.ops.cli.support.error_report import (
    Complain,
    leaf_errors,
    log_complaint,
    run_reported,
    start_logging,
)
from greenroom.transports.ops.cli.support.listeners import Sockets, open_sockets
from greenroom.transports.ops.cli.support.open_store import (
    embedder_choice,
    open_store,
    own_folders,
    passport_options,
)
from greenroom.transports.ops.cli.support.startup_notice import explain_sockets, explain_stdio
from greenroom.transports.ops.control.server import Linker, Served, serve_control
from greenroom.transports.sockets.stdio.server import refuse_stdio, serve_stdio
from greenroom.transports.web.rest.browser_sessions import LINK_SECONDS, LINKS, BrowserSessions
from greenroom.transports.web.rest.link_files import FOLDER, LinkFiles

logger = logging.getLogger(__name__)
_START_US_WHERE_THEY_WORK: Final = frozenset({"codex"})
"""Tools that start their servers in their own working folder, and report the folder in no other way."""


Opened = Callable[[Linker, BrowserSessions, trio.Event], Awaitable[None]]
"""The work for which a command opens a server.

It makes links, sees the browsers, and sets the event to end the server.
"""


class Purpose(NamedTuple):
    """The purpose for which a command serves."""

    command: str = "serve"
    may: Literal["create", "own"] = "create"  # as in `open_shared_runtime`
    opened: Opened | None = None  # its work; None for `serve`, which prints where clients reach it
    new_secret: bool = False  # whether a store whose secret is lost goes on with a new one


def serve(chosen: argparse.Namespace, resolved: Resolved) -> int:
    """Serve until the end of input or a signal; return the exit code."""
    settings = resolved.settings
    start_logging(settings.log_level, as_json=settings.log_format == "json")
    for name, stream in (("input", sys.stdin), ("output", sys.stdout)):
        if stream is None and _on_stdio(settings):  # the descriptor was already closed at the start
            return _complain(settings)(
                "serve", f"standard {name} is closed, and MCP is spoken over it", exit_codes.FAILED
            )
    return serve_for(Purpose(new_secret=chosen.new_secret), resolved)


def _complain(settings: Settings) -> Complain:
    return log_complaint if settings.log_format == "json" else complain


def serve_for(purpose: Purpose, resolved: Resolved) -> int:
    """Serve for a command until it ends; return the exit code."""
    settings = resolved.settings
    try:
        embedder = embedder_choice(settings, os.environ)
        passports = passport_options(settings, os.environ)
        check_auth_settings(settings)
    except ValueError as error:
        return _complain(settings)(purpose.command, str(error), exit_codes.USAGE)
    for stranger in resolved.strangers:
        logger.warning(
            "%s is not a setting%s", stranger, did_you_mean(stranger, map(variable, all_settings()))
        )
    if settings.durability == "process":
        logger.warning("with durability `process` a power cut or a system crash may destroy the store")
    limit_freed_memory()
    try:
        with export_spans(os.environ):
            return run_reported(
                purpose.command,
                partial(trio.run, _serve, purpose, resolved, embedder, passports),
                _complain(settings),
            )
    finally:
        gc.freeze()  # else the last collection takes 0.3 s of the one second after a signal


async def _serve(
    purpose: Purpose, resolved: Resolved, embedder: EmbedderChoice, passports: PassportOptions
) -> int:
    settings = resolved.settings
    code = exit_codes.OK
    stop = trio.Event()
    limits = Limits(
        max_message_bytes=settings.max_frame,
        in_flight=settings.max_in_flight,
        drain=settings.request_timeout + 1,  # long enough for every tool call
        stop=_STOP_SECONDS,
    )
    async with AsyncExitStack() as stack:
        # The sockets open before the store, so that an address in use is reported at once.
        sockets = await open_sockets(settings, stack)
        runtime = await stack.enter_async_context(
            open_store(settings, embedder, may=purpose.may, serves=True, new_secret=purpose.new_secret)
        )
        nursery = await stack.enter_async_context(trio.open_nursery())
        access = AccessMeter()
        opening = open_authentication(
            settings,
            runtime,
            os.environ,
            on_stdio=_on_stdio(settings),
            access=access,
            by_link=purpose.opened is not None,
        )
        authentication = await _enter_or_refuse(stack, opening, settings)

        locator = SessionLocator()
        authenticator = authentication.authenticator
        reach = Reach(
            tuple(map(os.path.abspath, settings.documents)),
            own_folders(settings),
            workspaces=tuple(map(os.path.abspath, settings.workspace)),
            secrets=settings.read_secrets,
            worktrees_apart=settings.worktrees_apart,
        )
        workspaces = await _open_indexes(stack, nursery, settings, runtime, reach)
        savings = await stack.enter_async_context(
            open_savings(
                runtime,
                time.time_ns,
                dict(map(read_baseline, settings.savings_baseline)),
                settings.token_price,
            )
        )
        notes = await stack.enter_async_context(open_work_notes(runtime))
        stack.enter_context(export_metrics(os.environ, savings.statistics))
        library = None if settings.prompts is None else await open_prompts(str(settings.prompts))
        lists = None if library is None else ListChanges()
        linking = passports._replace(base_url=sockets.base_url())
        files = LinkFiles(settings.secrets / FOLDER, LINK_SECONDS)
        nursery.start_soon(files.run)
        sessions = BrowserSessions(
            authenticator, authentication.owner(), partial(record_action, runtime), files
        )

        def link(*, read_only: bool, terminal: str | None = None) -> str | None:
            if sockets.base_url() is None:
                return None
            token = sessions.make_link(read_only=read_only, terminal=terminal)
            # The path is needed only here, so a server starts even if the folder's owner does not answer.
            return f"{sockets.base_url()}{sockets.browser_path(runtime) or ''}{LINKS}{token}"

        def agent_for(client_name: str, caller: Caller = authentication.on_stdio) -> Agent:
            principal = authentication.principal(client_name, caller)
            return Agent(
                runtime,
                principal,
                timezone=settings.timezone,
                client=client_name,
                passports=linking if authenticator.is_valid(principal.key_id) else passports,
                quota=authentication.quota(caller),
                locator=locator if caller.is_single_request else None,
                on_export=access.record_export,
                reach=reach._replace(takes_client_folders=caller is authentication.on_stdio),
                workspaces=workspaces,
                savings=savings,
                is_person=caller.is_person,
                server=observed,
                learns_workflows=settings.learn_workflows,
                prompts=library,
                notes=notes,
            )

        await nursery.start(_stop_on_signal, stop)
        server = McpServer(
            TOOLS,
            agent_for,
            request_timeout=settings.request_timeout,
            debounce=settings.debounce,
            profiles=settings.tools or DEFAULT,
            schemas=settings.schemas,
            lists=lists,
            run_ready=runtime.run_ready,
            hold_dispatch=runtime.hold_dispatch,
            logs_requests=settings.log_format == "json",
        )
        if library is not None and lists is not None:
            nursery.start_soon(library.watch, lists.announce)
        observed = ObservedServer(server.meter, runtime, access, savings, stop.is_set)
        _tell_presence(nursery, observed, server, sessions, settings.data)
        drain = Drain(runtime, settings.data)
        served = Served(observed, drain, link, files, sessions.new_code)
        await nursery.start(_control, runtime, drain, partial(serve_control, settings.data, served))
        gc.freeze()  # imported objects stay alive, so collections need not visit them
        async with server.running(), trio.open_nursery() as serving:
            await sockets.serve(
                serving,
                server,
                observed,
                lambda caller, name: agent_for(name, caller),
                limits,
                stop,
                authenticator,
                partial(
                    open_link,
                    runtime,
                    options=passports,
                    is_valid=authenticator.is_valid,
                    on_export=access.record_export,
                ),
                sessions,
                runtime,
            )
            if purpose.opened is not None:
                nursery.start_soon(purpose.opened, link, sessions, stop)
            else:
                _tell_where(resolved, sockets, needs_key=authentication.needs_key)
            if _on_stdio(settings):
                if sys.stdin.isatty():
                    explain_stdio(resolved)
                code = await _serve_stdio(server, limits, stop, authentication)
        nursery.cancel_scope.cancel()
    return code


async def _open_indexes(
    stack: AsyncExitStack, nursery: trio.Nursery, settings: Settings, runtime: SharedRuntime, reach: Reach
) -> Workspaces | None:
    """Keep workspace indexes, and read documents again if their reader is newer, unless disabled."""
    if settings.no_index:
        return None
    nursery.start_soon(renew_documents, runtime, reach._replace(takes_client_folders=_on_stdio(settings)))
    return await stack.enter_async_context(open_workspaces(runtime))


def _tell_where(resolved: Resolved, sockets: Sockets, *, needs_key: bool) -> None:
    # Programs read the ports from these lines, so the format must not change.
    for _, url in sockets.urls():
        if resolved.settings.log_format == "json":
            logger.info("listening", extra={EVENT: {"event": "listening", "url": url}})
        else:
            remark(f"greenroom serve: listening on {url}")
    if sys.stderr is not None and sys.stderr.isatty():
        explain_sockets(resolved, sockets.urls(), needs_key=needs_key)


_STOP_SECONDS: Final = 0.5  # the rest of one second is for close frames and the runtime
_REFUSAL_SECONDS: Final = 5.0
"""Seconds in which a client on standard input may send its first request, if it only gets a refusal."""


async def _control(
    runtime: SharedRuntime,
    drain: Drain,
    served: Callable[..., Awaitable[None]],
    *,
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve the control socket and drain the spool while this process owns the folder.

    The spool is drained once the socket is ready: what is put there before needs no notice, the rest has one.
    An owner reports its start once the socket is ready; an attached process, at once.
    """
    if is_attached := runtime.role != "owner":
        task_status.started()
        await runtime.wait_until_owner()
    async with trio.open_nursery() as nursery:
        await nursery.start(served)
        nursery.start_soon(drain.run)
        if not is_attached:
            task_status.started()


def _tell_presence(
    nursery: trio.Nursery,
    observed: ObservedServer,
    server: McpServer,
    sessions: BrowserSessions,
    folder: Path,
) -> None:
    """Report the clients of this process to the owner of the folder."""
    observed.reporter.add_clients(server.connected.list_clients)
    observed.reporter.add_clients(sessions.connected, sessions.end_by_id)
    nursery.start_soon(observed.reporter.run, partial(_hooks_waiting, folder))


async def _hooks_waiting(folder: Path) -> tuple[int, int]:
    found = await read_in_thread(spool.waiting, folder)
    return found.files, found.refused


def _on_stdio(settings: Settings) -> bool:
    return settings.stdio or (settings.ws is None and settings.http is None)


async def _enter_or_refuse(
    stack: AsyncExitStack, opening: AbstractAsyncContextManager[Authentication], settings: Settings
) -> Authentication:
    """Open the authentication; report an invalid key on standard input to the client there."""
    try:
        return await stack.enter_async_context(opening)
    except* AuthenticationError as refused:
        if _on_stdio(settings) and not os.isatty(0):
            with trio.move_on_after(_REFUSAL_SECONDS):
                await refuse_stdio(str(leaf_errors(refused)[0]), limit=settings.max_frame)
        raise


async def _serve_stdio(
    server: McpServer, limits: Limits, stop: trio.Event, authentication: Authentication
) -> int:
    """Serve the client on standard input and output until the client or its key ends."""
    with trio.CancelScope() as scope:

        def lose(sentence: str) -> None:
            logger.error("the client on standard input and output is not served any more: %s", sentence)
            scope.cancel()

        with authentication.hold_stdio(lose):
            tools = authentication.on_stdio.tool_choice
            await serve_stdio(server, limits=limits, stop=stop, tools=tools, folder_of=_client_folder)
    return exit_codes.FAILED if scope.cancelled_caught else exit_codes.OK


def _client_folder(name: str | None) -> str | None:
    """Return the working folder of a client without roots: from a variable, or our own."""
    folder = os.environ.get("CLAUDE_PROJECT_DIR", "")
    if not folder and client_tool(name).tool_id in _START_US_WHERE_THEY_WORK:
        with suppress(FileNotFoundError):  # the folder was removed
            folder = str(Path.cwd())
    return folder if 0 < len(folder) <= MAX_PATH and Path(folder).is_absolute() else None


async def _stop_on_signal(
    stop: trio.Event, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
) -> None:
    """Set `stop` at the first signal; the second signal kills the process."""
    signals = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # `nohup` sets it to be ignored
        signals.append(signal.SIGHUP)
    with trio.open_signal_receiver(*signals) as received:
        task_status.started()
        number = await anext(received)
    for each in signals:
        signal.signal(each, signal.SIG_DFL)
    # At the default level nothing is logged here: if a client does not read standard error, it must not keep
    # this process from ending.
    logger.debug("%s: answering open requests, then ending", signal.Signals(number).name)
    stop.set()
