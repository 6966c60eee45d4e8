"""What Sphinx makes the site with; `docs/build_site.py` runs it."""

from collections.abc import Callable
from typing import Any

from sphinx.application import Sphinx

project = "Greenroom"
extensions = ["myst_parser", "sphinx.ext.githubpages"]  # the latter has GitHub serve folders like `_static`
myst_heading_anchors = 4  # as code hosts make them, and each link to one is checked
smartquotes = False
html_theme = "furo"
html_title = "Greenroom"
html_sourcelink_suffix = ""  # the Markdown of each page stays beside it, for `llms.txt`
html_show_sphinx = False
html_use_index = False


def setup(app: Sphinx) -> None:
    """Take part in making each page."""
    app.connect("html-page-context", list_titles_alone, priority=400)  # before the theme's, at 500


def list_titles_alone(
    app: Sphinx, _page: str, _template: str, context: dict[str, Any], _tree: object
) -> None:
    """Let the navigation list pages without copying the headings of all of them for each page.

    The theme leaves them out anyway. Copying them took two thirds of the time of a build.
    """
    navigation: Callable[..., str] = context["toctree"]

    def titles(**options: Any) -> str:
        for metadata in app.env.metadata.values():
            metadata["tocdepth"] = 1
        try:
            return navigation(**options)
        finally:
            for metadata in app.env.metadata.values():
                del metadata["tocdepth"]

    context["toctree"] = titles
