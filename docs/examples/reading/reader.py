"""Compare three ways in which an agent looks things up in documentation.

`python reader.py FOLDER` puts Greenroom's own pages into a corpus in the folder, and asks ten questions. The
agent is a script and no model: which passages it opens depends on nothing but the order of what is found.
"""

import json
import re
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import trio
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

PAGES = Path(__file__).parents[2]
FILES = sorted([*PAGES.glob("*.md"), *PAGES.glob("how-to/*.md")])
OPENED = 3
"""How many passages, or files, the agent opens."""
PER_TOKEN = 4
"""Bytes that are counted as a token."""

QUESTIONS = {
    "Can I back up the store while the server is running?": (
        "made of a stopped store or of a running `greenroom serve`"
    ),
    "What happens when the encryption key is lost?": "Without the key the data and every backup are lost",
    "How long is an API key valid?": "A key expires after 90 days unless made for another time.",
    "Does the server download a model when it starts?": "A server never downloads anything",
    "What happens when the tool that owns the folder is killed?": (
        "another server takes over; acknowledged writes are on disk"
    ),
    "How do I check whether the server is healthy?": 'answers 200 and `{"status":"ok"}`',
    "How do I delete all that is kept of somebody who leaves?": (
        "One command counts what is stored about a person and, after confirmation, erases it"
    ),
    "Why are keys not kept with a slow hash?": "256 random bits cannot be guessed",
    "Is a private memory of another user counted in what I see?": ("it is not counted, ranked or named"),
    "What do I do about an actor that was set aside?": "fix the cause, and readmit it",
}
"""Questions, and the words of the pages that answer them."""

SMALL_WORDS = set("a all an do does how i in is it of that the was what when why".split())  # noqa: SIM905 - a sentence

Read = Callable[[Client, str], Awaitable[list[str]]]
"""Returns all that the agent reads for a question."""


async def call(client: Client, tool: str, **arguments: Any) -> str:
    """Return what a tool answers, as the model reads it."""
    result = await client.call_tool(tool, arguments)
    text: str = result.content[0].text  # type: ignore[union-attr]  # it is a text
    if result.is_error:
        raise ValueError(text)
    return text


async def metadata_first(client: Client, question: str) -> list[str]:
    """Ask where it may stand, then open the best three."""
    found = await call(client, "semantic_search", query=question, corpus="pages", detail_level="metadata")
    best = [each["chunk_id"] for each in json.loads(found)["results"][:OPENED]]
    return [found, await call(client, "get_full_content", chunk_ids=best)] if best else [found]


async def full_at_once(client: Client, question: str) -> list[str]:
    """Ask for ten passages in full."""
    return [await call(client, "semantic_search", query=question, corpus="pages")]


async def grep_and_files(_client: Client, question: str) -> list[str]:
    """Count words as `grep -c` does, then read the three best files."""
    words = set(re.findall(r"\w+", question.lower())) - SMALL_WORDS
    texts = {path: path.read_text() for path in FILES}
    counts = {path: [text.lower().count(word) for word in words] for path, text in texts.items()}
    order = sorted(FILES, key=lambda path: (sum(map(bool, counts[path])), sum(counts[path])), reverse=True)
    listed = "\n".join(
        f"{path.relative_to(PAGES)}:{sum(counts[path])}" for path in order if any(counts[path])
    )
    return [listed, *(texts[path] for path in order[:OPENED])]


WAYS: dict[str, Read] = {
    "metadata, 3 full": metadata_first,
    "10 full": full_at_once,
    "grep, 3 files": grep_and_files,
}


async def fill(client: Client) -> None:
    """Put the pages into a corpus, and wait until meaning finds them, too."""
    await call(client, "ingest_documents", paths=[str(path) for path in FILES], corpus="pages")
    while json.loads(await call(client, "list_corpora"))["corpora"][0]["waiting_for_vectors"]:  # noqa: ASYNC110 - a client gets no notification
        await trio.sleep(0.05)


def is_among(sentence: str, read: list[str]) -> bool:
    """Return whether a sentence stands in what was read, however its lines are broken."""
    said = " ".join(" ".join(read).replace("\\n", " ").replace('\\"', '"').split())
    return sentence in said


async def main(folder: str) -> None:
    """Ask all questions in all ways, and print what it took."""
    arguments = ["serve", "--data", folder, "--user", "ann", "--tools", "knowledge", "--log-level", "warning"]
    arguments += ["--documents", str(PAGES)]
    server = StdioServerParameters(command="greenroom", args=arguments)
    sums, answered = dict.fromkeys(WAYS, 0), dict.fromkeys(WAYS, 0)
    line = "{:60}" + len(WAYS) * "{:>18}"
    print(line.format("tokens that were read, + with the answer", *WAYS))
    async with Client(stdio_client(server)) as client:
        await fill(client)
        for question, sentence in QUESTIONS.items():
            row = []
            for way, read in WAYS.items():
                texts = await read(client, question)
                tokens = sum(len(text.encode()) for text in texts) // PER_TOKEN
                found = is_among(sentence, texts)
                sums[way] += tokens
                answered[way] += found
                row.append(f"{tokens:,} {'+' if found else '-'}")
            print(line.format(question, *row))
    print(line.format("a question, on average", *(f"{sums[way] // len(QUESTIONS):,}" for way in WAYS)))
    print(line.format("answered", *(f"{answered[way]} of {len(QUESTIONS)}" for way in WAYS)))


if __name__ == "__main__":
    trio.run(main, sys.argv[1])
