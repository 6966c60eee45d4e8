"""Pages of the console, asked for without a browser."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import TYPE_CHECKING

from support.api import Browser, logged_in

if TYPE_CHECKING:
    from support.https import Answer
    from support.keyed import Premises

    from greenroom.actors import ApiKeyMade

VOID = {"br", "hr", "img", "input", "link", "meta"}
"""Elements that have no end."""


class Shown(HTMLParser):
    """A page as a browser would read it.

    Attributes:
        answer: The answer that it is.
        elements: Each element's name and attributes, in order.
        text: What is read in its main part, as one line.
        headings: The texts of its headings.
    """

    def __init__(self, answer: Answer) -> None:
        super().__init__()
        self.answer = answer
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.headings: list[str] = []
        self._open: list[str] = []
        self._texts: list[str] = []
        self.feed(answer.body.decode())
        self.close()
        assert not self._open, f"not closed: {self._open}"
        self.text = " ".join(" ".join(self._texts).split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)
        if tag in {"h1", "h2", "h3"}:
            self.headings.append("")

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag, f"</{tag}> closes something else"

    def handle_data(self, data: str) -> None:
        if "main" in self._open:
            self._texts.append(data)
        if self._open and self._open[-1] in {"h1", "h2", "h3"}:
            self.headings[-1] += data.strip()

    @property
    def status(self) -> int:
        return self.answer.status

    @property
    def links(self) -> list[str]:
        """Where its links lead."""
        return [each["href"] or "" for tag, each in self.elements if tag == "a"]

    def named(self, tag: str) -> list[dict[str, str | None]]:
        """Return the attributes of each element of this name."""
        return [each for name, each in self.elements if name == tag]

    def check_inert(self) -> None:
        """Check that nothing runs on it but our own script, and nothing leads to where a script is."""
        sources = [each.get("src") for each in self.named("script")]
        assert all(source and "/static/" in source for source in sources), sources
        assert "script-src 'self';" in self.answer.headers["content-security-policy"]
        for tag, attributes in self.elements:
            assert tag not in {"iframe", "object", "embed", "style", "base", "svg", "video", "audio"}, tag
            assert tag != "img" or "/static/" in (attributes["src"] or ""), attributes
            assert not [name for name in attributes if name.startswith("on") or name == "style"], attributes
            for name in ("href", "src", "action", "formaction"):
                lead = (attributes.get(name) or "").strip().lower()
                assert not lead.startswith(("javascript:", "data:", "vbscript:", "//", "http")), lead


class Looker(Browser):
    """A browser that looks at pages, without running their script."""

    async def look(self, path: str = "/") -> Shown:
        """Return a page."""
        return Shown(await self.again(path))

    async def again(self, path: str, tag: str | None = None) -> Answer:
        """Return the answer to who knows a page by this tag."""
        await self.guest.send("GET", self.below + path, {**self.headers, "if-none-match": tag})
        return await self.guest.answer()


async def looker(here: Premises, key: ApiKeyMade | None = None, *, read_only: bool = False) -> Looker:
    """Return a browser that has logged in, by a key or else by a link of the folder's owner."""
    return await logged_in(Looker(await here.guest()), here, key, read_only=read_only)
