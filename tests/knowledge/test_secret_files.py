"""Files whose names say that they hold secrets: no tool reads or finds them, but others that look alike."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from shlex import quote

import msgspec
import pytest
import trio
from harness import PATIENCE
from msgspec import UNSET, UnsetType
from support.agents import FAST
from support.code_agents import ANN, agent_in, read, search, settled
from support.corpora import document_of

from greenroom.actors import REQUESTS, Agent, PutDocument, Reach, ask_corpus, open_greenroom, parse_request
from greenroom.actors.knowledge.corpora.tools.corpus_admin import ensure_corpus
from greenroom.actors.knowledge.ingest.files.exclusions import SECRET, file_reason
from greenroom.actors.knowledge.ingest.files.walk import Found, walk, walk_below
from greenroom.actors.knowledge.ingest.run import open_ingestion
from greenroom.actors.knowledge.ingest.run_state import MAX_SECRETS
from greenroom.actors.knowledge.workspaces.index_lease import open_workspaces
from greenroom.actors.knowledge.workspaces.places import resolve_file, workspace_name
from greenroom.runtime import Refusal


def _paths(name: str) -> list[str]:
    """Return the paths of a list, without the lines that begin with "# "."""
    lines = (Path(__file__).parent.parent / "data" / name).read_text().splitlines()
    return [line for line in lines if not line.startswith("# ")]


SECRET_PATHS, PLAIN_PATHS = _paths("secret_paths.txt"), _paths("plain_paths.txt")


@pytest.mark.promise("code.secret-names")
@pytest.mark.parametrize("path", SECRET_PATHS)
def test_a_name_or_a_place_of_a_secret(path: str) -> None:
    assert file_reason(f"/home/ann/shop/{path}") == SECRET


@pytest.mark.parametrize("path", PLAIN_PATHS)
def test_a_name_that_only_looks_like_one(path: str) -> None:
    assert file_reason(f"/home/ann/shop/{path}") != SECRET


@pytest.mark.promise("code.secret-names")
def test_a_setting_has_no_folder_of_keys_read(tmp_path: Path) -> None:
    for path in (".ssh/config", "a/.AWS/credentials", ".config/gh/hosts.yml", ".docker/config.json"):
        with pytest.raises(Refusal, match=r"it may hold secrets$"):
            resolve_file("path", path, [str(tmp_path)], [], ["*"])


ALL_PATHS = [f"{number:03}/{path}" for number, path in enumerate((*SECRET_PATHS, *PLAIN_PATHS))]
SECRETS_PY = next(path for path in ALL_PATHS if path.endswith("/secrets.py"))
HIDDEN_PATHS = ALL_PATHS[: len(SECRET_PATHS)]
"""Those of secrets."""


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A workspace with a file at each of these paths, and a word of its own in each."""
    folder = (tmp_path / "shop").resolve()
    for path in ALL_PATHS:
        (folder / path).parent.mkdir(parents=True)
        (folder / path).write_text(f"# kelp{path[:3]}\n")
    return folder


@pytest.mark.slow
@pytest.mark.promise("code.secret-names")
async def test_no_tool_reads_or_finds_what_is_a_secret_by_its_name(shop: Path, tmp_path: Path) -> None:
    async with agent_in(tmp_path, shop, is_kept=True) as agent:
        await settled(agent)
        said = ""
        for tool, arguments in {
            "search_code_semantic": '{"query":"kelp001 kelp002 secrets token","limit":50}',
            "code_search": '{"pattern":"regex kelp","limit":500}',
            "symbol_search": '{"symbol":"kelp*"}',
            "outline": '{"path":"","max_tokens":10000}',
            "dependency_search": '{"target":"kelp000"}',
            "similar_files": json.dumps({"path": SECRETS_PY, "limit": 50}),
        }.items():
            answer = await agent.ask(parse_request(REQUESTS[tool], arguments.encode()))
            assert answer.freshness.left_out_as_secret > len(SECRET_PATHS) * 0.9, tool
            said += msgspec.json.encode(answer).decode()
        assert [path for path in ALL_PATHS if f"kelp{path[:3]}" in said.replace('kelp000"', "")] != []
        assert [path for path in HIDDEN_PATHS if f'"{path}"' in said] == []


@pytest.mark.slow
@pytest.mark.promise("code.secret-names")
async def test_a_refusal_says_how_to_let_a_file_in_and_that_does(shop: Path, tmp_path: Path) -> None:
    async with agent_in(tmp_path, shop) as agent:
        for path in ALL_PATHS:
            (file,) = await read(agent, json.dumps({"paths": [path]}))
            refusal = (
                f"it may hold secrets, by its name or place; `greenroom serve --read-secrets {quote(path)}`"
            )
            assert (not file.text, refusal in str(file.error)) == ((path in HIDDEN_PATHS,) * 2), path
    async with agent_in(tmp_path, shop, secrets=tuple(HIDDEN_PATHS)) as agent:
        for path in HIDDEN_PATHS:
            (file,) = await read(agent, json.dumps({"paths": [path]}))
            assert file.text == f"# kelp{path[:3]}\n"


