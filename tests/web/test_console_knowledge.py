"""Knowledge and code in the console: corpora, documents, entities, workspaces, files and symbols."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest
import trio
from support.agents import refused
from support.console import looker
from support.corpora import document_of
from support.keyed import create_key, premises
from support.workspaces import folder_of_code

from greenroom.actors import (
    Agent,
    ClientContext,
    DefineEntities,
    DropCorpus,
    EntityDeclaration,
    IngestDocuments,
    Principal,
    PutDocument,
    Reach,
    Relation,
    SearchCodeSemantic,
    StoreMemory,
    WorkspaceFiles,
    ask_corpus,
)
from greenroom.actors.knowledge.corpora.requests import corpus_requests as corpus_schemas
from greenroom.actors.knowledge.workspaces.index_lease import open_workspaces

if TYPE_CHECKING:
    from pathlib import Path

    from support.agents import House
    from support.console import Shown
    from support.passports import Opens

OWNER = Principal(agent_id="bot", user="owner")
HOSTILE = '"><script>alert(1)</script><img src=x onerror=alert(1)>\u202e{{7*7}}'
CORPUS = "user:owner:docs"


async def put(at: House, path: str, *parts: tuple[list[str], str], title: str | None = None) -> None:
    document = document_of(path, parts or [(["One"], "some text")], title=title)
    await ask_corpus(at.runtime, OWNER, PutDocument(corpus="docs", document=document), make=True)


def rows(page: Shown) -> int:
    return len([each for each in page.named("tr") if "data-row" in each])


async def test_corpora_documents_and_their_outlines_are_shown(open_at: Opens) -> None:
    async with open_at() as at, premises(at) as here:
        guest = await looker(here)
        empty = await guest.look("/knowledge")
        assert "There are no corpora yet. greenroom ingest FOLDER" in empty.text
        await put(at, "a b/ü#?.md", (["Birds"], "# Birds\n\nherons"), (["Birds", "Reeds"], "in the reeds"))
        await put(at, "plain.md", (["Fish"], "```\n# no heading\n```\npikes"))
        listed = await guest.look("/knowledge")
        listed.check_inert()
        assert "user:owner:docs 2 3" in listed.text
        assert f"./knowledge/{quote(CORPUS, safe='')}" in listed.links
        corpus = await guest.look(f"/knowledge/{CORPUS}")
        corpus.check_inert()
        assert rows(corpus) == 2
        (lead,) = [link for link in corpus.links if "%C3%BC" in link]
        page = await guest.look(lead.removeprefix(".."))
        page.check_inert()
        assert "Path a b/ü#?.md Kind markdown, 27 B, 2 passages" in page.text, page.text
        assert "it was sent as a text" in page.text
        assert "Outline Birds Reeds Birds herons Reeds in the reeds" in page.text
        assert [link for link in page.links if "#section" in link] == ["#section-1", "#section-2"]
        fenced = await guest.look(f"/knowledge/{CORPUS}?document=plain.md")
        assert "Outline" not in fenced.text
        assert "# no heading" in fenced.text


@pytest.mark.slow
async def test_documents_come_in_pages_and_filters_go_along(open_at: Opens) -> None:
    async with open_at() as at, premises(at) as here:
        for number in range(53):
            await put(at, f"birds/{number:02}.md", title=f"Heron {number}")
        await put(at, "fish.md", title="Pike")
        guest = await looker(here)
        first = await guest.look(f"/knowledge/{CORPUS}?holding=HERON&kind=markdown")
        (following,) = [link for link in first.links if "cursor=" in link]
        assert "holding=HERON" in following
        second = await guest.look(following.removeprefix(".."))
        assert (rows(first), rows(second)) == (50, 3)
        assert not [link for link in second.links if "fish" in link]
        assert rows(await guest.look(f"/knowledge/{CORPUS}?holding=fish.md")) == 1
        none = await guest.look(f"/knowledge/{CORPUS}?kind=pdf")
        assert "There are no documents here." in none.text


@pytest.mark.promise("console.freshness")
async def test_files_that_changed_or_are_gone_are_told_apart(open_at: Opens, tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    for name in ("same", "other", "gone"):
        (folder / f"{name}.md").write_text(f"# {name}\n\ntext of {name}\n")
    reach = Reach((str(folder),))
    async with open_at() as at, premises(at, reach=reach) as here:
        bot = Agent(at.runtime, OWNER, reach=reach)
        await bot.ask(IngestDocuments(paths=[str(folder)], corpus="docs"))
        await put(at, str(folder / "same.txt"))  # a text under the name of a file is no file
        guest = await looker(here)
        page = await guest.look(f"/knowledge/{CORPUS}")
        assert "changed since" not in page.text
        assert page.text.count("unchanged") == 3
        (folder / "other.md").write_text("# other\n\nnow another text\n")
        (folder / "gone.md").unlink()
        page = await guest.look(f"/knowledge/{CORPUS}")
        assert "Of 3 files on this page 1 changed since they were indexed and 1 are missing." in page.text
        states = ("unchanged", "changed since", "not checked")
        assert [page.text.count(state) for state in states] == [1, 2, 1]
        one = await guest.look(f"/knowledge/{CORPUS}?document={quote(str(folder / 'gone.md'))}")
        assert "On disk now missing" in one.text
    async with open_at() as at, premises(at, reach=Reach(())) as here:
        page = await (await looker(here)).look(f"/knowledge/{CORPUS}")
        assert page.text.count("not checked") == 4


@pytest.mark.slow
async def test_an_entity_is_shown_where_it_is_mentioned(open_at: Opens) -> None:
    async with open_at() as at, premises(at) as here:
        await put(at, "a.md", (["Stores"], "Acme Queue and Bolt DB hold what waits"))
        bot = at.agent("bot", user="owner")
        declared = [
            EntityDeclaration(name="Acme Queue", type="vendor", aliases=["AQ"], description="holds messages"),
            EntityDeclaration(name="Bolt DB", type="library", relations=[Relation("Acme Queue", "used_by")]),
        ]
        await bot.ask(DefineEntities(entities=declared, corpus="docs"))
        await bot.ask(StoreMemory(content="Acme Queue is slow on Mondays", key="mondays"))
        guest = await looker(here)
        listed = await guest.look(f"/knowledge/{CORPUS}?show=entities")
        assert re.search(r"Acme Queue vendor holds messages 1 Bolt DB library 1", listed.text), listed.text
        assert rows(await guest.look(f"/knowledge/{CORPUS}?show=entities&type=library")) == 1
        assert rows(await guest.look(f"/knowledge/{CORPUS}?show=entities&holding=aq")) == 1
        page = await guest.look(f"/knowledge/{CORPUS}?entity=Acme%20Queue")
        page.check_inert()
        for told in (
            "Type vendor",
            "Also called AQ",
            "hold what waits",
            "mondays",
            "Bolt DB used_by Acme Queue",
        ):
            assert told in page.text, (told, page.text)
        none = await guest.look(f"/knowledge/{CORPUS}?entity=zzzzqqqq")
        assert "nothing is called 'zzzzqqqq'" in none.text


async def test_a_search_leads_to_documents(open_at: Opens) -> None:
    async with open_at() as at, premises(at) as here:
        await put(at, "heron.md", (["Heron"], "the heron stands in the reeds"))
        guest = await looker(here)
        for path in ("/knowledge", f"/knowledge/{CORPUS}"):
            page = await guest.look(f"{path}?q=heron")
            assert "the heron stands in the reeds" in page.text
            assert [link for link in page.links if link.endswith("docs?document=heron.md")]
        assert "Nothing was found." in (await guest.look("/knowledge?q=zzzzqqqq")).text


@pytest.mark.slow
@pytest.mark.promise("console.inert")
async def test_what_documents_say_stays_text(open_at: Opens) -> None:
    async with open_at() as at, premises(at) as here:
        path = f"javascript:alert(1)/{HOSTILE}.md"
        await put(at, path, ([HOSTILE], f"# {HOSTILE}\n\n{HOSTILE}\n" + "x" * 100_000), title=HOSTILE)
        entity = EntityDeclaration(name=HOSTILE, type="vendor", description=HOSTILE, aliases=["javascript:x"])
        await at.agent("bot", user="owner").ask(DefineEntities(entities=[entity], corpus="docs"))
        guest = await looker(here)
        shown = [
            await guest.look(f"/knowledge/{CORPUS}{query}")
            for query in (
                "",
                f"?document={quote(path, safe='')}",
                "?show=entities",
                f"?entity={quote(HOSTILE, safe='')}",
                "?q=alert",
            )
        ]
        for page in shown:
            page.check_inert()
            assert page.status == 200
            assert "<script>alert(1)</script>" in page.text
            assert b"<title>&#x2068;" in page.answer.body, "its direction ends with it"


async def test_what_the_url_says_wrong_and_what_others_have_is_refused(open_at: Opens) -> None:
    async with open_at() as at, premises(at) as here:
        await put(at, "a.md")
        bob = await create_key(at, "knowledge:read", agent="bot", user="bob")
        closed = await create_key(at, "memory:read", agent="bot", user="owner")
        await here.settled()
        owner, other, shut = [await looker(here, key) for key in (None, bob, closed)]
        for query, status in {
            "?cursor=x": 422,
            "?show=entities&cursor=-1": 422,
            "?show=entities&type=poem": 422,
            "?document=never.md": 404,
            f"?q={'x' * 501}": 422,
        }.items():
            assert (await owner.look(f"/knowledge/{CORPUS}{query}")).status == status, query
        assert (await owner.look("/knowledge/user:owner:never")).status == 404
        assert (await owner.look("/code/user:owner:docs")).status == 404
        assert CORPUS not in (await other.look("/knowledge")).text
        assert (await other.look(f"/knowledge/{CORPUS}")).status == 404
        page = await shut.look("/knowledge")
        assert (page.status, "knowledge:read" in page.text) == (403, True)
        assert not [link for link in (await shut.look("/")).links if "knowledge" in link or "code" in link]


async def test_each_document_opens_whatever_its_path_is(open_at: Opens) -> None:
    async with open_at() as at, premises(at) as here:
        guest = await looker(here)
        paths = [" a.md", "a.md ", "%2e%2e.md", "a?b&c=d#e.md", "x\u202e\x07y.md", "ü" * 4_093 + ".md"]
        for number, path in enumerate(paths):
            await put(at, path, ([], f"text {number}"), title="Heron")
        listed = await guest.look(f"/knowledge/{CORPUS}")
        leads = [link for link in listed.links if "document=" in link]
        texts = set()
        for lead in leads:
            page = await guest.look(lead.removeprefix(".."))
            page.check_inert()
            assert page.status == 200, (len(lead), page.text)
            assert "not checked" in page.text, "it is found in the listing, too"
            texts.add(page.text.rpartition("text ")[2])
        assert texts == {str(number) for number in range(len(paths))}


@pytest.mark.slow
async def test_very_many_headings_are_text(open_at: Opens) -> None:
    async with open_at() as at, premises(at) as here:
        lines = [f"# h{number}\n" for number in range(5_000)]
        await put(at, "many.md", ([], "".join(lines)))
        page = await (await looker(here)).look(f"/knowledge/{CORPUS}?document=many.md")
        assert len([link for link in page.links if "#section" in link]) == 1_000
        assert "h4999" in page.text


async def test_a_corpus_that_goes_while_its_page_is_open_says_so(open_at: Opens) -> None:
    async with open_at() as at, premises(at) as here:
        await put(at, "a.md")
        guest = await looker(here)
        assert rows(await guest.look(f"/knowledge/{CORPUS}")) == 1
        await DropCorpus(corpus="docs").run(ClientContext(at.runtime, OWNER))
        for query in ("", "?document=a.md", "?show=entities", "?entity=x", "?q=text"):
            page = await guest.look(f"/knowledge/{CORPUS}{query}")
            assert (page.status, page.named("main")[0]["data-topics"]) == (404, "[]"), query
            assert "There are no corpora yet." in (await guest.look("/knowledge")).text


@pytest.mark.slow
async def test_a_filter_looks_at_some_documents_and_its_link_goes_on(
    open_at: Opens, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(corpus_schemas, "MOST_LOOKED_AT", 5)
    async with open_at() as at, premises(at) as here:
        for number in range(12):
            await put(at, f"{number}.md", title="Heron" if number else "Pike")
        guest = await looker(here)
        found, pages, lead = 0, 0, f"../knowledge/{CORPUS}?holding=pike"
        while lead:
            page = await guest.look(lead.removeprefix(".."))
            found, pages = found + rows(page), pages + 1
            lead = next((link for link in page.links if "cursor=" in link), "")
            assert rows(page) or lead or "There are no documents here." in page.text
        assert (found, pages) == (1, 3)


@pytest.mark.slow
async def test_source_code_leads_to_where_its_symbols_are(open_at: Opens, tmp_path: Path) -> None:
    code = folder_of_code(tmp_path, 1)
    reach = Reach([str(code)], workspaces=(str(code),))
    async with open_at() as at, premises(at, reach=reach) as here:
        bot = Agent(at.runtime, OWNER, reach=reach)
        await bot.ask(IngestDocuments(paths=[str(code)], corpus="docs"))
        guest = await looker(here)
        listed = await guest.look(f"/knowledge/{CORPUS}")
        assert "Python" in listed.text
        (lead,) = [link for link in listed.links if "document=" in link]
        page = await guest.look(lead.removeprefix(".."))
        assert "without symbols and imports" in page.text
        assert "greenroom serve --workspace FOLDER" in page.text
        await bot.ask(SearchCodeSemantic(query="anchor"))
        page = await guest.look(lead.removeprefix(".."))
        (there,) = [link for link in page.links if "/code/" in link]
        assert there.endswith("?file=part_0.py")
        closed = await create_key(at, "knowledge:read", agent="bot", user="owner")
        await here.settled()
        page = await (await looker(here, closed)).look(lead.removeprefix(".."))
        assert (page.status, [link for link in page.links if "/code/" in link]) == (200, [])


@pytest.mark.slow
async def test_who_reads_code_alone_is_shown_no_corpora(open_at: Opens, tmp_path: Path) -> None:
    code = folder_of_code(tmp_path, 1)
    reach = Reach((), workspaces=(str(code),))
    async with open_at() as at, premises(at, reach=reach) as here, open_workspaces(at.runtime) as kept:
        await put(at, "a.md")
        bot = Agent(at.runtime, OWNER, reach=reach, workspaces=kept)
        while (await bot.ask(SearchCodeSemantic(query="anchor"))).freshness.state != "watching":
            await trio.lowlevel.checkpoint()
        reads = {
            name: await create_key(at, f"{name}:read", agent="bot", user="owner")
            for name in ("code", "knowledge")
        }
        await here.settled()
        guest, other = await looker(here, reads["code"]), await looker(here, reads["knowledge"])
        (lead,) = [link.removeprefix(".") for link in (await guest.look("/code")).links if "./code/" in link]
        for query in ("", "?file=part_0.py", "?symbol=part_0"):
            assert (await guest.look(f"{lead}{query}")).status == 200, query
            assert (await other.look(f"{lead}{query}")).status in {403, 404}, query
        assert (await guest.look(f"/knowledge/{CORPUS}")).status in {403, 404}
        with refused("CORPUS_NOT_FOUND"):
            await bot.ask(WorkspaceFiles(corpus=CORPUS))
        page = await other.look("/knowledge")
        assert (page.status, str(code) in page.text) == (200, False)


@pytest.mark.slow
async def test_a_workspace_its_files_and_its_symbols_are_shown(open_at: Opens, tmp_path: Path) -> None:
    code = folder_of_code(tmp_path, 2)
    (code / "user.py").write_text(
        "import json\n\nfrom part_0 import part_0\n\n\ndef use():\n    return part_0()\n"
    )
    reach = Reach((), workspaces=(str(code),))
    async with open_at() as at, premises(at, reach=reach) as here, open_workspaces(at.runtime) as kept:
        guest = await looker(here)
        assert "No code is indexed yet." in (await guest.look("/code")).text
        bot = Agent(at.runtime, OWNER, reach=reach, workspaces=kept)
        while (await bot.ask(SearchCodeSemantic(query="anchor"))).freshness.state != "watching":
            await trio.lowlevel.checkpoint()
        listed = await guest.look("/code")
        listed.check_inert()
        assert f"{code} up to date 3" in listed.text
        assert "There are no corpora yet." in (await guest.look("/knowledge")).text
        (lead,) = [link.removeprefix(".") for link in listed.links if "./code/" in link]
        page = await guest.look(lead)
        page.check_inert()
        assert rows(page) == 3
        assert rows(await guest.look(f"{lead}?holding=user.py")) == 1
        found = await guest.look(f"{lead}?symbol=part_0")
        assert "part_0 function part_0.py:1" in found.text
        assert "user.py:7 call use scopes and imports" in found.text
        assert [link for link in found.links if link.endswith("?file=user.py&line=7#L7")]
        of_user = await guest.look(f"{lead}?file=user.py")
        of_user.check_inert()
        assert "Symbols def use() 6 Source import json" in of_user.text
        assert [link for link in of_user.links if link.endswith("?file=user.py#L6")]
        assert "L7" in [each.get("id") for each in of_user.named("li")]
        needs = "Imports part_0.py From outside the workspace json Imported by No file of the workspace."
        assert needs in of_user.text
        assert "Imported by user.py" in (await guest.look(f"{lead}?file=part_0.py")).text
        unknown = await guest.look(f"{lead}?file=never.py")
        assert "never.py' is not there, in " in unknown.text
    async with open_at() as at, premises(at, reach=Reach(())) as here:
        page = await (await looker(here)).look(f"{lead}?symbol=part_0")
        assert "it is not known which folder of code is meant" in page.text
        assert rows(page) == 3


@pytest.mark.slow
@pytest.mark.quick
@pytest.mark.promise("console.code")
async def test_a_workspace_is_a_tree_and_a_file_its_source_in_pages(open_at: Opens, tmp_path: Path) -> None:
    code = folder_of_code(tmp_path, 2)
    (code / "deep" / "er").mkdir(parents=True)
    (code / "deep" / "er" / "low.py").write_text("def low():\n    return '<b>'\n")
    (code / "deep" / "long.py").write_text("".join(f"x_{number} = {number}\n" for number in range(1_200)))
    reach = Reach((), workspaces=(str(code),))
    async with open_at() as at, premises(at, reach=reach) as here, open_workspaces(at.runtime) as kept:
        bot = Agent(at.runtime, OWNER, reach=reach, workspaces=kept)
        while (await bot.ask(SearchCodeSemantic(query="low"))).freshness.state != "watching":
            await trio.lowlevel.checkpoint()
        guest = await looker(here)
        (lead,) = [link.removeprefix(".") for link in (await guest.look("/code")).links if "./code/" in link]
        page = await guest.look(lead)
        page.check_inert()
        assert rows(page) == 3
        assert "deep/ 2 files" in page.text
        page = await guest.look(f"{lead}?folder=deep")
        assert "er/ 1 file" in page.text
        assert "long.py" in page.text
        assert rows(page) == 2
        low = await guest.look(f"{lead}?file=deep/er/low.py")
        low.check_inert()
        assert "return '<b>'" in low.text
        assert [link for link in low.links if link.endswith("?folder=deep%2Fer")]
        long = await guest.look(f"{lead}?file=deep/long.py&line=501")
        numbers = [each["value"] for each in long.named("li") if each.get("value")]
        assert (numbers[0], numbers[-1]) == ("501", "1000")
        assert [link for link in long.links if link.endswith("line=1001")]
        last = await guest.look(f"{lead}?file=deep/long.py&line=1200")
        assert "x_1199 = 1199" in last.text
        assert not [link for link in last.links if link.endswith("line=1201")]
        beyond = await guest.look(f"{lead}?file=deep/er/low.py&line=9999")
        assert beyond.status == 200
        assert rows(await guest.look(f"{lead}?folder=never")) == 0
