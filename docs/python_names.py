"""Reference pages of the public Python namess."""

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parent.parent
FOLDERS: Final = {name: name for name in ("runtime", "actors", "transports")} | dict.fromkeys(
    ("adapters", "testing"), "transports"
)
"""The portions of the package, and the folder that each lies in."""
ADAPTERS: Final = sorted(
    f"adapters.{each.name}"
    for each in (ROOT / "transports/greenroom/adapters").iterdir()
    if (each / "__init__.py").is_file() and each.name != "base"
)
PACKAGES: Final = ("runtime", "actors", "transports", *ADAPTERS, "testing")
"""The public packages, in the order of the list."""
INTRODUCTION: Final = """\
# Python

A page for each public package. What a page tells of is imported from the package that it is named after.

"""
FUNCTIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef)
WIDTH: Final = 100  # characters of a declaration on one line


class Exported(NamedTuple):
    """A public name and the statement that defines it."""

    name: str
    node: ast.stmt
    text: str


def python_pages() -> dict[str, str]:
    """Return a page for each public package by its file, and the list of them."""
    trees = {
        f"greenroom.{name}": ast.parse(module_path(f"greenroom.{name}").read_text()) for name in PACKAGES
    }
    pages = {f"python/{package}.md": package_page(package, tree) for package, tree in trees.items()}
    listed = [f"- [{package}](python/{package}.md): {summary(tree)}\n" for package, tree in trees.items()]
    return {"python.md": "".join([INTRODUCTION, *listed]), **pages}


def package_page(package: str, tree: ast.Module) -> str:
    """Return the page of one package: what it is, and each name that it exports."""
    names = sorted(exported(tree), key=lambda each: (rank(each.node), each.name.lower()))
    head = f"# {package}\n\n{prose(ast.get_docstring(tree))}\n\n"
    return "".join([head, *map(entry, names)]).rstrip() + "\n"


def summary(tree: ast.Module) -> str:
    """Return the first sentence of a package's docstring, on one line."""
    return " ".join(prose(ast.get_docstring(tree)).partition("\n\n")[0].split())


def rank(node: ast.stmt) -> int:
    """Return where a name stands: functions, then classes, then values, then errors."""
    if isinstance(node, FUNCTIONS):
        return 0
    if isinstance(node, ast.ClassDef):
        return 3 if node.name.endswith("Error") or node.name == "Refusal" else 1
    return 2


def exported(tree: ast.Module) -> Iterator[Exported]:
    """Yield the names that a package re-exports."""
    for statement in ast.walk(tree):  # a lazy package has its imports under a condition
        if isinstance(statement, ast.ImportFrom) and statement.module is not None:
            names = [alias.name for alias in statement.names if alias.asname == alias.name]
            if names:
                body = ast.parse(module_path(statement.module).read_text()).body
                yield from (definition(name, body) for name in names)


