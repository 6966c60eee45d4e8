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
from greenroom.actors.core.auth.scopes import ADMIN, AUDIT, EVERYTHING, allows, needed_for_request
from greenroom.actors.core.auth.scopes import TOOLS as SCOPES_OF_TOOLS
from greenroom.actors.core.auth.tool_profiles import SchemaForm
from greenroom.actors.core.validation.coercion import MOST_CHANGES
from greenroom.runtime import reply_type
from greenroom.transports.mcp.tools.aliases import ALIASES, Alias
from greenroom.transports.mcp.tools.older_parameters import OlderForm
from greenroom.transports.mcp.tools.schema import listed_input, output_schema


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
        parameters: What it takes besides; None where that is nothing.
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
    parameters: OlderForm | None = None

    @property
    def request(self) -> type[Any]:
        """The struct whose fields are the tool's parameters."""
        return REQUESTS[self.name] if self.alias is None else self.alias.request

    @property
    def asks(self) -> type[Any]:
        """The request that a call becomes, whatever its parameters are called."""
        return REQUESTS[self.name if self.alias is None else self.alias.successor]

    @property
    def scope(self) -> str:
        """The scope that a caller needs."""
        return needed_for_request(self.name if self.alias is None else self.alias.successor)

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
        if self.alias is not None:
            alias = msgspec.structs.replace(self.alias, fixed={**self.alias.fixed, **defaults})
            return msgspec.structs.replace(self, alias=alias)
        assert self.older is not None, "only an older form has other defaults"
        older = msgspec.structs.replace(self.older, defaults=defaults, is_usual=True)
        return msgspec.structs.replace(self, older=older)

    def parse(self, arguments: bytes) -> Any:
        """Return the request in a call's arguments.

        Raises:
            Refusal: the arguments do not fit; it names the field, the limit and the value's size.
        """
        older = self.older if self.older is not None and self.older.matches(arguments) else None
        meant = older or self.parameters or self.alias
        if meant is not None:
            return meant.parse(arguments)
        return parse_request(self.request, arguments, most_changes=MOST_CHANGES)

    def alias_for(self, arguments: bytes) -> Alias | None:
        """Return the older name that a call with these arguments means, or None."""
        if self.older is not None and self.older.matches(arguments):
            return self.older
        return self.alias

    def listing(self, schemas: SchemaForm = "plain") -> dict[str, Any]:
        """Return the tool's entry of ``tools/list``, with the schema of its parameters in a form."""
        form = self._form
        takes = self.request if form is None else form.request
        if self.parameters is not None and form is self.alias:
            takes = self.parameters.listed
        reads = not is_write(self.request)
        words = self.description if form is None else f"Older name of {form.successor}, which see."
        return {
            "name": self.name,
            "title": self.title,
            "description": words,
            "inputSchema": listed_input(takes, schemas),
            "outputSchema": output_schema(self.answer),
            "annotations": {
                "readOnlyHint": reads,
                "destructiveHint": self.overwrites,
                "idempotentHint": reads or self.repeatable,
                "openWorldHint": False,
            },
        }


