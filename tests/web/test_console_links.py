"""Links of the console: where they lead a page is seen as the same agent, and filters stay set."""

from __future__ import annotations

from html.parser import HTMLParser
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qs, unquote, urlencode, urljoin, urlsplit

import pytest
import trio
from support.agents import say
from support.console import Shown, looker
from support.corpora import document_of
from support.keyed import premises
from support.workspaces import folder_of_code

from greenroom.actors import (
    Agent,
    CreateSession,
    DefineEntities,
    EntityDeclaration,
    ExportSession,
    ForgetMemory,
    Principal,
    PutDocument,
    RateMemory,
    Reach,
    RecallContext,
    Relation,
    SearchCodeSemantic,
    StoreMemory,
    UpdateMemory,
    ask_corpus,
)
from greenroom.actors.knowledge.workspaces.index_lease import open_workspaces
from greenroom.transports.web.console.views.table import ENTRIES

if TYPE_CHECKING:
    from pathlib import Path

    from support.agents import House
    from support.console import Looker
    from support.passports import Opens

OWNER = Principal(agent_id="bot", user="owner")
SEEN_AS = "as=bot&as_user=owner&as_project=p&as_project=q"
FILTERED = {
    "": "",
    "sessions": "q=s&status=active&project=p&agent=bot",
    "memories": "namespace=user:owner&q=vault&type=semantic&age=day&order=used&superseded=1"
    "&tag=a%26b&tag=%C3%BC&author=bot&conversation=c",
    "memories/duplicates": "namespace=user:owner",
    "memories/contradictions": "namespace=user:owner",
    "memories/stale": "namespace=user:owner&why=disliked&type=semantic&tag=%C3%BC",
    "memories/unreviewed": "namespace=user:owner&type=semantic&tag=%C3%BC",
    "memories/forgotten": "namespace=user:owner",
    "search": "q=vault&in=memories&namespace=user:owner&limit=7&tag=%C3%BC&author=bot",
    "told": "agent=bot&source=recall",
    "map": "kind=graph&namespace=user:owner&type=semantic&age=7&order=newest&superseded=hidden"
    "&colour=namespace",
    "knowledge": "q=herons",
    "code": "",
    "people": "status=active",
    "knowledge/user:owner:docs": "show=entities&holding=a&type=service",
    "sessions/s0": "order=threads",
    "sessions/s0/context": "tool=zed",
}
"""What is set in the URL of each list, and of some pages below."""
OF_AUDIT = "agent=bot&outcome=done&action=store_memory&after=2000-01-01"
MANY = 35
"""Kinds of pages that are looked at, at least."""
SHOWS = {"document", "entity", "show", "file", "symbol"}
"""Parameters that say what of a corpus is shown."""
PLACES = {"cursor", "from", "before", "page", "message", "reply", "version", "whole", "edit"}
"""Parameters that say which part of a page is meant; those that follow another filter begin anew."""
OF_ONE_WAY = {"namespace", "tag", "author"}
"""Filters that one way to search has and others have not."""
TAKES_AWAY = {
    "Clear filters",
    "All",
    "All documents",
    "By time",
    "The whole injection log",
    "Do not answer it",
}
"""What links are called by which filters are taken away."""


class Lead(NamedTuple):
    """A link or a form that leads to another page: what it is called, and its path and parameters.

    Attributes:
        current: What it says of itself as `aria-current`; "elsewhere" outside of the page's main part.
    """

    name: str
    path: str
    given: dict[str, list[str]]
    current: str = ""


class Leads(HTMLParser):
    """Finds where a page leads: its links, and its forms that fetch a page."""

    def __init__(self, path: str, page: Shown) -> None:
        super().__init__()
        self.found: list[Lead] = []
        self._path = path
        self._link: Lead | None = None
        self._form: Lead | None = None
        self._is_content = False
        self.feed(page.answer.body.decode())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self._is_content = self._is_content or tag == "main"
        if tag == "a" and not given["href"].startswith("#"):
            target = urlsplit(urljoin(f"http://here{self._path}", given["href"]))
            current = given.get("aria-current", "") if self._is_content else "elsewhere"
            self._link = Lead("", target.path, parse_qs(target.query), current)
        elif (
            tag == "form" and not {"data-request", "data-bulk"} & set(given) and given.get("method") != "post"
        ):
            action = urljoin(f"http://here{self._path}", given.get("action") or self._path)
            self._form = Lead("a form", urlsplit(action).path, {})
        elif tag in {"input", "select"} and self._form is not None and "name" in given:
            self._form.given.setdefault(given["name"], []).append(given.get("value", ""))

    def handle_data(self, data: str) -> None:
        if self._link is not None:
            self._link = self._link._replace(name=" ".join(f"{self._link.name} {data}".split()))

    def handle_endtag(self, tag: str) -> None:
        if tag == "a" and self._link is not None:
            self.found.append(self._link)
            self._link = None
        if tag == "form" and self._form is not None:
            self.found.append(self._form)
            self._form = None