@pytest.mark.promise("code.secret-names")
@pytest.mark.parametrize(
    "name",
    [
        "secrets/[env].json",
        "secrets/*?.json",
        'secrets/it\'s "$HOME".json',
        "secrets/a\\b.json",
        "[x]/deploy.txt",
        "secrets/a,b.json",
    ],
)
async def test_the_pattern_of_a_refusal_lets_in_the_file_and_no_other(tmp_path: Path, name: str) -> None:
    code = (tmp_path / "code").resolve()
    held = "-----BEGIN OPENSSH PRIVATE KEY-----\nkelp\n" if name.endswith(".txt") else "kelp\n"
    for each in (name, "secrets/e.json"):
        (code / each).parent.mkdir(parents=True, exist_ok=True)
        (code / each).write_text(held)
    async with agent_in(tmp_path, code) as agent:
        (file,) = await read(agent, json.dumps({"paths": [name]}))
    found = re.search(
        r"it may hold secrets, by .*; `greenroom serve (.*)` has read_file read it$", str(file.error)
    )
    assert found is not None
    flag, pattern = shlex.split(found[1])
    assert flag == "--read-secrets"
    async with agent_in(tmp_path, code, secrets=(pattern,)) as agent:
        file, other = await read(agent, json.dumps({"paths": [name, "secrets/e.json"]}))
    assert (file.text, other.text) == (held, UNSET)


OF_A_PROJECT = ["a.json", "b.yaml", "c.txt", "d.csv", "main.py", "deep/e.json"]


@pytest.mark.promise("code.secret-names", "documents.no-secrets")
@pytest.mark.parametrize(
    "place", ["src/secrets/app", "src/wireguard", "credentials/x/y", "Creds", ".vault/.secrets", "locales/en"]
)
async def test_what_folders_above_a_project_are_called_tells_nothing_of_its_files(
    tmp_path: Path, place: str
) -> None:
    code = (tmp_path / place).resolve()
    secret = ["secrets/a.json", "deep/Credentials/b.txt", "secrets.yaml", "auth.json"]
    for path in (*OF_A_PROJECT, *secret):
        (code / path).parent.mkdir(parents=True, exist_ok=True)
        (code / path).write_text("kelp = 1\n")
    everything = {str(code / path) for path in OF_A_PROJECT}
    assert {each.path for each in walk(str(code)) if isinstance(each, Found)} == everything
    for path in (*OF_A_PROJECT, *secret):
        (found,) = walk_below(str(code), str(code / path))
        assert isinstance(found, Found) == (path in OF_A_PROJECT), path
    async with agent_in(tmp_path, code) as agent:
        files = await read(agent, json.dumps({"paths": [*OF_A_PROJECT, *secret]}))
        assert [each.path for each in files if each.text] == OF_A_PROJECT


