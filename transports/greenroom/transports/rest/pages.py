"""The few pages for people: what is here, and logging in and out. They have no script, and need none."""

from __future__ import annotations

from html import escape
from http import HTTPStatus
from typing import Final

from greenroom.transports.base.errors import HttpRefusedError
from greenroom.transports.http.responses import Header, Response
from greenroom.transports.rest.browser_sessions import SessionView

HTML: Final = (b"content-type", b"text/html; charset=utf-8")
POLICY: Final = b"default-src 'none'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
SAFE: Final[tuple[Header, ...]] = (
    (b"cache-control", b"no-store"),
    (b"content-security-policy", POLICY),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    # Not `no-referrer`: with it a browser says `Origin: null` of the forms here.
    (b"referrer-policy", b"same-origin"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
)
"""Headers of everything that is answered here: whatever stands in it, a browser carries none of it out."""

_PAGE: Final = """\
<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><title>{title}</title>
<meta name="viewport" content="width=device-width, initial-scale=1"></head>
<body><main><h1>{title}</h1>
{body}
</main></body>
</html>
"""
_LOG_IN: Final = """\
<form method="post" action="{up}login"><p><label for="key">API key</label>
<input id="key" name="key" type="password" autocomplete="off" required>
<button>Log in</button></p></form>
<p>On the machine of the server, <code>greenroom console</code> gives a link that logs you in.</p>"""
_LINK: Final = """\
<form method="post" action="../login"><input type="hidden" name="link" value="{link}">
<p><button autofocus>Log in to Greenroom</button></p></form>"""
_HERE: Final = """\
<p>You are {who}, and may do: {scopes}.</p>
<form method="post" action="logout"><input type="hidden" name="csrf_token" value="{csrf_token}">
<p><button>Log out</button></p></form>"""
_THERE_IS: Final = """\
<ul><li>MCP at <code>mcp</code></li>
<li>HTTP and JSON at <code>api/v1</code>, described in
<a href="api/v1/openapi.json">openapi.json</a></li></ul>"""


def start_page(view: SessionView | None) -> Response:
    """Return what is here, to who has logged in or may."""
    if view is None:
        return _page("Greenroom", _LOG_IN.format(up=""))
    who = view.agent if view.user is None else f"{view.agent} of {view.user}"
    here = _HERE.format(
        who=escape(who), scopes=escape(", ".join(view.scopes)), csrf_token=escape(view.csrf_token or "")
    )
    return _page("Greenroom", f"{_THERE_IS}\n{here}")


def link_page(link: str) -> Response:
    """Return the page of a link, which is used up when its form is sent, not when it is opened."""
    return _page("Log in", _LINK.format(link=escape(link)))


def refusal_page(error: HttpRefusedError) -> Response:
    """Return the page that says why something is refused."""
    headers = [(name.encode(), value.encode("latin-1", "replace")) for name, value in error.headers.items()]
    page = _page(error.status.phrase, f"<p>{escape(str(error))}</p>", error.status)
    return page._replace(headers=[*page.headers, *headers])


def to_start(header: Header) -> Response:
    """Return what leads a browser to the start page, with a cookie set or cleared."""
    return Response(HTTPStatus.SEE_OTHER, [(b"location", b"./"), header], b"")


def _page(title: str, body: str, status: HTTPStatus = HTTPStatus.OK) -> Response:
    return Response(status, [HTML], _PAGE.format(title=escape(title), body=body).encode())
