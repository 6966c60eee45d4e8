"""Move the modules of `moves.tsv` to their rooms, and rewrite imports and dotted names."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

HERE = Path(__file__).parent
ROOTS = ("runtime/", "actors/", "transports/", "tests/")


def module_of(path: str) -> str:
    """Return the dotted name of the module in a file."""
    root = next(each for each in ROOTS if path.startswith(each))
    return path.removeprefix(root).removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def rewrite_imports(text: str, moved: dict[str, str]) -> str:
    """Rewrite each `import` and `from ... import` of a moved module."""
    lines = text.splitlines(keepends=True)
    nodes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, (ast.Import, ast.ImportFrom))]
    for node in sorted(nodes, key=lambda each: each.lineno, reverse=True):
        new = new_import(node, moved)
        if new == ast.unparse(node):
            continue
        first, last = node.lineno - 1, node.end_lineno or node.lineno
        start = lines[first][: node.col_offset]
        end = lines[last - 1].encode()[node.end_col_offset or 0 :].decode()
        lines[first:last] = [start + new.replace("\n", "\n" + " " * node.col_offset) + end]
    return "".join(lines)


def new_import(node: ast.Import | ast.ImportFrom, moved: dict[str, str]) -> str:
    """Return the statement with the names of today."""
    if isinstance(node, ast.Import):
        names = [(moved.get(each.name, each.name), each.asname) for each in node.names]
        return "import " + ", ".join(f"{name} as {alias}" if alias else name for name, alias in names)
    if node.level or node.module is None:
        return ast.unparse(node)
    stay, statements = [], []
    for each in node.names:
        full = moved.get(f"{node.module}.{each.name}")
        if full is None:
            stay.append(f"{each.name} as {each.asname}" if each.asname else each.name)
            continue
        package, name = full.rsplit(".", 1) if "." in full else ("", full)
        alias = each.asname or each.name
        as_name = f" as {alias}" if alias != name else ""
        statements.append(f"from {package} import {name}{as_name}" if package else f"import {name}{as_name}")
    if stay:
        statements.append(f"from {moved.get(node.module, node.module)} import {', '.join(stay)}")
    return "\n".join(statements)


def main() -> None:
    """Move the files, then rewrite what names them."""
    pairs = [tuple(line.split("\t")) for line in (HERE / "moves.tsv").read_text().splitlines()]
    moved = {module_of(a): module_of(b) for a, b in pairs if a.endswith(".py") and a.startswith(ROOTS)}
    dotted = {a: b for a, b in moved.items() if a.startswith("greenroom.")}
    names = re.compile(
        r"\b(" + "|".join(map(re.escape, sorted(dotted, key=len, reverse=True))) + r")\b(?!\.py)"
    )
    for old, new in pairs:
        Path(new).parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["git", "mv", "-k", old, new], check=True)
    listed = subprocess.run(["git", "ls-files"], check=True, capture_output=True, text=True).stdout.split(
        "\n"
    )
    for name in listed:
        path = Path(name)
        if (
            path.suffix not in {".py", ".toml", ".md", ".json"}
            or not path.is_file()
            or path.name == "moves.tsv"
        ):
            continue
        text = path.read_text()
        new = rewrite_imports(text, moved) if path.suffix == ".py" else text
        rows = new.splitlines(keepends=True)
        is_code = path.suffix == ".py"
        new = "".join(
            row
            if is_code and re.match(r"\s*(from|import) ", row)
            else names.sub(lambda found: dotted[found[1]], row)
            for row in rows
        )
        if new != text:
            path.write_text(new)


if __name__ == "__main__":
    main()
