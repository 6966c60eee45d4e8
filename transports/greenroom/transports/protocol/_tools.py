"""The tools: a name, words for the model that chooses among them, and the request each becomes.

Parameters, limits and replies are declared once, on the request structs of
`greenroom.actors`; schemas are generated from them. The words here are paid for by every
model that lists the tools, so they say when to take which tool and nothing twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from greenroom.actors import REQUESTS, is_write, parse_request
from greenroom.actors._scopes import ADMIN, AUDIT, EVERYTHING, allows, needed_for_tool
from greenroom.actors._scopes import TOOLS as SCOPES_OF_TOOLS
from greenroom.runtime import reply_type
from greenroom.transports.protocol._aliases import ALIASES, Alias
from greenroom.transports.protocol._schema import input_schema, output_schema


class Tool(msgspec.Struct, frozen=True, kw_only=True):
    """One tool of the listing.

    Attributes:
        name: The wire name.
        title: The name for people.
        description: When a model should take this tool, and what it gets.
        overwrites: It may replace or remove what was there.
        repeatable: A second call with the same arguments changes nothing more.
        weight: How large its answer may be, in megabytes or so; 0 for one that is small anyway.
        by_sdk: It talks to the client while it runs, so the SDK's server carries it out.
        alias: What its name means that is older than today's tools; some profiles alone list it.
        older: What its name meant before, where a call can still mean that.
    """

    name: str
    title: str
    description: str
    overwrites: bool = False
    repeatable: bool = False
    weight: int = 0
    by_sdk: bool = False
    alias: Alias | None = None
    older: Alias | None = None

    @property
    def request(self) -> type[Any]:
        """The struct whose fields are the tool's parameters."""
        return REQUESTS[self.name] if self.alias is None else self.alias.request

    @property
    def scope(self) -> str:
        """The scope that a caller needs."""
        return needed_for_tool(self.name if self.alias is None else self.alias.successor)

    @property
    def is_foreign(self) -> bool:
        """Whether it is none of ours: a program that serves tools of its own lists them as it likes."""
        return self.alias is None and self.name not in SCOPES_OF_TOOLS

    @property
    def answer(self) -> type[Any]:
        """The struct of its answer."""
        form = self._form
        answer: type[Any] = reply_type(self.request if form is None else REQUESTS[form.successor])
        return answer

    @property
    def _form(self) -> Alias | None:
        """The older form in which it is listed, if it is."""
        return self.older if self.older is not None and self.older.is_usual else self.alias

    def with_defaults(self, defaults: Mapping[str, Any]) -> Tool:
        """Return the tool as clients have it whose calls mean its older form, with these defaults."""
        assert self.older is not None, "only an older form has other defaults"
        older = msgspec.structs.replace(self.older, defaults=defaults, is_usual=True)
        return msgspec.structs.replace(self, older=older)

    def parse(self, arguments: bytes) -> Any:
        """Return the request in a call's arguments.

        Raises:
            Refusal: the arguments do not fit; it names the field, the limit and the value's size.
        """
        meant = self.meant(arguments)
        return parse_request(self.request, arguments) if meant is None else meant.parse(arguments)

    def meant(self, arguments: bytes) -> Alias | None:
        """Return the older name that a call with these arguments means, or None."""
        if self.older is not None and self.older.is_meant(arguments):
            return self.older
        return self.alias

    def listing(self) -> dict[str, Any]:
        """Return the tool's entry of ``tools/list``."""
        form = self._form
        words = self.description if form is None else f"Older name of {form.successor}, which see."
        reads = not is_write(self.request)
        return {
            "name": self.name,
            "title": self.title,
            "description": words,
            "inputSchema": input_schema(self.request if form is None else form.request),
            "outputSchema": output_schema(self.answer),
            "annotations": {
                "readOnlyHint": reads,
                "destructiveHint": self.overwrites,
                "idempotentHint": reads or self.repeatable,
                "openWorldHint": False,
            },
        }


def visible(names: Iterable[str], tools: Mapping[str, Tool], scopes: frozenset[str]) -> tuple[str, ...]:
    """Return those of the tools' names that are shown to a holder of ``scopes``: what it may call.

    Administering and the audit log are shown to those alone who may do so by name. Who may do everything,
    such as the user of this machine, may do that, too, but their model need not read of it at every start.
    """
    named = scopes - {EVERYTHING}
    return tuple(
        name
        for name in names
        if allows(scopes, needed := tools[name].scope)
        and (needed not in _BY_NAME or allows(named, needed) or tools[name].is_foreign)
    )