def module_path(module: str) -> Path:
    """Return the file of a module of ours."""
    path = ROOT / FOLDERS[module.split(".")[1]] / Path(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def definition(name: str, body: list[ast.stmt]) -> Exported:
    """Return the statement that defines ``name``, with its documentation."""
    for node, following in zip(body, [*body[1:], None], strict=True):
        if isinstance(node, (ast.ClassDef, *FUNCTIONS)) and node.name == name:
            return Exported(name, node, ast.get_docstring(node) or "")
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if any(isinstance(target, ast.Name) and target.id == name for target in targets):
            said = following.value if isinstance(following, ast.Expr) else None
            text = said.value if isinstance(said, ast.Constant) else ""
            return Exported(name, node, inspect.cleandoc(str(text)))
    raise LookupError(f"{name} is exported and not defined")


def entry(each: Exported) -> str:
    """Return the section of one public name."""
    node, title = each.node, f"## {each.name}"
    if isinstance(node, ast.ClassDef):
        text = each.text + described_fields(node)  # before the head leaves them out
        members = [member for member in node.body if isinstance(member, FUNCTIONS) and member.name[0] != "_"]
        methods = [
            section(f"### {each.name}.{member.name}", signature(member), ast.get_docstring(member))
            for member in members
        ]
        return section(title, class_head(node), text) + "".join(methods)
    if isinstance(node, FUNCTIONS):
        return section(title, signature(node), each.text)
    if isinstance(node, ast.AnnAssign):
        return section(title, f"{each.name}: {ast.unparse(node.annotation)}", each.text)
    return section(title, ast.unparse(node).replace("'", '"'), each.text)  # as ruff writes it


def section(title: str, code: str, docstring: str | None) -> str:
    """Return a heading, a declaration and its description."""
    return f"{title}\n\n```py\n{code}\n```\n\n{prose(docstring)}\n\n"


def described_fields(node: ast.ClassDef) -> str:
    """Return the fields of a class, by its annotations, as a docstring section."""
    fields = [each for each in node.body if isinstance(each, ast.AnnAssign)]
    lines = [
        f"    {ast.unparse(each.target)}: {said[1]}"
        for each in fields
        if (said := described(each)) is not None
    ]
    return "\n".join(["\n\nAttributes:", *lines]) if lines else ""


def described(field: ast.AnnAssign) -> tuple[ast.expr, str] | None:
    """Return a field's type and its meaning, if they are ``Annotated[type, kind(..., "meaning")]``."""
    match field.annotation:
        case ast.Subscript(
            value=ast.Name("Annotated"),
            slice=ast.Tuple([kind, ast.Call(args=[*_, ast.Constant(str(meaning))])]),
        ):
            return kind, meaning
    return None


def class_head(node: ast.ClassDef) -> str:
    """Return a class's line, what makes it, and its fields."""
    documented = "Args:" in (ast.get_docstring(node) or "")  # others are made by the runtime alone
    bases = ", ".join(map(ast.unparse, node.bases))
    lines = [f"class {node.name}({bases})" if bases else f"class {node.name}"]
    for each in node.body:
        if isinstance(each, ast.FunctionDef) and each.name == "__init__" and documented:
            lines.append(f"    {signature(each)}".replace("\n", "\n    "))
        elif isinstance(each, ast.AnnAssign | ast.Assign) and not ast.unparse(each).startswith("_"):
            if isinstance(each, ast.AnnAssign) and (said := described(each)) is not None:
                each.annotation = said[0]
            lines.append("    " + ast.unparse(each))
    return "\n".join(lines)


def signature(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    """Return how a function is called, over several lines when it is long."""
    before = "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"
    decorators = {ast.unparse(each) for each in node.decorator_list}
    if "asynccontextmanager" in decorators:
        before = "async with"
    returns = "" if node.returns is None or before == "async with" else f" -> {ast.unparse(node.returns)}"
    arguments = re.sub(r"^self(, )?", "", ast.unparse(node.args))
    if "property" in decorators:
        if node.returns is None:
            return node.name
        return f"{node.name}: {ast.unparse(node.returns)}".replace("'", '"')  # as ruff writes it
    line = f"{before} {node.name}({arguments}){returns}"
    if len(line) <= WIDTH:
        return line
    listed = "".join(f"    {each},\n" for each in split_arguments(arguments))
    return f"{before} {node.name}(\n{listed}){returns}"


def split_arguments(arguments: str) -> list[str]:
    """Return a function's arguments one by one: commas inside of brackets separate nothing."""
    parts, depth, start = [], 0, 0
    for at, character in enumerate(arguments):
        depth += (character in "([{") - (character in ")]}")
        if character == "," and depth == 0:
            parts.append(arguments[start:at].strip())
            start = at + 1
    return [*parts, arguments[start:].strip()]


# -- docstrings ------------------------------------------------------------------

SECTIONS: Final = {
    "Args:": "Arguments",
    "Attributes:": "Attributes",
    "Class attributes:": "Class attributes",
    "Raises:": "Raises",
    "Returns:": "Returns",
}


def prose(docstring: str | None) -> str:
    """Return a docstring as Markdown: sections become lists, and double back-quotes single ones."""
    lines = inspect.cleandoc(docstring or "").replace("``", "`").splitlines()
    out: list[str] = []
    section = False
    for line in lines:
        if line in SECTIONS:
            section = True
            out += [f"**{SECTIONS[line]}**", ""]
        elif line and not line.startswith(" "):
            section = False
            out.append(line)
        elif section and (named := re.match(r"    (\*{0,2}[\w, ]+): (.*)", line)):
            out.append(f"- `{named[1]}`: {named[2]}")
        elif section and line.startswith("    "):
            out.append("  " + line.strip())
        else:
            out.append(line)
    return "\n".join(out).rstrip()
