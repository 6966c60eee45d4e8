"""The table of all views, in the order of the navigation."""

from __future__ import annotations

from typing import Final

from greenroom.transports.web.console.view import Entry
from greenroom.transports.web.console.views.administration import (
    audit,
    audit_export,
    injection_log,
    overview,
    people,
)
from greenroom.transports.web.console.views.code import code
from greenroom.transports.web.console.views.knowledge import knowledge
from greenroom.transports.web.console.views.map import memory_map
from greenroom.transports.web.console.views.memories import memories, store_form
from greenroom.transports.web.console.views.search import search
from greenroom.transports.web.console.views.sessions import decide_form, sessions

ENTRIES: Final = (
    Entry("", "Overview", "o", overview),
    Entry("sessions", "Sessions", "s", sessions, needs="list_sessions", forms={"context": decide_form}),
    Entry("memories", "Memories", "m", memories, needs="list_memories", forms={"new": store_form}),
    Entry("search", "Search", "f", search, needs="explain_search"),
    Entry("told", "Injections", "t", injection_log, needs="list_told"),
    Entry("map", "Map", "p", memory_map, needs="memory_map"),
    Entry("knowledge", "Knowledge", "k", knowledge, needs="list_corpora"),
    Entry("code", "Code", "c", code, needs="outline"),
    Entry("people", "People and keys", "u", people),
    Entry("audit", "Audit", "a", audit, needs="get_audit_log", files={"export": audit_export}),
)
"""Every view."""