def visible_tools(names: Iterable[str], tools: Mapping[str, Tool], scopes: frozenset[str]) -> tuple[str, ...]:
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
        description="Make a shared session under an id of your choice. To begin or take over work: "
        "start_session.",
    ),
    Tool(
        name="get_session",
        title="Get session",
        description="Look at one session: its purpose and status, who takes part, is it still open, how many "
        "messages it holds, when it was last used.",
        weight=4,
    ),
    Tool(
        name="list_sessions",
        title="List sessions",
        description="See all sessions, or those of one project: which pieces of work are open or running, "
        "across all agents, what everybody is working on at the moment, which you could join.",
        weight=4,
    ),
    Tool(
        name="update_session",
        title="Update session",
        description="Change a session's status, metadata or state, for example to pause or terminate it.",
        overwrites=True,
        repeatable=True,
        weight=4,
    ),
    Tool(
        name="reopen_session",
        title="Reopen session",
        description="Open a terminated session again, so that work in it can go on.",
    ),
    Tool(
        name="add_message",
        title="Add message",
        description="Tell the other agents who work with you, such as a planner, tester or reviewer: let them"
        " know, warn, ask or answer a question, reply, pass on, report or post results for "
        "everybody here.",
    ),
    Tool(
        name="get_messages",
        title="Get messages",
        description="Read what was said in a session, the whole conversation in order: from the start, the "
        "latest replies, or with since_id the new ones: what has come in, who has answered, what "
        "others have written since you last looked.",
        weight=4,
    ),
    Tool(
        name="search_context",
        title="Search session",
        description="Find the place in a conversation or chat where something was said: who said, mentioned, "
        "discussed, proposed or talked about it, brought it up, or what you saw in this session "
        "earlier. For all that is known: memory_search.",
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
        description="Keep a JSON value under a key for yourself alone, everywhere or in one session, for good"
        " or for expires_in seconds.",
        overwrites=True,
    ),
    Tool(
        name="get_memory",
        title="Get memory",
        description="Open one remembered item by its key: read or fetch exactly what is stored under it, the "
        "whole text or value with its tags, your own first, then your user's, then a project's. "
        "If you don't know its key: memory_search.",
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
        title="Remember",
        description="Remember from now on, for every project and tool: note, put down or save a fact, date, "
        "rule, decision or preference that you learned or settled and should keep in mind for "
        "next time and not forget; for good or until it expires.",
        overwrites=True,
    ),
    Tool(
        name="retrieve_memory",
        title="Retrieve memory",
        description="Recall from your user's memory by words, or by key from everywhere. For projects, your "
        "own keys or a time: memory_search.",
        weight=4,
    ),
    Tool(
        name="memory_search",
        title="Search memories",
        description="Find the answer to a question in all memories: do we know or remember anything about it,"
        " is there a rule or preference, what was ever told, written down or decided and why, who"
        " was responsible for it, what people think, like or prefer. Looks it up by meaning, "
        "words, time or tags.",
        weight=4,
    ),
    Tool(
        name="recall_context",
        title="Recall for a task",
        description="Before you start on a task or touch something: be briefed. Puts together the background "
        "that will help and matters, all that you should know and be aware of first, as much as "
        "fits into your prompt.",
        weight=4,
    ),
    Tool(
        name="semantic_search",
        title="Search documents",
        description="Look up what documents say about something, such as policies and rules, handbooks, "
        "papers, docs or a manual, and on which page: finds passages. Ask with detail_level "
        "metadata first, then open the best three with get_full_content.",
        weight=4,
    ),
    Tool(
        name="get_full_content",
        title="Read passages",
        description="Open and read in full what semantic_search found: the entire text of passages or a "
        "document, not just excerpts, and what stands before and after.",
        weight=4,
    ),
    Tool(
        name="list_corpora",
        title="See collections of documents",
        description="See which collections of documents, bodies of text, there are to search, how big each is"
        " and how old its index.",
        weight=4,
    ),
    Tool(
        name="ingest_documents",
        title="Add documents",
        description="Index files, folders or a text: add or load them into a collection, to make them "
        "searchable and ask about them. Again, it takes in only pages that changed; when complete"
        " is false, call it again. Says what it left out and why.",
        overwrites=True,
        repeatable=True,
        weight=1,
    ),
    Tool(
        name="search_code_semantic",
        title="Search code",
        description="Find where the code of the workspace does something, by words, identifiers or a "
        "question: files with their best lines, which read_file opens. freshness says how much is indexed.",
        weight=1,
    ),
    Tool(
        name="symbol_search",
        title="Search symbols",
        description="Find where a function, class or other symbol of the workspace is defined, with its "
        "signature, and where its name is used.",
        weight=1,
    ),
    Tool(
        name="outline",
        title="Outline code",
        description="See what is in a file or a folder of the workspace without reading it: its symbols with "
        "their lines and signatures.",
        weight=1,
    ),
    Tool(
        name="dependency_search",
        title="Find dependencies",
        description="Find what a file or a symbol of the workspace needs and what needs it, over several "
        "steps, with cycles: what a change may break.",
        weight=1,
    ),
    Tool(
        name="similar_files",
        title="Find similar files",
        description="Find files of the workspace that are like a given one, such as its test, and what they "
        "have in common.",
        weight=1,
    ),
    Tool(
        name="code_search",
        title="Search code by syntax",
        description="Find every place in the code of the workspace that a pattern means: definitions, calls, "
        "imports, texts, lines. partial says when it was cut.",
        weight=1,
    ),
    Tool(
        name="read_file",
        title="Read a file",
        description="Read a file of the workspace as it is now, whole or some lines, or several files. What "
        "you have read here and did not change is answered in one line.",
        weight=1,
    ),
    Tool(
        name="find_vendor_info",
        title="Find vendors and libraries",
        description="Find what documents say of a supplier, vendor, library, framework or service: where in "
        "the docs and how often it is mentioned, and what it has to do with others. Typing errors"
        " are forgiven.",
        weight=4,
    ),
    Tool(
        name="find_entity",
        title="Find all mentions",
        description="Find every place where a name turns up, however written: a vendor, project, product or "
        "library, counting its other names too, in files, memories, notes and sessions.",
        weight=4,
    ),
    Tool(
        name="suggest_entities",
        title="Suggest names",
        description="Propose names, products and identifiers worth tracking, that documents repeat and nobody"
        " has declared yet, with counts; declare those that matter with define_entities.",
        weight=4,
    ),
    Tool(
        name="define_entities",
        title="Define entities",
        description="Register names that documents mention, of vendors, products or libraries, and put "
        "suggested candidates in force: names and abbreviations that are one and the same and "
        "count as a single name, and relations; here, or in YAML or manifests. Also rename and "
        "remove names.",
        overwrites=True,
        repeatable=True,
        weight=4,
    ),
    Tool(
        name="update_memory",
        title="Update memory",
        description="Correct, edit or change a memory: fix or replace a fact or preference that you noted and"
        " that was wrong, is out of date or different now, add a tag to a note, raise how "
        "important it is.",
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
        title="Forget",
        description="Forget or delete what should be held or known no longer: drop, erase or remove one note "
        "or entry, or all memories that fit filters (only listed first, until confirm). History "
        "stays unless purge.",
        overwrites=True,
        repeatable=True,
    ),
    Tool(
        name="list_memories",
        title="List memories",
        description="Show everything that is kept in memory, all notes and facts page by page, newest first, "
        "or notes that were saved since a date or have a certain tag or kind.",
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
        name="set_preferences",
        title="Set preferences",
        description="Change how your user wants every tool to behave, such as theme, search_defaults or "
        "auto_features, by a JSON merge patch; {} only shows what is set.",
        overwrites=True,
        repeatable=True,
        weight=1,
    ),
    Tool(
        name="import_memories",
        title="Import memories",
        description="Store many memories at once from JSON Lines, all or none; a bad line is named. Repeating"
        " it changes nothing.",
        overwrites=True,
        repeatable=True,
    ),
    Tool(
        name="export_memories",
        title="Export memories",
        description="Write memories that you may see into files, which the answer links to as resources. "
        "import_memories takes the same lines.",
    ),
    Tool(
        name="start_session",
        title="Start session",
        description="Your first call: begin a new job, or continue and carry on where another tool, editor or"
        " agent left off: go on where it stopped, pick it up, take it over. If several could be "
        "meant, choose one (offered). Opens a session, a place where others can join and work "
        "together with you.",
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
        description="Keep on the session's record, for the next agent or whoever follows you, which files you"
        " opened, touched or changed, what you searched for, what you chose and why, how far you "
        "got, what is done and what remains. Save it often, as handover notes: you may be cut "
        "off.",
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
        "only with include_memories. At this server: migrate_session.",
        weight=1,
    ),
    Tool(
        name="end_session",
        title="End session",
        description="Close the session when all is done: finish, close it down, shut it, wrap the work up, "
        "say what the result is. It stays readable.",
        overwrites=True,
        repeatable=True,
    ),
    Tool(
        name="compress_text",
        title="Compress a text",
        description="Make a long text shorter for a prompt, without a model: keeps headings, code, names, "
        "numbers and what is new, word for word, and says what it left out.",
        weight=1,
    ),
    Tool(
        name="get_stats",
        title="Statistics",
        description="See what your calls saved: tokens, cost and time by operation, and cache hits; "
        "administrators also see the server's figures.",
        weight=1,
    ),
    Tool(
        name="health_check",
        title="Health check",
        description="See whether the server and each part of it is well, and if not, why.",
    ),
    Tool(
        name="record_workflow_step",
        title="Record a step",
        description="Record a command or tool that you ran and whether it worked, so that next steps can be "
        "suggested later. Arguments are kept as shapes, secrets never.",
    ),
    Tool(
        name="get_workflow_patterns",
        title="Get workflow patterns",
        description="See which commands often follow one another here, or come after those so far: how sure, "
        "how successful, how long.",
        weight=1,
    ),
    Tool(
        name="suggest_next_action",
        title="Suggest next action",
        description="Ask which command or tool usually comes next; never one that failed every time.",
        weight=1,
    ),
    Tool(
        name="workflow_checkpoint",
        title="Workflow checkpoint",
        description="Save the state of your work under a name, or restore it by its name alone.",
        overwrites=True,
        repeatable=True,
        weight=1,
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
    Tool(
        name="erase_user",
        title="Erase user",
        description="Erase a person and their agents for good: memories, sessions, messages, keys. "
        "Without confirm it only counts.",
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
