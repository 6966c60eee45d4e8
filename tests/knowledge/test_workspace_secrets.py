"""Values of secrets in files of a workspace: no answer has one, and each says where a mark stands for it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest
from support.agents import FAST
from support.code_agents import ANN, agent_in, settled

from greenroom.actors import (
    REQUESTS,
    Agent,
    GetPrompt,
    PutDocument,
    Reach,
    ask_corpus,
    open_greenroom,
    parse_request,
)
from greenroom.actors.content.documents import digest_of, mask_bytes
from greenroom.actors.content.documents.document_types import Chunk, Document
from greenroom.actors.knowledge.corpora.tools.corpus_admin import ensure_corpus
from greenroom.actors.knowledge.ingest.parsing import masking
from greenroom.actors.knowledge.workspaces.index_lease import open_workspaces
from greenroom.actors.knowledge.workspaces.places import workspace_name
from greenroom.runtime import Refusal

VALUES = {
    "word": "Tr0ub4dor-and-3-boats",
    "token": "ghp_" + "aB3dE5gH7jK9mN1pQ3rS5tU7vW9xY1zA3bC5",
    "hash": "q8Zr2LxP0vT6nB4kW1sD",
    "address": "s3aTr0ut",
    "key": "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC",
}
KEY = f"-----BEGIN PRIVATE KEY-----\n{VALUES['key']}\n{'b' * 32}\n-----END PRIVATE KEY-----"
SETTINGS = f'''"""Settings of the harbour."""
import os

HARBOUR_PASSWORD = "{VALUES["word"]}"
token: str = os.environ["HARBOUR_TOKEN"]
password = get_password()


def connect(secret_key="{VALUES["hash"]}"):
    """Moor at the quay."""
    return "postgres://boat:{VALUES["address"]}@quay/harbour"
'''
FILES = {
    "src/settings.py": SETTINGS,
    "src/late.py": "".join(f"quay_{n} = {n}\n" for n in range(900)) + f'KEY = """{KEY}"""\nafter = 1\n',
    "quay.yaml": f"name: quay\npassword: {VALUES['word']}\n",
    "quay.zig": f"const mooring_token = '{VALUES['token']}'\nlet harbour = 1\n",
    "notes.md": f"# Harbour\n\nThe token is {VALUES['token']}.\n",
    "run.ipynb": json.dumps(
        {"cells": [{"cell_type": "code", "source": [f'api_key = "{VALUES["hash"]}"\n'], "outputs": []}]}
    ),
}
"""`src/late.py` has a key behind what is looked at before a file is read at all."""


@pytest.fixture
def code(tmp_path: Path) -> Path:
    folder = (tmp_path / "code").resolve()
    for path, text in FILES.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return folder


async def ask(agent: Agent, tool: str, **arguments: Any) -> dict[str, Any]:
    """Return an answer as it leaves, which has no value; again while a busy machine has it cut."""
    asked = json.dumps(arguments)
    text = "was cut"
    while "was cut" in text:
        reply = await agent.ask(parse_request(REQUESTS[tool], asked.encode()))
        text = msgspec.json.encode(reply).decode()
    for value in VALUES.values():
        assert value not in text or value in asked, (tool, arguments)
    answer: dict[str, Any] = json.loads(text)
    return answer


@pytest.mark.promise("code.read")
@pytest.mark.parametrize(
    ("path", "lines"),
    [
        ("src/settings.py", [4, 9, 11]),
        ("src/late.py", [901, 902, 903, 904]),
        ("quay.yaml", [2]),
        ("quay.zig", [1]),
        ("notes.md", [3]),
        ("run.ipynb", [1]),
    ],
)
async def test_a_file_is_read_with_marks_in_its_lines_and_not_to_be_written_back(
    code: Path, tmp_path: Path, path: str, lines: list[int]
) -> None:
    async with agent_in(tmp_path, code) as agent:
        (file,) = (await ask(agent, "read_file", path=path))["files"]
        assert file["masked"] == lines
        assert "never write" in file["note"]
        assert file["total_lines"] == FILES[path].count("\n") + (not FILES[path].endswith("\n"))
        for number, (shown, own) in enumerate(
            zip(file["text"].split("\n"), FILES[path].split("\n"), strict=True), 1
        ):
            assert (shown == own) == (number not in lines), number


SEARCHES: list[tuple[str, dict[str, Any], list[str]]] = [
    ("search_code_semantic", {"query": "harbour password"}, ["src/settings.py:4"]),
    ("search_code_semantic", {"query": "quay password name"}, ["quay.yaml:2"]),
    ("code_search", {"pattern": "regex PASSWORD ="}, ["src/settings.py:4"]),
    ("code_search", {"pattern": "regex @quay"}, ["src/settings.py:11"]),
    ("code_search", {"pattern": "string postgres*"}, ["src/settings.py:11"]),
    ("code_search", {"pattern": "(assignment right: (string) @found)"}, ["src/settings.py:4"]),
    ("code_search", {"pattern": "function connect"}, ["src/settings.py:9"]),
    ("code_search", {"pattern": "HARBOUR_PASSWORD"}, ["src/settings.py:4"]),
    ("symbol_search", {"symbol": "connect"}, ["src/settings.py:9"]),
    ("symbol_search", {"symbol": "HARBOUR_PASSWORD"}, ["src/settings.py:4"]),
    ("symbol_search", {"symbol": "mooring_token"}, ["quay.zig:1"]),
    ("outline", {"path": "src/settings.py"}, ["src/settings.py:4", "src/settings.py:9"]),
    ("outline", {}, ["src/settings.py:9"]),
    ("outline", {"path": "quay.zig"}, ["quay.zig:1"]),
]


@pytest.mark.slow
@pytest.mark.promise("code.read")
async def test_no_tool_that_searches_code_shows_a_value_and_each_names_the_lines(
    code: Path, tmp_path: Path
) -> None:
    async with agent_in(tmp_path, code, is_kept=True) as agent:
        await settled(agent)
        for tool, arguments, lines in SEARCHES:
            found = await ask(agent, tool, **arguments)
            assert set(lines) <= set(found.get("masked", ())), (tool, arguments, found)
            assert "never write" in found["note"]
        for path in FILES:
            await ask(agent, "similar_files", path=path)
            await ask(agent, "read_file", path=path, outline=True)


@pytest.mark.slow
@pytest.mark.promise("code.read")
async def test_who_looks_for_a_value_finds_nothing(code: Path, tmp_path: Path) -> None:
    async with agent_in(tmp_path, code, is_kept=True) as agent:
        await settled(agent)
        parts = [part for value in VALUES.values() for part in (value, value[: len(value) // 2])]
        for pattern in (f"regex {'|'.join(parts)}", f"string *{VALUES['word']}*"):
            assert (await ask(agent, "code_search", pattern=pattern))["matches"] == []
        for value in VALUES.values():
            for part in (value, value[: len(value) // 2]):
                assert (await ask(agent, "code_search", pattern=f"symbol *{part}*"))["matches"] == []
                found = await ask(agent, "search_code_semantic", query=part)
                assert part not in json.dumps(found["results"]), found
                symbols = await ask(agent, "symbol_search", symbol=part)
                assert value not in json.dumps(symbols.get("names", [])), symbols


STAYS = """
password = get_password()
token: str
api_key = os.environ["API_KEY"]
secret = config.secret
client_secret = Variable.get("client_secret")
password = input("Password: ")
passwords = ["password", "passwd"]
token = "<your-token>"
PASSWORD=${PASSWORD}
export API_KEY=$(pass show api)
const apiKey = process.env.API_KEY;
let token: Option<String> = None;
String password = request.getParameter("password");
token := os.Getenv("TOKEN")
authorization = base64.decodebytes(authorization)
private_key = serialization.load_pem_private_key(data, password=None)
secretKeyRef: {name: harbour, key: password}
if token == other_token: raise InvalidToken("token is wrong")
csrf_token = csrf_token_for(request)
sha256 = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
self.password = password1
confirm_password: password2
password = config.db1.password
password = hunter2x
private_key: ed25519.Ed25519PrivateKey
password: Argon2Hash
def f(password: bytes32, token: uint256): pass
api_key: v1.ApiKeyV1
authorization = request.headers["Authorization"]
passport.authenticate('local', 'jwt')
authorize('posts', 'update')
isAuthorized('user', 'delete:any')
useAuth("github", "google")
x = isTypedArray$1 + baseKeys$2
dlopenMemcpy@@GLIBC_2.2.5 Electron@3 Electron@13.2
it is Array2Map#x, not b
Harbour key: Pier3 / Qu4y77Mole
fields = ("username", "password", "email1")
the combination of user2x with https://a1.b/c1
"""
LITERALS = """
$config['password'] = 'hunter2x'
os.environ["DB_PASSWORD"] = "hunter2x"
cfg["db"]["password"] = "hunter2x"
headers["Authorization"] = "Token hunter2x99aa"
admin_password         = "hunter2x"
admin_password                                         = "hunter2x"
x = os.getenv("DB_PASSWORD", "hunter2x")
os.environ.get("SECRET_KEY", "hunter2x")
process.env.DB_PASSWORD || "hunter2x"
process.env["DB_PASSWORD"] ?? "hunter2x"
os.getenv("DB_PASSWORD") or "hunter2x"
DB_PASSWORD=${DB_PASSWORD:-hunter2x}
DB_PASSWORD=${DB_PASSWORD:-${PGPASSWORD-hunter2x}}
DB_PASSWORD=hunter2x
password: hunter2x
config("SECRET_KEY", default="correct-hunter2x")
System.setProperty("db.password", "hunter2x")
builder.setPassword("hunter2x");
builder.password("hunter2x")
<entry key="db.password">hunter2x</entry>
<string name="api_key">hunter2xhunter99</string>
char password[32] = "hunter2x";
api_key: str = "hunter2x99aa"
password: Optional[str] = "hunter2x"
SECRET_KEY = b'correct-hunter2x-7'
requests.get(u, auth=HTTPBasicAuth('ann', 'hunter2x'))
# password = hunter2x
"""
IN_MORE_LINES = {
    "a.yaml": "password: |\n  hunter2x\n",
    "b.yaml": "kind: Secret\nstringData:\n  conf: |\n    [db]\n\n    dsn = hunter2x\n  other: hunter2x\n",
    "c.yaml": "data:\n  a: hunter2x\nkind: Secret\n",
    "d.json": '{"kind": "Secret", "data": {"a": "x{y}hunter2x", "b": "hunter2x"}}',
    "e.yaml": "kind: Secret\ndata: {a: hunter2x, b: hunter2x}\n",
    "f.yaml": "kind: ConfigMap\n---\nkind: Secret\ndata:\n\n  # of a\n  a: hunter2x\n  b: >-\n    hunter2x\n",
}


@pytest.mark.promise("code.read")
async def test_code_that_only_names_a_secret_stays_as_it_is(code: Path, tmp_path: Path) -> None:
    (code / "names.txt").write_text(STAYS)
    async with agent_in(tmp_path, code) as agent:
        (file,) = (await ask(agent, "read_file", path="names.txt"))["files"]
        assert file["text"] == STAYS
        assert "masked" not in file
        assert file["digest"] == digest_of(STAYS.encode())


@pytest.mark.promise("code.read")
async def test_a_literal_has_a_mark_however_code_or_settings_have_it(code: Path, tmp_path: Path) -> None:
    lines = LITERALS.strip().split("\n")
    (code / "literals.txt").write_text("\n".join(lines))
    for name, text in IN_MORE_LINES.items():
        (code / name).write_text(text)
    async with agent_in(tmp_path, code) as agent:
        (file,) = (await ask(agent, "read_file", path="literals.txt"))["files"]
        assert [line for line in file["text"].split("\n") if "hunter2x" in line] == []
        assert file["masked"] == [*range(1, len(lines) + 1)]
        for name in IN_MORE_LINES:
            (file,) = (await ask(agent, "read_file", path=name))["files"]
            assert "hunter2x" not in file["text"], name


@pytest.mark.promise("code.read")
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
async def test_lines_stay_where_they_are_in_every_encoding(
    code: Path, tmp_path: Path, encoding: str, end: str
) -> None:
    lines = ["# K\u00fcche", f'password = "{VALUES["word"]}" # \u00fc', "after = 1"]
    (code / "odd.py").write_bytes(end.join([*lines, ""]).encode(encoding))
    async with agent_in(tmp_path, code) as agent:
        (file,) = (await ask(agent, "read_file", path="odd.py"))["files"]
        assert (file["masked"], file["total_lines"]) == ([2], 3)
        shown = file["text"].split(end)
        assert shown == [lines[0], 'password = "[secret left out: password]" # \u00fc', lines[2], ""]
        (file,) = (await ask(agent, "read_file", path="odd.py", lines="3"))["files"]
        assert file["text"].strip() == "after = 1"
        assert "masked" not in file


@pytest.mark.promise("code.read")
async def test_a_part_of_a_long_file_is_read_with_its_marks(code: Path, tmp_path: Path) -> None:
    key = KEY.replace("\n-----END", f"\n{'c' * 64}" * 60 + "\n-----END").split("\n")
    filler = [f"line {n} of what is long {'.' * 60}" for n in range(30_000)]
    at = len(filler)
    (code / "long.txt").write_text("\n".join([*filler, *key, *filler]))
    async with agent_in(tmp_path, code) as agent:
        for first, last in ((at + 10, at + 12), (at + 2, at + 2), (at - 1, at + 80)):
            (file,) = (await ask(agent, "read_file", path="long.txt", lines=f"{first}-{last}"))["files"]
            shown = file["text"].splitlines()
            assert file["masked"] == [n for n in range(first, last + 1) if at < n <= at + len(key)]
            assert "ccc" not in file["text"]
            assert file["lines"] == [first, last]
            assert len(shown) == last - first + 1


MANIFEST = "kind: Secret\nmetadata:\n" + "  # of the quay\n" * 9_000 + "data:\n"
DATA = "  word: cGFzc3dvcmQtb2YtdGhlLXF1YXk=\n"


@pytest.mark.promise("code.read")
async def test_a_value_that_only_the_beginning_of_a_large_file_tells_is_left_out_at_its_end(
    code: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (code / "quay.yaml").write_text(MANIFEST + DATA)
    (code / "wide.yaml").write_text(MANIFEST + DATA, encoding="utf-16")
    async with agent_in(tmp_path, code) as agent:
        for path in ("quay.yaml", "quay.yaml", "wide.yaml"):
            (file,) = (await ask(agent, "read_file", path=path, lines="9004", again=True))["files"]
            assert file["masked"] == [9_004]
            assert "cGFz" not in file["text"]
        monkeypatch.setattr(masking, "SECONDS", 0.0)
        (file,) = (await ask(agent, "read_file", path="quay.yaml", lines="9004", again=True))["files"]
        assert file["masked"] == [9_004]  # it is known by its bytes
        (code / "quay.yaml").write_text(f"{MANIFEST} #\n{DATA}")
        with pytest.raises(Refusal, match="could not be looked through for secrets"):
            await ask(agent, "read_file", path="quay.yaml", lines="9005")


@pytest.mark.slow
@pytest.mark.promise("code.read")
async def test_names_are_looked_for_in_large_texts_without_their_secrets(
    code: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = "".join(f"// mooring {n}\n" for n in range(9_000))
    (code / "large.dart").write_text(f"{lines}var ferryWord = 'x'; var ferryPassword = '{VALUES['word']}';\n")
    (code / "small.dart").write_text("void ferryWord() {}\n")
    async with agent_in(tmp_path, code, is_kept=True) as agent:
        await settled(agent)
        found = await ask(agent, "symbol_search", symbol="ferryWord")
        assert {each["file_path"] for each in found["in_text"]} == {"large.dart", "small.dart"}
        assert found["masked"] == ["large.dart:9001"]
        (code / "large.dart").write_text((code / "large.dart").read_text() + "//\n")
        monkeypatch.setattr(masking, "SECONDS", 0.0)
        found = await ask(agent, "symbol_search", symbol="ferryWord")
        assert {each["file_path"] for each in found["in_text"]} == {"small.dart"}


@pytest.mark.slow
@pytest.mark.promise("code.read")
async def test_every_answer_with_a_mark_says_so_and_names_no_lines_that_it_does_not_show(
    code: Path, tmp_path: Path
) -> None:
    (code / "many.py").write_text(
        "".join(f'password_{n} = "{VALUES["word"]}"\n' for n in range(1_100))
        + f'\n\ndef ferry(password="{VALUES["word"]}"):\n    token = "{VALUES["token"]}"\n    return token\n'
    )
    async with agent_in(tmp_path, code, is_kept=True) as agent:
        await settled(agent)
        found = await ask(agent, "symbol_search", symbol="connect")
        assert found["masked"] == ["src/settings.py:9"]
        found = await ask(agent, "outline", path="src/settings.py")
        assert found["masked"] == ["src/settings.py:4", "src/settings.py:9"]
        found = await ask(agent, "symbol_search", symbol="ferry")  # behind the lines that the index notes
        assert (found["masked"], "never write" in found["note"]) == (["many.py:1103-1105"], True)
        found = await ask(agent, "search_code_semantic", query="ferry")
        assert "never write" in found["note"]
        assert any(each.startswith("many.py:") for each in found["masked"])
        found = await ask(agent, "code_search", pattern="function ferry")
        assert (found["masked"], "never write" in found["note"]) == (["many.py:1103-1105"], True)
        (file,) = (await ask(agent, "read_file", path="src/settings.py", overview=True))["files"]
        assert "[secret left out: " in file["outline"]
        assert "never write" in file["note"]
        (code / "src/settings.py").write_text("#\n" + SETTINGS)
        found = await ask(agent, "code_search", pattern="regex HARBOUR_PASSWORD")
        assert found["masked"] == ["src/settings.py:5"]


def notebook(*lines: str) -> str:
    """Return a notebook that begins with so much that nothing of these lines is in its head."""
    words = {"cell_type": "markdown", "source": ["mooring at the pier\n"] * 500, "metadata": {}}
    cell = {"cell_type": "code", "source": [f"{line}\n" for line in lines], "outputs": [], "metadata": {}}
    return json.dumps({"cells": [words, cell], "metadata": {}, "nbformat": 4}, indent=1)


@pytest.mark.slow
@pytest.mark.promise("code.read")
@pytest.mark.parametrize("is_long", [False, True])
async def test_a_notebook_is_indexed_by_its_cells_with_marks(
    code: Path, tmp_path: Path, *, is_long: bool
) -> None:
    body = [VALUES["key"] + "b" * 32] + ["c" * 64] * (100 if is_long else 3)
    first, last = 'ferry_key = """-----BEGIN PRIVATE KEY-----', '-----END PRIVATE KEY-----"""'
    (code / "run.ipynb").write_text(
        notebook("ferry_quay = 1", first, *body, last, f'password = "{VALUES["word"]}"')
    )
    with pytest.raises(ValueError, match=r"line|char|Exp|Inv|Unt"):
        json.loads(mask_bytes((code / "run.ipynb").read_bytes()).data)  # so cells are read before
    async with agent_in(tmp_path, code, is_kept=True) as agent:
        await settled(agent)
        found = await ask(agent, "search_code_semantic", query="ferry_quay")
        shown = "".join(each["excerpt"] for each in found["results"] if each["file_path"] == "run.ipynb")
        assert "ferry_quay" in shown
        assert "cell_type" not in shown
        assert "ccc" not in shown
        assert any(each.startswith("run.ipynb:") for each in found["masked"])


@pytest.mark.slow
@pytest.mark.promise("code.read")
async def test_differences_have_marks_on_both_sides(code: Path, tmp_path: Path) -> None:
    def git(*arguments: str) -> None:
        me = ("-c", "user.name=ann", "-c", "user.email=ann@example.org")
        subprocess.run(["git", *me, *arguments], cwd=code, check=True, capture_output=True)

    body = [f"{n:02}{'aB3' * 20}" for n in range(20)]
    (code / "key.txt").write_text("\n".join(["text"] * 400 + [KEY.split("\n", maxsplit=1)[0], *body]))
    git("init", "-q", "-b", "main")
    git("add", ".")
    git("commit", "-q", "-m", "first")
    changed = SETTINGS.replace(VALUES["word"], "an0ther-Tr0ub4dor").replace("quay/", "pier/")
    (code / "src/settings.py").write_text(changed)
    (code / "quay.yaml").write_text("name: quay\n")
    (code / "key.txt").write_text((code / "key.txt").read_text().replace(body[9], body[9][::-1]))
    async with agent_in(tmp_path, code) as agent:
        filled = await agent.ask(GetPrompt(name="review-changes", arguments={}))
        text = msgspec.json.encode(filled).decode()
        assert "[secret left out: " in text
        assert "never write" in text
        for value in (*VALUES.values(), "an0ther-Tr0ub4dor", body[9], body[9][::-1], body[8]):
            assert value not in text, value


@pytest.mark.slow
@pytest.mark.promise("code.read")
async def test_what_an_older_version_has_indexed_is_read_again_and_told_with_marks_till_then(
    code: Path, tmp_path: Path
) -> None:
    name = f"user:ann:{workspace_name(str(code))}"
    data = SETTINGS.encode()
    chunk = Chunk(SETTINGS, ["", "HARBOUR_PASSWORD"], "settings.py", 1, 11, 0, len(data))
    old = Document("src/settings.py", "settings.py", "code", digest_of(data), len(data), 0, [chunk])
    reach = Reach(workspaces=(str(code),))
    async with open_greenroom(tmp_path / "data", embedder="none", options=FAST) as runtime:
        agent = Agent(runtime, ANN, reach=reach)
        await ensure_corpus(runtime, ANN, name, str(code))
        await ask_corpus(runtime, ANN, PutDocument(corpus=name, document=old, reader="syntax:python 99.0"))
        found = await ask(agent, "search_code_semantic", query="harbour password")
        assert "[secret left out: password]" in found["results"][0]["excerpt"]
        async with open_workspaces(runtime) as kept:
            agent = Agent(runtime, ANN, reach=reach, workspaces=kept)
            await settled(agent)
            found = await ask(agent, "search_code_semantic", query="harbour password")
            assert "src/settings.py:4" in found["masked"]
            found = await ask(agent, "search_code_semantic", query=VALUES["word"])
            assert "Tr0ub4dor" in found["unknown"]


@pytest.mark.slow
async def test_documents_are_taken_in_as_they_are(code: Path, tmp_path: Path) -> None:
    async with agent_in(tmp_path, code) as agent:
        text = {"path": "notes.md", "text": FILES["notes.md"]}
        request = parse_request(REQUESTS["ingest_documents"], json.dumps({"texts": [text]}).encode())
        await agent.ask(request)
        found = await agent.ask(
            parse_request(REQUESTS["semantic_search"], b'{"query":"token harbour","detail_level":"full"}')
        )
        assert VALUES["token"] in msgspec.json.encode(found).decode()