_BY_NAME = frozenset({ADMIN, AUDIT})


_ALL = (
    Tool(
        name="create_session",
        title="Create session",
        description="Make a new shared session that other agents can join, under an id of your choice. "
        "To begin work where another tool ended: start_session.",
    ),
    Tool(
        name="get_session",
        title="Get session",
        description="Look at one session: purpose, status, metadata, statistics and its newest messages. "
        "The quickest way to catch up.",
        weight=4,
    ),
    Tool(
        name="list_sessions",
        title="List sessions",
        description="Find sessions when you have no session_id, latest activity first; "
        "by status or project if you like.",
        weight=4,
    ),
    Tool(
        name="update_session",
        title="Update session",
        description="Change a session's status, metadata or state, for example to pause or terminate it. "
        "To say something in it, use add_message.",
        overwrites=True,
        repeatable=True,
        weight=4,
    ),
    Tool(
        name="reopen_session",
        title="Reopen session",
        description="Open a session again that was terminated, so that work in it can go on.",
    ),
    Tool(
        name="add_message",
        title="Add message",
        description="Write a message into a session, to the other agents or (private) to yourself.",
    ),
    Tool(
        name="get_messages",
        title="Get messages",
        description="Read a session's messages in order, oldest first, page by page; "
        "with since_id only what is new. To find something, use search_context.",
        weight=4,
    ),
    Tool(
        name="search_context",
        title="Search session",
        description="Find messages in a session by what they say; tolerates typos and other word forms, "
        "best match first. By default the last 24 hours: recent_hours null searches everything.",
        weight=4,
    ),
    Tool(
        name="search_by_sender",
        title="Search by sender",
        description="Read what one agent wrote in a session, newest first.",
        weight=4,
    ),
    Tool(
        name="search_by_timerange",
        title="Search by time",
        description="Read what was written in a session between two times, oldest first.",
        weight=4,
    ),
    Tool(
        name="set_memory",
        title="Set memory",
        description="Remember a JSON value under a key, for yourself alone: everywhere, "
        "or in one session with session_id; for good, or for expires_in seconds. "
        "Other agents never see it; to tell them, use add_message.",
        overwrites=True,
    ),
    Tool(
        name="get_memory",
        title="Get memory",
        description="Recall a memory by key, whichever tool stored it: your own, else your user's "
        "or a project's.",
        weight=1,
    ),
    Tool(
        name="list_memory",
        title="List memory",
        description="List the keys that you remembered, without values, newest change first.",
        weight=4,
    ),
    Tool(
        name="delete_memory",
        title="Delete memory",
        description="Forget a key for good; answers whether it existed.",
        overwrites=True,
        repeatable=True,
    ),
    Tool(
        name="store_memory",
        title="Store memory",
        description="Remember content or a JSON value for your user, whichever tool they work with. "
        "An existing key gets a new version. similar in the answer tells what is nearly the same.",
        overwrites=True,
    ),
    Tool(
        name="retrieve_memory",
        title="Retrieve memory",
        description="Recall from your user's memory by words, or by key from everywhere. "
        "To search projects and your own keys, too, or by time: memory_search.",
        weight=4,
    ),
    Tool(
        name="memory_search",
        title="Search memories",
        description="Search everything that you may see: your user's, your own, your projects' memories; "
        "by meaning, by exact text, by time or tags. hybrid weighs quality, too.",
        weight=4,
    ),
    Tool(
        name="recall_context",
        title="Recall for a task",
        description="Before a task: the memories that help with it, as many as fit into max_tokens.",
        weight=4,
    ),
    Tool(
        name="update_memory",
        title="Update memory",
        description="Change a memory's content or metadata; the version before stays readable. "
        "expected_version guards against overwriting another's change.",
        overwrites=True,
        repeatable=True,
    ),
    Tool(
        name="rate_memory",
        title="Rate memory",
        description="Say whether a memory helped (1) or misled (-1); mode hybrid finds better ones first.",
        overwrites=True,
        repeatable=True,
    ),
    Tool(
        name="forget_memory",
        title="Forget memory",
        description="Forget a memory, or all that fit filters: without confirm several are only listed. "
        "History is kept unless you purge. If some remain, call again.",
        overwrites=True,
        repeatable=True,
    ),
    Tool(
        name="list_memories",
        title="List memories",
        description="Page through your user's memories or those of a namespace, newest update first. "
        "To find something: memory_search.",
        weight=4,
    ),
    Tool(
        name="list_memory_versions",
        title="List versions",
        description="See who changed a memory and when, oldest version first, without contents.",
        weight=1,
    ),
    Tool(
        name="memory_stats",
        title="Memory statistics",
        description="Count your user's memories, or a namespace's, by tag, kind, scope, age; the most used.",
    ),
    Tool(
        name="import_memories",
        title="Import memories",
        description="Store many memories at once from JSON Lines, all or none; a bad line is named. "
        "Repeating it changes nothing. dry_run first shows what would happen.",
        overwrites=True,
        repeatable=True,
    ),
    Tool(
        name="export_memories",
        title="Export memories",
        description="Write the memories that you may see, of a namespace or all, into files to be read as "
        "resources: the answer links to them. import_memories takes the same lines.",
    ),
    Tool(
        name="start_session",
        title="Start session",
        description="Begin work, once, at the start: goes on with the one open session of your project that "
        "has work in it and that nobody is in; asks you to choose among several (offered), makes one where "
        "there is none. What you search and store from then on is kept as its context.",
        weight=1,
    ),
    Tool(
        name="restore_session",
        title="Restore session",
        description="Go on with a session from another tool or server, by session_id, passport or claim. "
        "The briefing says where the work stands.",
        weight=1,
    ),
    Tool(
        name="get_session_context",
        title="Get session context",
        description="Look at what a session keeps of the work: files, searches, decisions, workflow state, "
        "and its way between tools.",
        weight=1,
    ),
    Tool(
        name="record_context",
        title="Record context",
        description="Note what the next tool should know: files used and how important, decisions and why, "
        "where the work stands. Searches and stored memories are noted by themselves.",
    ),
    Tool(
        name="migrate_session",
        title="Migrate session",
        description="Hand the session over to another tool at this server; the answer says what to do there.",
        weight=1,
    ),
    Tool(
        name="export_session",
        title="Export session",
        description="Write the session into a signed passport that another server restores; private memory "
        "only with include_memories. For a tool at this server, take migrate_session.",
        weight=1,
    ),
    Tool(
        name="end_session",
        title="End session",
        description="Terminate the session when the work is done; it stays readable.",
        overwrites=True,
        repeatable=True,
    ),
    Tool(
        name="get_audit_log",
        title="Read audit log",
        description="See who did what and what was denied, newest first, never contents; page by page.",
        weight=1,
    ),
    Tool(
        name="create_api_key",
        title="Create API key",
        description="Make a key for an agent, a person or a program, with as few scopes as it needs. "
        "api_key is shown this once.",
    ),
    Tool(
        name="list_api_keys",
        title="List API keys",
        description="See which keys there are, whose, what for, until when, and when each was used last.",
        weight=1,
    ),
    Tool(
        name="rotate_api_key",
        title="Rotate API key",
        description="Make a new key for the same holder; the old one goes on for overlap_seconds.",
        overwrites=True,
    ),
    Tool(
        name="revoke_api_key",
        title="Revoke API key",
        description="End a key for good, now, and every connection and subscription that came by it.",
        overwrites=True,
        repeatable=True,
    ),
)


def _with_aliases(tools: tuple[Tool, ...]) -> dict[str, Tool]:
    """Return the tools and what their older names stand for, by name."""
    table = {tool.name: tool for tool in tools}
    for alias in ALIASES:
        if alias.told_by is None:
            table[alias.name] = _older(alias, table[alias.successor])
        else:
            table[alias.name] = msgspec.structs.replace(table[alias.name], older=alias)
    return table


def _older(alias: Alias, tool: Tool) -> Tool:
    return msgspec.structs.replace(tool, name=alias.name, alias=alias, older=None)


TOOLS: Mapping[str, Tool] = _with_aliases(_ALL)
"""Every tool by name, in the order of the listing, then the older names."""
