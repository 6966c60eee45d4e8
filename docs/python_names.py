"""Reference pages of the public Python names."""

import ast
import inspect
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from greenroom import actors

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

Where an entry says "Fields", they are those of a [tool](tools.md): a text is a `str` there, an integer an
`int`, a time a `datetime` with a time zone, any JSON a `msgspec.Raw`, and what is absent is `msgspec.UNSET`.

"""
FUNCTIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef)
WIDTH: Final = 100  # characters of a declaration on one line


class Exported(NamedTuple):
    """A public name and the statement that defines it."""

    name: str
    node: ast.stmt
    text: str


def python_pages(placed: Mapping[type[msgspec.Struct], str]) -> dict[str, str]:
    """Return a page for each public package by its file, and the list of them.

    The fields of the classes in ``placed`` stand on the page of the tools, at these anchors.
    """
    trees = {
        f"greenroom.{name}": ast.parse(module_path(f"greenroom.{name}").read_text()) for name in PACKAGES
    }
    anchors = {
        each.__name__: anchor
        for each, anchor in placed.items()
        if getattr(actors, each.__name__, None) is each
    }
    pages = {
        f"python/{package}.md": package_page(package, tree, anchors if package == "greenroom.actors" else {})
        for package, tree in trees.items()
    }
    listed = [f"- [{package}](python/{package}.md): {summary(tree)}\n" for package, tree in trees.items()]
    return {"python.md": "".join([INTRODUCTION, *listed]), **pages}


def package_page(package: str, tree: ast.Module, anchors: Mapping[str, str]) -> str:
    """Return the page of one package: what it is, and each name that it exports."""
    names = sorted(exported(tree), key=lambda each: (rank(each.node), each.name.lower()))
    head = f"# {package}\n\n{prose(ast.get_docstring(tree))}\n\n"
    return "".join([head, *(entry(each, anchors.get(each.name)) for each in names)]).rstrip() + "\n"


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


def entry(each: Exported, anchor: str | None) -> str:
    """Return the section of one public name; its fields may stand with the tools."""
    node, title = each.node, f"## {each.name}"
    if isinstance(node, ast.ClassDef):
        methods = "".join(
            section(f"### {each.name}.{member.name}", signature(member), ast.get_docstring(member))
            for member in node.body
            if isinstance(member, FUNCTIONS) and member.name[0] != "_" and not is_listed(member)
        )
        if anchor is None:
            return class_section(title, node, each.text) + methods
        name = each.name if anchor == each.name.lower() else anchor
        fields = f"Fields: [{name}](../tools.md#{anchor})."
        text = each.text
        if name == each.name:  # all that it says stands there
            text = ""
        elif "[" not in class_line(node):  # a reply: so does all but its first words
            text = text.partition("\n\n")[0]
        ran = "".join(f"\n\n`run`: {said}" for _, said in runs(node))
        return section(title, class_line(node), f"{text}\n\n{fields}{ran}".lstrip()) + methods
    if isinstance(node, FUNCTIONS):
        return section(title, signature(node), each.text)
    if isinstance(node, ast.AnnAssign):
        return section(title, f"{each.name}: {ast.unparse(node.annotation)}", each.text)
    return section(title, ast.unparse(node).replace("'", '"'), each.text)  # as ruff writes it


def section(title: str, code: str, docstring: str | None) -> str:
    """Return a heading, a declaration and its description."""
    declaration = f"```py\n{code}\n```\n\n" if "\n" in code else f"`{code}`\n\n" if code else ""
    return f"{title}\n\n{declaration}{prose(docstring)}\n\n"


def described(field: ast.AnnAssign) -> tuple[ast.expr, str] | None:
    """Return a field's type and its meaning, if they are ``Annotated[type, kind(..., "meaning")]``."""
    match field.annotation:
        case ast.Subscript(
            value=ast.Name("Annotated"),
            slice=ast.Tuple([kind, ast.Call(args=[*_, ast.Constant(str(meaning))])]),
        ):
            return kind, meaning
    return None


class OnlyLimits(ast.NodeTransformer):
    """Leaves of an ``Annotated[type, Meta(…)]`` only what limits values; the rest is for schemas."""

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        """Return the type alone if nothing limits its values."""
        self.generic_visit(node)
        match node:
            case ast.Subscript(
                value=ast.Name("Annotated"),
                slice=ast.Tuple([kind, ast.Call(args=[], keywords=limits) as meta]),
            ):
                meta.keywords = [
                    each
                    for each in limits
                    if each.arg not in {"description", "extra", "extra_json_schema", "pattern"}
                ]
                return node if meta.keywords else kind
        return node


def class_line(node: ast.ClassDef) -> str:
    """Return a class's name and bases."""
    bases = ", ".join(map(ast.unparse, node.bases))
    return f"class {node.name}({bases})" if bases else f"class {node.name}"


def class_section(title: str, node: ast.ClassDef, docstring: str) -> str:
    """Return a class's line, what makes it, its description, and its attributes."""
    lines = [class_line(node)] if node.bases else []
    if "Args:" in docstring:  # others are made by the runtime alone
        made = (each for each in node.body if isinstance(each, FUNCTIONS) and each.name == "__init__")
        lines = [class_line(node), *(call(node.name, each) for each in made)]
    text, said = without_attributes(docstring)
    attributes = "".join(attribute_lines(declared(node), said))
    head = section(title, "\n".join(lines), text)
    if attributes.count("\n") == 1 and not said:
        return f"{head}Attributes: {attributes.removeprefix('- ')}\n"
    title = "**Attributes**\n\n" if "\n**" in head else ""  # another list stands above
    return f"{head}{title}{attributes}\n" if attributes else head


