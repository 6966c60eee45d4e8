"""Draws the figures of docs/benchmarks.md from results of `python -m bench`: `python docs/figures.py`.

`docs/measured/` has the results, as `--json` writes them. The tables below the figures are put into the page
by `docs/generate.py`, from the same values.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple
from xml.etree import ElementTree as ET

import msgspec
import pygal
from pygal.style import Style

DOCS: Final = Path(__file__).resolve().parent
IMAGES: Final = DOCS / "images"
FONT: Final = "system-ui, sans-serif"
STYLE: Final = Style(
    background="white",
    plot_background="white",
    font_family=FONT,
    label_font_family=FONT,
    major_label_font_family=FONT,
    legend_font_family=FONT,
    value_font_family=FONT,
    title_font_family=FONT,
    label_font_size=13,
    major_label_font_size=13,
    legend_font_size=13,
    value_font_size=12,
    title_font_size=16,
    guide_stroke_color="#d8dade",
    guide_stroke_dasharray="none",
    major_guide_stroke_color="#d8dade",
    major_guide_stroke_dasharray="none",
    opacity="1",
    colors=("#1b7f5c", "#7cc4a6", "#b0562b", "#8a8f98", "#3f5f9f"),  # Greenroom is green
)
BESIDE_BARS: Final = "inline:.text-overlay text.value{text-anchor:start;transform:translate(4px,0)}"


class Figure(NamedTuple):
    """A chart of bars, and the table of its values.

    Attributes:
        name: Of its file and of the table's place in the page.
        title: What the bars are, with the unit.
        run: The file of the results.
        benchmark: The benchmark in them.
        table: What the title of its table has in it.
        rows: Rows of that table by what they are called here; a row begins with its name.
        columns: Columns of it, likewise.
        grouped_by_row: Whether bars of a row stand together, else those of a column.
    """

    name: str
    title: str
    run: str
    benchmark: str
    table: str
    rows: dict[str, str]
    columns: dict[str, str]
    grouped_by_row: bool = True


FIGURES: Final = (
    Figure(
        "processor-time-stdio",
        "Processor time of the server for a call over standard input and output, µs",
        run="server.json",
        benchmark="mcp",
        table="processor time of the server for a call",
        rows={"1 in flight": "1", "16 in flight": "16", "256 in flight": "256"},
        columns={
            "Greenroom, get_memory": "get_memory µs",
            "Greenroom, add_message (durable)": "add_message µs",
            "an echo on the official SDK": "SDK echo µs",
        },
    ),
    Figure(
        "processor-time-http",
        "Processor time of the server for a call over HTTP, ms",
        run="server.json",
        benchmark="http",
        table="a tool call over HTTP",
        rows={
            "Greenroom, without a handshake": "greenroom, modern era",
            "Greenroom, with one": "greenroom, handshake era",
            "the official SDK, JSON, without": "SDK's app, json, modern era",
            "the official SDK, JSON, with one": "SDK's app, json, handshake era",
            "the official SDK, SSE, without": "SDK's app, sse, modern era",
            "the official SDK, SSE, with one": "SDK's app, sse, handshake era",
            "an app that does nothing": "empty app",
        },
        columns={"ms": "CPU ms a request"},
    ),
    Figure(
        "notes-found",
        "Notes that are found, %",
        run="finding.json",
        benchmark="retrieval",
        table="stand-alone notes, ",
        rows={
            "Greenroom, MiniLM": "greenroom, MiniLM",
            "Greenroom, word vectors": "greenroom, static",
            "Greenroom, words alone": "greenroom, words",
            "SQLite FTS5": "SQLite FTS5, BM25",
            "cosine of MiniLM alone": "bare cosine, MiniLM",
        },
        columns={
            "asked with the same words": "plain R@10 %",
            "with a typing error": "typo R@10 %",
            "in other words": "paraphrase R@10 %",
            "by way of another note": "two-hop R@10 %",
            "the newer of two facts": "newer @1 %",
            "by a relative time": "relative @1 %",
        },
        grouped_by_row=False,
    ),
    Figure(
        "documents-found",
        "Headings of these pages whose section is found, %",
        run="finding.json",
        benchmark="documents",
        table="headings, each asked for the file",
        rows={
            "Greenroom, word vectors": "with, greenroom, static",
            "Greenroom, words alone": "with, greenroom, words",
            "rank-bm25": "with, rank-bm25",
            "SQLite FTS5": "with, SQLite FTS5",
        },
        columns={
            "first": "recall@1 %",
            "among the first ten": "recall@10 %",
            "mean reciprocal rank": "MRR %",
        },
    ),
    Figure(
        "worth-of-a-score",
        "Answers of each score that were right, %",
        run="finding.json",
        benchmark="retrieval",
        table="stand-alone notes: what share",
        rows={
            f"{tenth / 10} to {(tenth + 1) / 10}": f"{tenth / 10} to {(tenth + 1) / 10}"
            for tenth in range(10)
        },
        columns={"MiniLM": "MiniLM: right %", "word vectors": "static: right %"},
    ),
)


def main() -> None:
    """Draw every figure."""
    IMAGES.mkdir(exist_ok=True)
    for figure in FIGURES:
        (IMAGES / f"{figure.name}.svg").write_text(drawn(figure))


def tables() -> dict[str, tuple[tuple[str, ...], Callable[[], Iterator[tuple[str, ...]]]]]:
    """Return the table of each figure: its head, and what yields its rows."""
    return {each.name: (("", *series(each)), lambda each=each: lines(each)) for each in FIGURES}


def series(figure: Figure) -> list[str]:
    """Return what each colour stands for."""
    return list(figure.columns if figure.grouped_by_row else figure.rows)


def lines(figure: Figure) -> Iterator[tuple[str, ...]]:
    """Yield the rows of a figure's table."""
    for group, found in values(figure).items():
        yield group, *(to_label(value) for value in found)