@pytest.mark.promise("documents.no-secrets")
def test_of_a_file_that_is_named_itself_its_name_and_its_folder_tell(tmp_path: Path) -> None:
    for path, is_read in {
        "secrets/app/a.json": True,
        "app/secrets/a.json": False,
        "app/secrets/store.py": True,
        "secrets/app/token.json": False,
        "secrets/app/.ssh/a.json": True,  # which `check_place` refuses
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("kelp = 1\n")
        (found,) = walk(str(tmp_path / path))
        assert isinstance(found, Found) == is_read, path


@pytest.mark.slow
@pytest.mark.promise("documents.no-secrets")
@pytest.mark.parametrize("named", ["secrets", "secrets/deep", "secrets/deep/a.json"])
async def test_who_may_name_parts_of_a_folder_gets_no_secrets_by_naming_theirs(
    tmp_path: Path, named: str
) -> None:
    docs = (tmp_path / "credentials" / "docs").resolve()
    for path in ("secrets/deep/a.json", "secrets/store.md", "plain.json"):
        (docs / path).parent.mkdir(parents=True, exist_ok=True)
        (docs / path).write_text("kelp\n")
    async with open_greenroom(tmp_path / "data", embedder="none", options=FAST) as runtime:
        agent = Agent(runtime, ANN, reach=Reach(roots=(str(docs),)))
        asked = json.dumps({"paths": [str(docs / named), str(docs / "plain.json")]})
        done = await agent.ask(parse_request(REQUESTS["ingest_documents"], asked.encode()))
    assert [each.path for each in done.named] == [str(docs / "secrets/deep/a.json")]
    assert done.added == (2 if named == "secrets" else 1)


@pytest.mark.promise("code.secret-names")
@pytest.mark.parametrize(
    ("tool", "parameter"),
    [
        ("read_file", "path"),
        ("outline", "path"),
        ("similar_files", "path"),
        ("dependency_search", "target"),
        ("search_code_semantic", "scope"),
        ("code_search", "scope"),
    ],
)
@pytest.mark.parametrize("path", ["secrets/db.txt", "./link.txt", "linked/db.txt", ".hidden/API_KEY.txt"])
async def test_no_way_leads_to_a_secret(tmp_path: Path, tool: str, parameter: str, path: str) -> None:
    code = (tmp_path / "code").resolve()
    for name in ("secrets/db.txt", ".hidden/API_KEY.txt", "main.py"):
        (code / name).parent.mkdir(parents=True, exist_ok=True)
        (code / name).write_text("kelp = 1\n")
    (code / "link.txt").symlink_to("secrets/db.txt")
    (code / "linked").symlink_to("secrets")
    said = {parameter: path} | ({"query": "kelp", "pattern": "regex kelp"} if parameter == "scope" else {})
    said.pop("query" if tool == "code_search" else "pattern", None)
    async with agent_in(tmp_path, code) as agent:
        with pytest.raises(Refusal, match="it may hold secrets, by its name or place"):
            await agent.ask(parse_request(REQUESTS[tool], json.dumps(said).encode()))


@pytest.mark.slow
@pytest.mark.promise("code.secret-names")
async def test_how_many_are_left_out_is_as_the_folder_is(tmp_path: Path) -> None:
    code = (tmp_path / "code").resolve()
    (code / "secrets").mkdir(parents=True)
    (code / "main.py").write_text("kelp = 1\n")

    async def counted(agent: Agent, indexed: int, left_out: int | UnsetType) -> None:
        with trio.fail_after(PATIENCE):
            while True:
                fresh = (await search(agent, '{"query":"kelp"}')).freshness
                if (fresh.state, fresh.indexed, fresh.left_out_as_secret) == ("watching", indexed, left_out):
                    return

    async with agent_in(tmp_path, code, is_kept=True) as agent:
        await counted(agent, 1, UNSET)
        (code / "secrets/db.txt").write_text("kelp\n")
        (code / "api_key.txt").write_text("kelp\n")
        await counted(agent, 1, 2)
        (code / "api_key.txt").write_text("kelp, kelp\n")
        (code / "api_key.txt").rename(code / "quay.txt")
        await counted(agent, 2, 1)
        (code / "quay.txt").rename(code / "api_key.txt")
        await counted(agent, 1, 2)
        (code / "secrets").rename(code / "plain")
        await counted(agent, 2, 1)
        (code / "api_key.txt").unlink()
        await counted(agent, 2, UNSET)


@pytest.mark.slow
@pytest.mark.promise("code.secret-names")
async def test_more_secrets_than_are_named_are_counted_as_the_folder_is(tmp_path: Path) -> None:
    code = (tmp_path / "code").resolve()
    (code / "secrets").mkdir(parents=True)
    (code / "main.py").write_text("kelp = 1\n")
    for number in range(MAX_SECRETS + 2):
        (code / f"secrets/{number:05}.txt").touch()
    last = code / f"secrets/{MAX_SECRETS + 1:05}.txt"

    async def counted(agent: Agent, indexed: int, left_out: int) -> None:
        with trio.fail_after(PATIENCE):
            while True:
                fresh = (await search(agent, '{"query":"kelp"}')).freshness
                if (fresh.state, fresh.indexed, fresh.left_out_as_secret) == ("watching", indexed, left_out):
                    return

    async with agent_in(tmp_path, code, is_kept=True) as agent:
        await counted(agent, 1, MAX_SECRETS + 2)
        last.write_text("kelp\n")
        (code / "a.py").write_text("kelp = 2\n")
        await counted(agent, 2, MAX_SECRETS + 2)
        last.unlink()
        await counted(agent, 2, MAX_SECRETS + 1)
        for number in range(5):
            (code / f"secrets/{number:05}.txt").unlink()
        await counted(agent, 2, MAX_SECRETS - 4)


@pytest.mark.slow
@pytest.mark.promise("code.secret-names", "documents.no-secrets")
async def test_what_an_older_list_let_in_goes_when_the_folder_is_read(tmp_path: Path) -> None:
    code = (tmp_path / "code").resolve()
    (code / "secrets").mkdir(parents=True)
    for name in ("api_key.txt", "secrets/db.txt", "main.py"):
        (code / name).write_text("kelp = 1\n")
    names = ["api_key.txt", "secrets/db.txt"]
    corpus = f"user:ann:{workspace_name(str(code))}"
    async with (
        open_greenroom(tmp_path / "data", embedder="none", options=FAST) as runtime,
        open_workspaces(runtime) as kept,
    ):
        for name, root in ((corpus, str(code)), ("user:ann:notes", None)):
            await ensure_corpus(runtime, ANN, name, root)
            for each in names:
                document = document_of(each if root else f"{code}/{each}", [([], "kelp")])
                await ask_corpus(runtime, ANN, PutDocument(corpus=name, document=document))
        agent = Agent(runtime, ANN, reach=Reach(workspaces=(str(code),)), workspaces=kept)
        await settled(agent)
        found = await search(agent, '{"query":"kelp"}')
        assert [each.file_path for each in found.results] == ["main.py"]
        async with open_ingestion(runtime, ANN, "user:ann:notes") as ingestion:
            done = await ingestion.files([str(code)])
        assert (done.added, done.removed) == (1, 2)
        assert {each.path for each in done.named} == {f"{code}/{each}" for each in names}
