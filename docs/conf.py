"""What Sphinx makes the site with; `docs/build_site.py` runs it."""

from collections.abc import Callable
from html import escape
from typing import Any

from sphinx.addnodes import toctree
from sphinx.application import Sphinx

project = "Greenroom"
extensions = ["myst_parser", "sphinx.ext.githubpages"]  # the latter has GitHub serve folders like `_static`
myst_heading_anchors = 4  # as code hosts make them, and each link to one is checked
smartquotes = False
html_theme = "furo"
html_title = "Greenroom"
html_theme_options = {  # the green of the console, transports/console/src/base.css
    "light_css_variables": {"color-brand-primary": "#15703a", "color-brand-content": "#15703a"},
    "dark_css_variables": {"color-brand-primary": "#5fd08a", "color-brand-content": "#5fd08a"},
}
html_sourcelink_suffix = ""  # the Markdown of each page stays beside it, for `llms.txt`
html_show_sphinx = False
html_use_index = False


def setup(app: Sphinx) -> None:
    """Take part in making each page."""
    app.connect("html-page-context", list_pages, priority=400)  # before the theme's, at 500


def list_pages(app: Sphinx, page: str, _template: str, context: dict[str, Any], _tree: object) -> None:
    """Give the theme the navigation, which is the same for each page.

    Sphinx's own copies the headings of all pages for each page, before the theme drops them: that took
    two thirds of the time of a build.
    """
    sections = app.env.master_doctree.findall(toctree)
    html = "".join(section(each["caption"], each["entries"], page, context["pathto"]) for each in sections)
    context["toctree"] = lambda **_: html


def section(caption: str, entries: list[tuple[str, str]], page: str, pathto: Callable[[str], str]) -> str:
    """Return the links of one section, of which one may be to the page itself."""
    links = [
        f'<li class="toctree-l1{" current" if name == page else ""}">'
        f'<a class="reference internal" href="{pathto(name)}">{escape(title)}</a></li>'
        for title, name in entries
    ]
    return (
        f'<p class="caption"><span class="caption-text">{escape(caption)}</span></p><ul>{"".join(links)}</ul>'
    )
