"""Draws docs/images/demo.svg: what `greenroom demo` prints, line by line: `python docs/demo_cast.py`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final
from xml.etree import ElementTree as ET

PICTURE: Final = Path(__file__).resolve().parent / "images" / "demo.svg"
SVG: Final = "http://www.w3.org/2000/svg"
COMMAND: Final = "greenroom demo"
COLUMNS: Final = 96
ROWS: Final = 22
LINE: Final = 18  # pixels
PAUSE: Final = 0.35  # seconds between two lines
END: Final = 6.0  # seconds for which the last lines stay
COLOURS: Final = {"ok": "#7ee2a8", "title": "#ffffff", "prompt": "#f0c674", "": "#c3c9d0"}
LOOK: Final = (
    "text{{font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;white-space:pre}}"
    ".line{{animation:show {seconds}s infinite step-end}}"
    "#lines{{animation:scroll {seconds}s infinite step-end}}"
    "@media (prefers-reduced-motion:reduce){{.line{{animation:none}}"
    "#lines{{animation:none;transform:translateY({last}px)}}}}"
)


def demo_output() -> list[str]:
    """Run the demo and return its lines, cut to the width of the picture.

    Raises:
        CalledProcessError: a claim of the demo does not hold.
    """
    program = [sys.executable, "-m", "greenroom.transports.cli", "demo"]
    printed = subprocess.run(program, check=True, capture_output=True, text=True).stdout  # noqa: S603
    return [line if len(line) <= COLUMNS else f"{line[: COLUMNS - 1]}…" for line in printed.splitlines()]


def kind_of(line: str) -> str:
    """Return the kind of a line: `ok`, `title` or none."""
    if line.startswith("  ok "):
        return "ok"
    return "title" if line[:1].isdigit() or line.startswith("All ") else ""


def draw(lines: list[str]) -> str:
    """Return an animated SVG in which lines appear one after another, and scroll.

    People who want less motion see the last lines at rest.
    """
    rows = [(f"$ {COMMAND}", "prompt"), *((line, kind_of(line)) for line in lines)]
    seconds = round(len(rows) * PAUSE + END, 2)
    last = -max(0, len(rows) - ROWS) * LINE
    width, height = COLUMNS * 8 + 24, ROWS * LINE + 24
    picture = ET.Element(
        "svg",
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {width} {height}",
        width=str(width),
        role="img",
    )
    ET.SubElement(picture, "title").text = f"What {COMMAND} prints"
    moves = []
    for number in range(len(rows)):
        up = max(0, number + 1 - ROWS) * LINE
        moves.append(f"{100 * number * PAUSE / seconds:.2f}%{{transform:translateY(-{up}px)}}")
    look = LOOK.format(seconds=seconds, last=last) + f"@keyframes scroll{{{''.join(moves)}}}"
    style = ET.SubElement(picture, "style")
    ET.SubElement(picture, "rect", width="100%", height="100%", rx="8", fill="#16191d")
    window = ET.SubElement(picture, "svg", x="12", y="12", width=str(width - 24), height=str(ROWS * LINE))
    group = ET.SubElement(window, "g", id="lines")
    for number, (line, kind) in enumerate(rows):
        if not line:
            continue
        begin = f"{100 * number * PAUSE / seconds:.2f}%"
        look += f"@keyframes l{number}{{0%{{opacity:0}}{begin},100%{{opacity:1}}}}"
        look += f"#l{number}{{animation-name:l{number}}}"
        place = {
            "id": f"l{number}",
            "class": "line",
            "x": "0",
            "y": str(number * LINE + 13),
            "fill": COLOURS[kind],
        }
        ET.SubElement(group, "text", place).text = line
    style.text = look
    return ET.tostring(picture, encoding="unicode") + "\n"


if __name__ == "__main__":
    PICTURE.write_text(draw(demo_output()))
