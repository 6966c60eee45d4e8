"""Check the prose of the product and its pages against a short list of words.

`python docs/plain_words.py [PATH ...]` reads docstrings, comments, sentences in strings, and Markdown. It
prints each word of the list, each docstring with more than 15 words in its first line, and each function with
a participle as its name, and fails if there is any. Without paths it reads the product and its pages.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
READ: Final = ("runtime", "actors", "transports", "docs", "README.md", "CONTRIBUTING.md", "SECURITY.md")
WORDS: Final = re.compile(
    r"\b(nobody|somebody|whoever|whom|told|said|asked|deeds?|for want of|(?:take|takes|taken|took|taking) up"
    r"|(?:come|comes|came|coming) upon)\b|(?:^|[.;:] )(whose)\b",
    re.IGNORECASE,
)
PARTICIPLES: Final = re.compile(
    r"_{0,2}(?:told|asked|said|shown|found|merged|given|taken|made|kept|written|seen|done|sent|heard|known|noted)"
)
LONGEST: Final = 15
"""Words in the first line of a docstring."""
EXCEPTIONS: Final[dict[str, list[str]]] = tomllib.loads((ROOT / "docs/plain_words.toml").read_text())
"""Words that a file may have: quotations, names on the wire, what a rule looks for in a user's text."""


def find_faults(path: Path) -> Iterator[tuple[int, str]]:
    """Yield each fault of a file: its line, and what is wrong there."""
    text = path.read_text()
    if path.suffix == ".py":
        yield from _in_docstrings(ast.parse(text))
        passages = _passages(text)
    else:
        passages = _prose(text)
    for line, passage in passages:
        for match in WORDS.finditer(passage):
            word = (match[1] or match[2]).lower()
            if word not in EXCEPTIONS.get(str(path.relative_to(ROOT)), []):
                yield line, f"`{word}`: {passage.strip()[:100]}"


def _passages(source: str) -> Iterator[tuple[int, str]]:
    """Yield each line of a comment or of a string that is a sentence."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT or (token.type == tokenize.STRING and " " in token.string):
            for number, line in enumerate(token.string.split("\n")):
                yield (
                    token.start[0] + number,
                    re.sub(r"`[^`]*`|\{[^{}]*\}", "``", line.lstrip(" frbuFRBU\"'#")),
                )


def _prose(page: str) -> Iterator[tuple[int, str]]:
    """Yield each line of a page outside of code."""
    is_code = False
    for number, line in enumerate(page.split("\n"), 1):
        if line.lstrip().startswith("```"):
            is_code = not is_code
        elif not is_code:
            yield number, re.sub(r"`[^`]*`|\]\([^)]*\)", "``", line)


def _in_docstrings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield docstrings whose first line is too long, and functions whose names are no verbs."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        line = getattr(node, "lineno", 1)
        first = (ast.get_docstring(node) or "").partition("\n")[0]
        if len(first.split()) > LONGEST:
            yield line, f"{len(first.split())} words in the first line: {first[:100]}"
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            is_property = any(
                ast.unparse(each).endswith(("property", "setter")) for each in node.decorator_list
            )
            if PARTICIPLES.fullmatch(node.name) and not is_property:
                yield line, f"`{node.name}` is no verb"


def read_paths(chosen: list[str]) -> Iterator[Path]:
    """Yield the files to read: those chosen, or all of the product and its pages."""
    for path in (ROOT / each for each in chosen or READ):
        for each in [path] if path.is_file() else sorted(path.rglob("*")):
            parts = each.relative_to(ROOT).parts
            if each.suffix in {".py", ".md"} and "reference" not in parts and "node_modules" not in parts:
                yield each


if __name__ == "__main__":
    faults = [(path, *fault) for path in read_paths(sys.argv[1:]) for fault in find_faults(path)]
    for path, line, fault in faults:
        print(f"{path.relative_to(ROOT)}:{line}: {fault}")
    sys.exit(bool(faults))