async def arrange(at: House) -> None:
    """Make some of everything that has a page."""
    bot = at.agent("bot", user="owner", projects=frozenset({"p", "q"}))
    fields: dict[str, Any] = {"tags": ["a&b", "ü"], "author": "bot", "conversation_id": "c"}
    for number in range(51):
        await bot.ask(StoreMemory(content=f"The vault of number {number} lies below", **fields))
    for text in ("before", "after"):
        twin = (
            await bot.ask(StoreMemory(content="The key lies in the vault below operations", **fields))
        ).memory_id
        await bot.ask(UpdateMemory(memory_id=twin, importance=0.7))
        await bot.ask(RateMemory(memory_id=twin, rating=-1.0, note=text))
    unreviewed = StoreMemory(content="a hook found the vault", unreviewed=True, **fields)
    await bot.ask(unreviewed)
    for number in range(52):
        gone = (await bot.ask(StoreMemory(content=f"gone {number}"))).memory_id
        await bot.ask(ForgetMemory(memory_id=gone))
    for number in range(52):
        await bot.ask(CreateSession(purpose="s", session_id=f"s{number}", project_id="p"))
    first = (await say(bot, "s0", *("said" for _ in range(130))))[0]
    await say(bot, "s0", "an answer", parent_message_id=first)
    await bot.ask(ExportSession(session_id="s0"))
    await bot.ask(RecallContext(task="the vault"))
    for number in range(53):
        document = document_of(f"{number} ü&.md", [(["Birds"], "# Birds\n\nherons of Redis")])
        await ask_corpus(at.runtime, OWNER, PutDocument(corpus="docs", document=document), make=True)
    declared = [
        EntityDeclaration(
            name=name, type="service", relations=[Relation(to="Redis", type="uses")] if number else []
        )
        for number, name in enumerate(("Redis", "Vault"))
    ]
    await bot.ask(DefineEntities(corpus="user:owner:docs", entities=declared))


def kept(lead: Lead) -> str:
    """Return as whom a page is seen to which something leads, as it stands in a URL."""
    return urlencode(
        {name: values for name, values in lead.given.items() if name.startswith("as")}, doseq=True
    )


def dropped(path: str, lead: Lead) -> set[str]:
    """Return the filters of a page that something in it which leads to the same one should have, too."""
    here = urlsplit(path)
    given = parse_qs(here.query)
    if unquote(lead.path) != unquote(here.path) or lead.current in {"page", "elsewhere"}:
        return set()
    if lead.name in TAKES_AWAY or any(lead.given.get(name) != given.get(name) for name in SHOWS):
        return set()
    filters = set(given) - PLACES - SHOWS
    if lead.given.get("in") != given.get("in"):
        filters -= OF_ONE_WAY
    if lead.name == "a form" and not filters & set(lead.given):
        return set()  # it is another form than that of the filters
    less = filters - set(lead.given)
    return set() if lead.current == "true" and len(less) == 1 else less  # a filter that is set is taken back


def kind_of(lead: Lead) -> object:
    """Return what pages have in common that are alike but for what they are about."""
    _, view, *below = unquote(lead.path).split("/")
    named = below if "/".join((view, *below)) in FILTERED else below[1:]
    return view, len(below), named, sorted((PLACES | SHOWS) & set(lead.given))


async def walk(guest: Looker, first: str, seen_as: str, known: set[str]) -> list[str]:
    """Follow every link from a page on, of those that are alike one; return what is wrong with all."""
    wrong: list[str] = []
    waiting = [first]
    for path in waiting:
        if path.startswith("/audit/export"):  # a file, for which a code is asked
            continue
        page = await guest.look(path)
        if page.status != HTTPStatus.OK:
            wrong.append(f"{path}: {page.status}")
        for lead in Leads(path, page).found:
            less = dropped(path, lead)
            if lead.name.startswith("See it as"):
                less -= set(parse_qs(SEEN_AS))
            elif kept(lead) != seen_as:
                wrong.append(f"{path}: {lead.name!r} leads to {lead.path} as {kept(lead)!r}")
            elif lead.name != "a form" and str(kind_of(lead)) not in known:
                known.add(str(kind_of(lead)))
                waiting.append(f"{lead.path}?{urlencode(lead.given, doseq=True)}")
            if less:
                wrong.append(f"{path}: {lead.name!r} drops {sorted(less)}")
    return wrong


@pytest.mark.slow
async def test_no_link_of_any_page_drops_as_whom_it_is_seen_or_a_filter(
    open_at: Opens, tmp_path: Path
) -> None:
    code = folder_of_code(tmp_path, 2)
    reach = Reach((), workspaces=(str(code),))
    async with open_at() as at, premises(at, reach=reach) as here, open_workspaces(at.runtime) as files:
        await arrange(at)
        bot = Agent(at.runtime, OWNER, reach=reach, workspaces=files)
        while (await bot.ask(SearchCodeSemantic(query="anchor"))).freshness.state != "watching":
            await trio.lowlevel.checkpoint()
        guest = await looker(here)
        await guest.see_as(SEEN_AS)
        (workspace,) = {each for each in (await guest.look("/code")).links if "/code/" in each}
        first = {**FILTERED, workspace.removeprefix("./"): "holding=part"}
        assert {name.partition("/")[0] for name in first} | {"audit"} == {entry.name for entry in ENTRIES}
        known = {str(kind_of(Lead("", "/audit", {})))}  # nobody reads it as another one
        wrong: list[str] = []
        for name, filters in first.items():
            wrong += await walk(guest, f"/{name}?{SEEN_AS}&{filters}".rstrip("&"), SEEN_AS, known)
        assert not wrong, "\n".join(wrong)
        assert len(known) > MANY
        assert await walk(guest, f"/audit?{OF_AUDIT}", "", known) == []


def test_a_link_that_drops_something_is_found() -> None:
    here = "/memories?as=bot&tag=a&type=semantic&cursor=x"
    for given, less in (
        ({"as": ["bot"], "tag": ["b"], "type": ["semantic"]}, set()),
        ({"as": ["bot"], "type": ["semantic"]}, {"tag"}),
        ({}, {"as", "tag", "type"}),
    ):
        assert dropped(here, Lead("x", "/memories", given)) == less
        assert dropped(here, Lead("All", "/memories", given)) == set()
        assert dropped(here, Lead("x", "/memories/duplicates", given)) == set()
    assert dropped(here, Lead("a", "/memories", {"as": ["bot"], "type": ["semantic"]}, "true")) == set()
