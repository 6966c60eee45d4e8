"""A project as a resource: what its members learn, each as far as they may see, and what nobody else does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import trio
import trio.testing
from support.agents import AuditTrail, refused, wire
from support.corpora import document_of

from greenroom.actors import (
    Agent,
    CompleteResource,
    CreateSession,
    DecisionMade,
    DefineEntities,
    EndSession,
    EntityDeclaration,
    ListResources,
    Principal,
    PutDocument,
    ReadResource,
    RecordContext,
    RecordWorkflowStep,
    Relation,
    ask_corpus,
)
from greenroom.actors.core.git.project_names import project_of_path
from greenroom.actors.knowledge.corpora.requests.workspace import KeepWorkspace
from greenroom.actors.knowledge.corpora.tools.corpus_admin import ensure_corpus

if TYPE_CHECKING:
    from support.agents import Enter, House

ATLAS = ("greenroom://project/atlas", "omnimemory://project/atlas")
ANN: dict[str, Any] = {"agent_id": "a", "user": "ann", "projects": frozenset({"atlas"})}
MEMBER: dict[str, Any] = {"agent_id": "b", "user": "ben", "projects": frozenset({"atlas", "other"})}
STRANGER: dict[str, Any] = {"agent_id": "c", "user": "cy", "projects": frozenset({"other"})}
NOTHING = {
    "file_index": {"total_files": 0, "indexed_files": 0, "last_index": None},
    "knowledge_graph": {"nodes": 0, "edges": 0},
    "common_patterns": [],
    "corpora": [],
    "decisions": [],
    "partial": False,
}
ROOT = "/home/ann/code"


def agent(at: House, who: dict[str, Any], *scopes: str) -> Agent:
    return Agent(at.runtime, Principal(**who, scopes=frozenset(scopes or {"*"})))


async def project(reader: Agent, uri: str = ATLAS[0]) -> dict[str, Any]:
    read: dict[str, Any] = wire(await reader.ask(ReadResource(uri=uri)))
    return read


async def fill(at: House, corpus: str, *paths: str) -> None:
    who = Principal(**ANN)
    for path in paths:
        await ask_corpus(
            at.runtime, who, PutDocument(corpus=corpus, document=document_of(path, [([], path)])), make=True
        )


async def decide(at: House, session_id: str, *what: str, who: dict[str, Any] = ANN, **session: Any) -> None:
    deciding = agent(at, who)
    await deciding.ask(CreateSession(purpose="p", session_id=session_id, **session))
    for each in what:
        at.tick()
        await deciding.ask(
            RecordContext(session_id=session_id, decisions=[DecisionMade(what=each, why="so")])
        )


@pytest.mark.promise("resources.project", "resources.alike")
async def test_who_is_no_member_learns_nothing_not_even_that_there_is_one(enter: Enter) -> None:
    async with enter() as at:
        await fill(at, "project:atlas:docs", "a.md")
        await decide(at, "s", "we sail", project_id="atlas")
        answers = set()
        for uri in (*ATLAS, "greenroom://project/nowhere", "greenroom://project/%ff", "greenroom://project/"):
            with refused("RESOURCE_NOT_FOUND") as caught:
                await agent(at, STRANGER).ask(ReadResource(uri=uri))
            answers.add(str(caught.value).replace(uri, "URI"))
        assert len(answers) == 1
        with refused("RESOURCE_NOT_FOUND"):  # of every project, so that this one may be misspelt
            await agent(at, {"agent_id": "root"}).ask(ReadResource(uri="greenroom://project/nowhere"))
        assert (await project(agent(at, {"agent_id": "root"})))["corpora"] == ["project:atlas:docs"]
        assert {
            name: (await project(agent(at, MEMBER), "greenroom://project/other"))[name] for name in NOTHING
        } == NOTHING


@pytest.mark.promise("resources.project")
async def test_every_figure_is_over_what_the_reader_may_see(enter: Enter) -> None:
    async with enter() as at:
        await fill(at, "project:atlas:docs", "a.md", "b.md")
        await fill(at, "all:docs", "c.md")  # of no project
        here = project_of_path(ROOT)
        uri = f"greenroom://project/{here}"
        await ensure_corpus(at.runtime, Principal(**ANN), "user:ann:code-1", ROOT)
        await fill(at, "user:ann:code-1", "x.py", "y.py", "z.py")
        keeping = KeepWorkspace(corpus="user:ann:code-1", keeper="k", state="indexing", of=5)
        await ask_corpus(at.runtime, Principal(**ANN), keeping)
        related = EntityDeclaration(
            name="Stripe", type="vendor", relations=[Relation(type="uses", to="Acme")]
        )
        declared = [related, EntityDeclaration(name="Acme", type="vendor")]
        await agent(at, ANN).ask(DefineEntities(corpus="project:atlas:docs", entities=declared))
        await agent(at, ANN).ask(DefineEntities(corpus="user:ann:code-1", entities=declared[1:]))

        read = await project(agent(at, MEMBER))
        assert (read["file_index"]["total_files"], read["file_index"]["indexed_files"]) == (2, 2)
        assert read["file_index"]["last_index"] == read["resource_info"]["last_updated"]
        assert (read["knowledge_graph"], read["corpora"]) == (
            {"nodes": 2, "edges": 1},
            ["project:atlas:docs"],
        )

        for who, scopes, expected in (
            (ANN | {"projects": None}, (), (5, 3, 1)),
            (ANN | {"projects": frozenset({here})}, (), (5, 3, 1)),
            (ANN | {"projects": frozenset({here})}, ("knowledge:read",), (0, 0, 0)),
            (MEMBER | {"projects": frozenset({here})}, (), (0, 0, 0)),
        ):
            read = await project(agent(at, who, *scopes), uri)
            index = read["file_index"]
            assert (
                index["total_files"],
                index["indexed_files"],
                read["knowledge_graph"]["nodes"],
            ) == expected


@pytest.mark.promise("resources.project")
async def test_decisions_are_those_of_its_sessions_newest_first_for_who_may_read_sessions(
    enter: Enter,
) -> None:
    async with enter() as at:
        await decide(at, "s1", "first", "second", project_id="atlas")
        await decide(at, "s2", "third", project_id="atlas")
        await decide(at, "open", "of no project")
        await decide(at, "s3", "of another", who=MEMBER, project_id="other")
        await agent(at, ANN).ask(EndSession(session_id="s2", summary="it is done"))
        read = await project(agent(at, MEMBER), ATLAS[1])
        assert [each["what"] for each in read["decisions"]] == ["it is done", "third", "second", "first"]
        assert read["decisions"][1] == {
            **read["decisions"][1], "why": "so", "by": "a", "session_id": "s2",
        }  # fmt: skip
        assert read["resource_info"]["uri"] == ATLAS[0]
        narrow = await project(agent(at, MEMBER, "knowledge:read"))
        assert (narrow["decisions"], narrow["partial"]) == ([], False)


@pytest.mark.promise("resources.project")
async def test_patterns_are_those_of_ones_own_user_in_this_project(enter: Enter) -> None:
    async with enter() as at:
        for number in range(12):
            for command in ("git pull", "git push"):
                at.tick()
                await agent(at, ANN).ask(RecordWorkflowStep(command=command))
            if number == 0:
                assert (await project(agent(at, ANN)))["common_patterns"] == []
        (found,) = (await project(agent(at, ANN)))["common_patterns"]
        assert found["commands"] == ["git pull", "git push"]
        pattern = wire(await agent(at, ANN).ask(ReadResource(uri=found["uri"])))["pattern"]
        assert pattern["commands"] == found["commands"]
        omni = found["uri"].replace("greenroom", "omnimemory")
        assert wire(await agent(at, ANN).ask(ReadResource(uri=omni)))["pattern"] == pattern
        for reader in (agent(at, MEMBER), agent(at, ANN, "knowledge:read")):
            assert (await project(reader))["common_patterns"] == []


@pytest.mark.promise("resources.project")
async def test_many_decisions_are_cut_and_it_says_so(enter: Enter) -> None:
    async with enter() as at:
        await decide(at, "s", *(f"number {number}" for number in range(60)), project_id="atlas")
        read = await project(agent(at, MEMBER))
        assert [each["what"] for each in read["decisions"]] == [f"number {n}" for n in range(59, 9, -1)]
        assert read["partial"]


@pytest.mark.promise("resources.project", "resources.heard")
async def test_each_part_is_heard_of_by_who_may_see_that_part(enter: Enter) -> None:
    async with enter() as at:
        here = project_of_path(ROOT)
        uri = f"greenroom://project/{here}"
        await ensure_corpus(at.runtime, Principal(**ANN), "user:ann:code-1", ROOT)
        members = frozenset({here})
        readers = {
            "ann": agent(at, ANN | {"projects": members}),
            "documents-alone": agent(at, ANN | {"projects": members}, "knowledge:read"),
            "ben": agent(at, MEMBER | {"projects": members}),
            "stranger": agent(at, STRANGER),
        }
        owner = Principal(**ANN | {"projects": members})

        async def put(corpus: str, text: str) -> None:
            request = PutDocument(corpus=corpus, document=document_of("a.md", [([], text)]))
            await ask_corpus(at.runtime, owner, request, make=True)

        async def code(text: str) -> None:
            await put("user:ann:code-1", text)

        async def documents(text: str) -> None:
            await put(f"project:{here}:docs", text)

        async def decision(text: str) -> None:
            await decide(at, f"s-{text}", text, who=ANN | {"projects": members}, project_id=here)

        async def hidden(text: str) -> None:
            await put("user:ann:notes", text)
            await agent(at, ANN).ask(CreateSession(purpose=text, session_id=f"other-{text}"))

        for change, expected in (
            (code, {"ann"}),
            (documents, {"ann", "documents-alone", "ben"}),
            (decision, {"ann", "ben"}),
            (hidden, set()),
        ):
            heard = set()
            for name, reader in readers.items():
                with reader.subscriber(0) as subscriber:
                    subscriber.add(uri)
                    await change(name)
                    with trio.move_on_after(1):
                        assert await subscriber.next() == uri
                        heard.add(name)
            assert heard == expected


@pytest.mark.promise("resources.listing", "resources.completion")
async def test_projects_are_listed_and_completed_for_their_members(enter: Enter) -> None:
    async with enter() as at:
        await fill(at, "project:atlas:docs", "a.md")
        await decide(at, "s", "sail", who=MEMBER, project_id="other")
        whole = {"agent_id": "root"}
        for who, names in ((MEMBER, ["atlas", "other"]), (STRANGER, ["other"]), (whole, ["atlas", "other"])):
            reader = agent(at, who)
            listed = [each.uri for each in (await reader.ask(ListResources())).resources]
            assert [uri for uri in listed if "/project/" in uri] == [
                f"greenroom://project/{name}" for name in names
            ]
            for uri in listed:
                await reader.ask(ReadResource(uri=uri))
            for scheme in ("greenroom", "omnimemory"):
                asked = CompleteResource(
                    template=f"{scheme}://project/{{project_id}}", argument="project_id", value="o"
                )
                assert (await reader.ask(asked)).values == ["other"]
        asked = CompleteResource(template="greenroom://project/{project_id}", argument="project_id")
        blind = agent(at, whole, "knowledge:read")
        assert (await blind.ask(asked)).values == ["atlas"], "it may read no sessions"


@pytest.mark.promise("resources.project")
@pytest.mark.parametrize("name", ["a b/c", "ünï", "x" * 128, "%41", "a:b"])
async def test_projects_with_odd_names_are_read_by_the_uri_in_the_listing(enter: Enter, name: str) -> None:
    async with enter() as at:
        who = ANN | {"projects": frozenset({name})}
        await decide(at, "s", "sail", who=who, project_id=name)
        (uri,) = [
            each.uri
            for each in (await agent(at, who).ask(ListResources())).resources
            if "/project/" in each.uri
        ]
        read = await project(agent(at, who), uri)
        assert (read["project_id"], len(read["decisions"])) == (name, 1)


@pytest.mark.promise("resources.audited")
async def test_each_read_and_each_denial_is_in_the_audit_log(enter: Enter) -> None:
    async with enter() as at:
        await fill(at, "project:atlas:docs", "a.md")
        await project(agent(at, MEMBER))
        with refused("RESOURCE_NOT_FOUND"):
            await project(agent(at, STRANGER))
        await trio.testing.wait_all_tasks_blocked()
        rows = [row for row in await at.runtime.query(AuditTrail()) if row.action == "read_resource"]
        assert [(row.agent, row.outcome, row.details["target"]) for row in rows] == [
            ("b", "done", ATLAS[0]),
            ("c", "denied", ATLAS[0]),
        ]
