"""The reference page of HTTP and JSON below `/api/v1`."""

from collections.abc import Iterator
from typing import Final

import msgspec

from greenroom.actors import API_REQUESTS, REQUESTS
from greenroom.actors.core.auth.scopes import needed_for_request
from greenroom.transports.web.rest import openapi
from greenroom.transports.web.rest.problems import STATUSES

HEAD: Final = """\
# HTTP and JSON

`greenroom serve --http` answers below `/api/v1`; [use the HTTP API](../how-to/use-the-http-api.md) shows how.
Arguments and answers are those of the [tools](tools.md). `/api/v1/openapi.json` describes all of it in
OpenAPI 3.1, with every limit.

"""


def http_page() -> str:
    """Return the page: every path, and the status of every code."""
    return "".join(
        [
            HEAD,
            "## Paths\n\nThe method is POST unless GET stands there. In parentheses is the scope.\n\n",
            *paths(),
            "\n## Statuses\n\n",
            *statuses(),
        ]
    )


def statuses() -> Iterator[str]:
    """Yield a line for each status, with the codes that it stands for."""
    for status in sorted(set(STATUSES.values())):
        codes = ", ".join(f"`{code}`" for code, each in sorted(STATUSES.items()) if each == status)
        yield f"- {status} {status.phrase}: {codes}\n"


def paths() -> Iterator[str]:
    """Yield a line for each path."""
    for path, methods in msgspec.json.decode(openapi.document())["paths"].items():
        for method, operation in methods.items():
            name = operation["operationId"]
            what = f"[{operation['summary']}](tools.md#{name})" if name in REQUESTS else operation["summary"]
            scope = f" (`{needed_for_request(name)}`)" if name in API_REQUESTS else ""
            asked = "" if method == "post" else f"{method.upper()} "
            yield f"- {asked}`{path}`: {what}{scope}\n"
