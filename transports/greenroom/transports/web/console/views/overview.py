"""The first page: contents, connected clients, health, savings and advice."""

from __future__ import annotations

from typing import Final

from greenroom.actors import GetOverview
from greenroom.transports.web.console.view import Place, Reader, View

_EVERY: Final = 10.0
_MOST_OPERATIONS: Final = 6
"""Operations with a line of their own in a chart; the others share one."""


async def overview(reader: Reader, _place: Place) -> View:
    """Return the first page."""
    reply = await reader.ask(GetOverview())
    savings = reply.savings
    periods = savings.days if len(savings.days) > 1 else savings.hours
    names = [each.operation for each in savings.report.operations]
    shown = list(dict.fromkeys(names))[:_MOST_OPERATIONS]
    values = {
        "overview": reply,
        "periods": periods,
        "period": "day" if periods is savings.days else "hour",
        "shown_operations": shown,
        "others": {
            each.begins: sum(saved for name, saved in each.by_operation.items() if name not in shown)
            for each in periods
        },
        "levels": sorted({level for each in periods for level in each.hit_rates}),
    }
    return View("overview.html", "Overview", values, every=_EVERY)
