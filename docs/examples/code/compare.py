"""Count what two agents read until they find the same lines of source.

`python compare.py FOLDER` copies the source into the folder, and has a server index it there. The agents are
scripts and no models: what they open depends on nothing but the order of what is found. A token is four
bytes; with `--vocabulary` it is one of o200k_base, for which the package bpe-openai must be installed.
"""

import argparse
import json
import shutil
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import trio
import with_greenroom
import with_grep
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from tasks import TASKS, Task

import greenroom.actors
import greenroom.runtime
import greenroom.transports

PORTIONS = (greenroom.runtime, greenroom.actors, greenroom.transports)
PER_TOKEN = 4
"""Bytes that are counted as a token."""
LINE = "{:72}{:>18}{:>18}"

Count = Callable[[str], int]


def copied(folder: Path) -> dict[str, str]:
    """Copy the source into a folder; return what its files say."""
    for portion in PORTIONS:
        shutil.copytree(portion.__path__[0], folder / portion.__name__.rpartition(".")[2])
    return {path.relative_to(folder).as_posix(): path.read_text() for path in sorted(folder.rglob("*.py"))}


def counting(*, vocabulary: bool) -> Count:
    """Return how many tokens a text has."""
    if not vocabulary:
        return lambda text: len(text.encode()) // PER_TOKEN
    import bpe_openai  # noqa: PLC0415 - only who counts so needs it

    encoding = bpe_openai.get_encoding("o200k_base")
    return lambda text: len(encoding.encode_ordinary(text))


def has(text: str, task: Task) -> bool:
    """Return whether the wanted line was read, as it stands or within JSON."""
    return task.line in text or json.dumps(task.line)[1:-1] in text


async def indexed(client: Client) -> None:
    """Ask until everything is indexed."""
    while True:
        found = json.loads(await with_greenroom.call(client, "search_code_semantic", query="anything"))
        if found["freshness"]["state"] == "watching":
            return
        await trio.sleep(0.2)


async def cost(read: AsyncIterator[str], task: Task, count: Count) -> tuple[int, bool]:
    """Return how many tokens an agent reads for a line, and whether it finds it."""
    tokens = 0
    async for text in read:
        tokens += count(text)
        if has(text, task):
            return tokens, True
    return tokens, False


async def grep(texts: dict[str, str], task: Task) -> AsyncIterator[str]:
    """Yield what the agent with grep reads."""
    for text in with_grep.reads(texts, task):
        yield text


async def main(folder: Path, count: Count) -> None:
    """Give both agents all tasks, and print what each read."""
    texts = copied(folder / "code")
    arguments = ["serve", "--data", str(folder / "data"), "--user", "ann", "--log-level", "warning"]
    arguments += ["--tools", "code", "--embedder", "none", "--workspace", str(folder / "code")]
    server = StdioServerParameters(command="greenroom", args=arguments)
    sums, reached = [0, 0], [0, 0]
    print(
        LINE.format("tokens until the lines were read, + if they were", "with Greenroom", "grep, whole files")
    )
    async with Client(stdio_client(server)) as client:
        await indexed(client)
        for task in TASKS:
            costs = [
                await cost(with_greenroom.reads(client, task), task, count),
                await cost(grep(texts, task), task, count),
            ]
            for way, (tokens, found) in enumerate(costs):
                sums[way] += tokens
                reached[way] += found
            row = [f"{tokens:,} {'+' if found else '-'}" for tokens, found in costs]
            print(
                LINE.format(task.query if task.about == "question" else f"{task.about} of {task.query}", *row)
            )
    print(LINE.format("a task, on average", *(f"{each // len(TASKS):,}" for each in sums)))
    print(LINE.format("reached", *(f"{each} of {len(TASKS)}" for each in reached)))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="What two agents read until they have the lines they need.")
    parser.add_argument("--vocabulary", action="store_true", help="count by o200k_base, not by bytes")
    parser.add_argument("folder", type=Path, help="a new one")
    chosen = parser.parse_args()
    trio.run(main, chosen.folder.absolute(), counting(vocabulary=chosen.vocabulary))
