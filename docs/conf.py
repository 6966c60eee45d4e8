"""What Sphinx makes the site with; `docs/build_site.py` runs it."""

from collections.abc import Callable

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
    app.connect("html-page-context", list_pages_alone, priority=400)  # before the theme at 500


def list_pages_alone(_app: Sphinx, _page: str, _template: str, context: dict[str, object], _tree: object) -> None:
    """Let the navigation list pages without their headings.

    The theme drops headings anyway, but only after all of all pages were copied, for each page: two thirds
    of the time of a build.
    """
    toctree = context["toctree"]
    assert isinstance(toctree, Callable)
    context["toctree"] = lambda **options: toctree(**{**options, "maxdepth": 1})
