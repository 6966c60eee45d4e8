"""An agent that has grep, and reads whole files."""

import re
from collections.abc import Iterator, Mapping

from tasks import Task

FILES = 5
"""How many files it opens."""
LISTED = 20
"""How many files it has listed."""
SMALL_WORDS = set(
    "a again and how if in is it may must of that the to what when where which whose with".split()  # noqa: SIM905 - a sentence
)


def reads(texts: Mapping[str, str], task: Task) -> Iterator[str]:
    """Yield what the agent reads of some files, one after the other."""
    return _words(texts, task) if task.about == "question" else _name(texts, task)


def _words(texts: Mapping[str, str], task: Task) -> Iterator[str]:
    """Have `grep -ric` count each word, then open the files with most of the words."""
    words = set(re.findall(r"\w+", task.query.lower())) - SMALL_WORDS
    counts = {path: [text.lower().count(word) for word in words] for path, text in texts.items()}
    order = sorted(texts, key=lambda path: (sum(map(bool, counts[path])), sum(counts[path])), reverse=True)
    yield "\n".join(f"{path}:{sum(counts[path])}" for path in order[:LISTED])
    yield from (texts[path] for path in order[:FILES])


def _name(texts: Mapping[str, str], task: Task) -> Iterator[str]:
    """List the lines with a name by `grep -rnw`, then open defining or calling files."""
    name = re.compile(rf"\b{task.query}\b")
    wanted = re.compile(
        rf"(def|class) {task.query}\b" if task.about == "definition" else rf"(?<!def ){task.query}\("
    )
    yield "\n".join(
        f"{path}:{number}:{line}"
        for path, text in texts.items()
        for number, line in enumerate(text.splitlines(), 1)
        if name.search(line)
    )
    yield from [text for text in texts.values() if wanted.search(text)][:FILES]