def call(name: str, made: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    """Return how an object of a class is made."""
    shown = signature(made).replace("__init__", name, 1).removesuffix(" -> None")
    return f"    {shown}".replace("\n", "\n    ")


def without_attributes(docstring: str) -> tuple[str, dict[str, str]]:
    """Return a docstring without its attributes, and these with what it says about them."""
    kept: list[str] = []
    said: dict[str, str] = {}
    inside = False
    for line in docstring.splitlines():
        if line and not line.startswith(" "):
            inside = line in {"Attributes:", "Class attributes:"}
            if inside:
                continue
        if not inside:
            kept.append(line)
        elif (named := NAMED.match(line)) is not None:
            said[named[1]] = named[2]
        elif line:
            said[list(said)[-1]] += f"\n  {line.strip()}"
    return "\n".join(kept), said


def declared(node: ast.ClassDef) -> dict[str, tuple[str, str]]:
    """Return the declaration of each attribute of a class, and what stands beside it."""
    found: dict[str, tuple[str, str]] = {}
    for each in node.body:
        if isinstance(each, ast.AnnAssign) and ast.unparse(each)[0] != "_":
            if isinstance(each.value, ast.Dict):  # a table of functions, as actors have
                each.value = ast.Constant(...)
            meaning = described(each)
            if meaning is not None:
                each.annotation = meaning[0]
            each.annotation = OnlyLimits().visit(each.annotation)
            found[ast.unparse(each.target)] = (ast.unparse(each), meaning[1] if meaning else "")
        elif (
            isinstance(each, ast.Assign) and ast.unparse(each)[0] != "_" and ast.unparse(each)[:5] != "runs "
        ):
            found[ast.unparse(each.targets[0])] = (ast.unparse(each), "")
        elif isinstance(each, FUNCTIONS) and is_attribute(each):
            found[each.name] = (signature(each), ast.get_docstring(each) or "")
    return found | {name: (name, said) for name, said in runs(node)}


def runs(node: ast.ClassDef) -> list[tuple[str, str]]:
    """Return what a procedure's `run` does, which is called as its base says."""
    return [
        (each.name, docstring)
        for each in node.body
        if isinstance(each, FUNCTIONS) and is_run(each) and (docstring := ast.get_docstring(each))
    ]


def is_listed(member: ast.stmt) -> bool:
    """Return whether a member has its place in the list of attributes."""
    return is_attribute(member) or is_run(member)


def is_run(member: ast.stmt) -> bool:
    """Return whether a member is what a procedure does, in one paragraph."""
    return (
        isinstance(member, FUNCTIONS)
        and member.name == "run"
        and len(member.args.args) == len(("self", "client"))
        and "\n\n" not in (ast.get_docstring(member) or "\n\n")
    )


def is_attribute(member: ast.stmt) -> bool:
    """Return whether a member is a property that one paragraph describes."""
    if not isinstance(member, FUNCTIONS) or member.name[0] == "_":
        return False
    decorators = {ast.unparse(each) for each in member.decorator_list}
    return "property" in decorators and "\n\n" not in (ast.get_docstring(member) or "")


def attribute_lines(declarations: dict[str, tuple[str, str]], said: dict[str, str]) -> Iterator[str]:
    """Yield the attributes in their order; neighbours that need no words share a line."""
    groups = {name.strip(): names for names in said for name in names.split(",")}
    rows: list[tuple[str, list[str]]] = []
    for name, (declaration, beside) in declarations.items():
        about = groups.get(name, name if beside else "")
        if rows and rows[-1][0] == about:
            rows[-1][1].append(declaration)
        else:
            rows.append((about, [declaration]))
    rows += [(names, [names]) for names in said if not any(names == row for row, _ in rows)]
    for names, shown in rows:
        text = said.get(names) or declarations.get(names, ("", ""))[1]
        words = ", ".join(f"`{each}`" for each in shown)
        yield f"- {words}: {text}\n".replace("``", "`") if text else f"- {words}\n"


def signature(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    """Return how a function is called, over several lines when it is long."""
    before = "async " if isinstance(node, ast.AsyncFunctionDef) else ""
    decorators = {ast.unparse(each) for each in node.decorator_list}
    if "asynccontextmanager" in decorators:
        before = "async with "
    returns = "" if node.returns is None or before == "async with " else f" -> {ast.unparse(node.returns)}"
    arguments = re.sub(r"^self(, )?", "", ast.unparse(node.args))
    if "property" in decorators:
        if node.returns is None:
            return node.name
        return f"{node.name}: {ast.unparse(node.returns)}".replace("'", '"')  # as ruff writes it
    line = f"{before}{node.name}({arguments}){returns}"
    if len(line) <= WIDTH:
        return line
    listed = "".join(f"    {each},\n" for each in split_arguments(arguments))
    return f"{before}{node.name}(\n{listed}){returns}"


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

ALONE: Final = re.compile(r"\*\*(Arguments|Raises)\*\*\n\n- (.*(?:\n  .*)*)(?=\n\n|\Z)")  # a list of one
NAMED: Final = re.compile(r"    (\*{0,2}\w[\w, ]*): (.*)")  # what a section explains

SECTIONS: Final = {
    "Args:": "Arguments",
    "Attributes:": "Attributes",
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
        elif section and (named := NAMED.match(line)):
            out.append(f"- `{named[1]}`: {named[2]}")
        elif section and line.startswith("    "):
            out.append("  " + line.strip())
        else:
            out.append(line)
    return ALONE.sub(lambda found: f"**{found[1]}:** {found[2]}", "\n".join(out).rstrip())