def values(figure: Figure) -> dict[str, list[float]]:
    """Return the values of each group of bars, in the order of the series."""
    results = msgspec.json.decode((DOCS / "measured" / figure.run).read_bytes())
    assert not results["smoke"], f"{figure.run} has no times"
    tables = results["benchmarks"][figure.benchmark]["tables"]
    table = next(each for each in tables if figure.table in each["title"])
    rows = {label(row): dict(zip(table["columns"], row, strict=True)) for row in table["rows"]}
    grid = {
        group: [float(rows[row][column]) for column in figure.columns.values()]
        for group, row in figure.rows.items()
    }
    if figure.grouped_by_row:
        return grid
    return dict(zip(figure.columns, map(list, zip(*grid.values(), strict=True)), strict=True))


def label(row: list[Any]) -> str:
    """Return the words at the head of a row, or else its first number."""
    words = [cell for cell in row if isinstance(cell, str)]
    return ", ".join(words) or str(row[0])


def to_label(value: float) -> str:
    """Return a value with about three digits."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"  # noqa: PLR2004  three digits


def drawn(figure: Figure) -> str:
    """Return a figure as SVG, the first group on top."""
    groups, names = values(figure), series(figure)
    chart = pygal.HorizontalBar(
        style=STYLE,
        title=figure.title,
        width=900,
        height=110 + 26 * len(groups) * len(names) + 12 * len(groups) + 13 * len(names),
        css=[*pygal.Config().css, BESIDE_BARS],
        js=(),
        margin_right=70,
        no_prefix=True,
        print_values=True,
        print_values_position="top",
        formatter=to_label,
        show_legend=len(names) > 1,
        legend_at_bottom=True,
        legend_at_bottom_columns=2,
        truncate_legend=-1,
        truncate_label=-1,
        show_x_guides=False,
        show_y_guides=True,
    )
    chart.x_labels = list(groups)[::-1]
    for at, name in enumerate(names):
        chart.add(name, [found[at] for found in list(groups.values())[::-1]])
    tree = ET.fromstring(chart.render())  # noqa: S314  it is ours; without comments, which have the date
    for inside in tree.iter("{http://www.w3.org/2000/svg}defs"):
        for script in inside.findall("{http://www.w3.org/2000/svg}script"):
            inside.remove(script)
    ET.register_namespace("", "http://www.w3.org/2000/svg")
    return ET.tostring(tree, encoding="unicode") + "\n"


if __name__ == "__main__":
    main()
