"""The dashboard for Grafana, docs/monitoring/dashboard.json: its panels, and what each asks Prometheus."""

import json
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

COLUMNS: Final = 3
WIDTH: Final = 24 // COLUMNS  # of the 24 parts that Grafana divides a row into
HEIGHT: Final = 8
SOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}


class Panel(NamedTuple):
    """One chart.

    Attributes:
        title: What it shows.
        unit: Grafana's id of the unit.
        queries: Expressions by what their lines are called.
        limits: From which value on it is yellow, and from which on red.
        most: The end of the scale, where there is one.
    """

    title: str
    unit: str
    queries: dict[str, str]
    limits: tuple[float, float] | None = None
    most: float | None = None


def series(name: str, where: str = "") -> str:
    """Return a metric of the chosen servers."""
    matchers = 'job="$job",instance=~"$instance"' + (f",{where}" if where else "")
    return f"{name}{{{matchers}}}"


def total(name: str, by: str = "", where: str = "") -> str:
    """Return the sum of a metric of Greenroom."""
    return f"sum{f' by ({by}) ' if by else ''}({series(f'greenroom_{name}', where)})"


def per_second(name: str, by: str = "", where: str = "") -> str:
    """Return how much a counter of Greenroom grows in a second."""
    return f"sum{f' by ({by}) ' if by else ''}(rate({series(f'greenroom_{name}', where)}[$__rate_interval]))"


def within_an_hour(name: str, by: str) -> str:
    """Return how much a counter of Greenroom grew in the last hour."""
    return f"sum by ({by}) (increase({series(f'greenroom_{name}')}[1h]))"


def quantile(share: float, name: str, by: str = "", where: str = "") -> str:
    """Return the quantile of one of Greenroom's histograms."""
    classes = per_second(f"{name}_bucket", by=f"le, {by}" if by else "le", where=where)
    return f"histogram_quantile({share}, {classes})"


CALLS: Final = 'method="tools/call"'
FAILED: Final = 'outcome=~"error|tool_error"'
LASTING: Final = 'method!="subscriptions/listen"'  # for streams the time is the duration of the connection
FILLED: Final = "greenroom_store_used_bytes", "greenroom_store_quota_bytes"
SAVED: Final = "savings_baseline_tokens_total", "savings_answer_tokens_total"

ROWS: Final = {
    "Requests": [
        Panel("Requests by outcome", "reqps", {"{{outcome}}": per_second("requests_total", "outcome")}),
        Panel(
            "The tools that are called most",
            "reqps",
            {"{{tool}}": f"topk(10, {per_second('requests_total', 'tool', CALLS)})"},
        ),
        Panel("Connections that are open", "short", {"{{transport}}": total("connections", "transport")}),
        Panel(
            "Time of a request",
            "s",
            {
                f"{share:.0%}": quantile(share, "request_seconds", where=LASTING)
                for share in (0.5, 0.95, 0.99)
            },
        ),
        Panel(
            "The slowest tools, 99 %",
            "s",
            {"{{tool}}": f"topk(10, {quantile(0.99, 'request_seconds', 'tool', CALLS)})"},
        ),
        Panel(
            "The longest time for which the event loop was held",
            "s",
            {"since the start": f"max({series('greenroom_longest_slice_seconds')})"},
            limits=(0.05, 0.5),
        ),
    ],
    "Errors": [
        Panel(
            "Share of requests that failed",
            "percentunit",
            {
                "failed": f"{per_second('requests_total', where=FAILED)} / {per_second('requests_total')}",
            },
            limits=(0.05, 0.2),
        ),
        Panel(
            "What failed",
            "reqps",
            {"{{tool}} {{outcome}}": f"topk(10, {per_second('requests_total', 'tool, outcome', FAILED)})"},
        ),
        Panel(
            "Faults, which should stay at 0",
            "short",
            {
                "messages failed": total("messages_failed_total"),
                "dead letters": total("dead_letters_total"),
                "commits failed": total("commit_failures_total"),
                "actors set aside": total("actors_set_aside"),
                "audit notes dropped": total("notes_dropped_total"),
            },
        ),
        Panel(
            "Messages that were not handled",
            "short",
            {
                "overloaded": per_second("messages_overloaded_total"),
                "expired": per_second("messages_expired_total"),
                "abandoned": per_second("messages_abandoned_total"),
                "not committed": per_second("messages_not_committed_total"),
                "refused": per_second("messages_refused_total"),
            },
        ),
        Panel(
            "Who was not let in",
            "reqps",
            {
                "log-ins refused": per_second("authentications_refused_total"),
                "{{transport}} turned away": per_second("connections_refused_total", "transport"),
                "{{transport}} overdue": per_second("connections_overdue_total", "transport"),
            },
        ),
        Panel(
            "Exports",
            "decbytes",
            {"in an hour": f"sum(increase({series('greenroom_exported_bytes_total')}[1h]))"},
        ),
    ],
    "Store": [
        Panel(
            "Share of the store that is used",
            "percentunit",
            {
                "used": f"max({' / '.join(map(series, FILLED))})",
            },
            limits=(0.85, 0.95),
            most=1,
        ),
        Panel(
            "Size",
            "bytes",
            {
                "used": total("store_used_bytes"),
                "file": total("store_file_bytes"),
                "free on the disk": f"min({series('greenroom_disk_free_bytes')})",
            },
        ),
        Panel("Rows", "short", {"rows": total("store_rows")}),
        Panel("Commits", "ops", {"commits": per_second("commits_total")}),
        Panel(
            "Messages in a commit",
            "short",
            {"mean": f"{per_second('commit_works_sum')} / {per_second('commit_works_count')}"},
        ),
        Panel(
            "Time of a commit, 99 %",
            "s",
            {
                "the whole commit": quantile(0.99, "commit_seconds"),
                "waiting for the disk": quantile(0.99, "fsync_seconds"),
            },
            limits=(0.1, 1),
        ),
    ],
    "Mailboxes and actors": [
        Panel(
            "Messages that wait",
            "short",
            {
                "accepted and not over": total("messages_waiting"),
                "in mailboxes": total("mailbox_messages"),
                "in the fullest mailbox": f"max({series('greenroom_mailbox_deepest_messages')})",
            },
        ),
        Panel("Messages handled", "ops", {"handled": per_second("messages_handled_total")}),
        Panel(
            "Actors",
            "short",
            {"in memory": total("actors_resident"), "waiting for their turn": total("actors_ready")},
        ),
        Panel("Memory of actors", "bytes", {"estimated": total("actors_resident_bytes")}),
        Panel(
            "Actors that come and go",
            "ops",
            {
                "loaded": per_second("actor_activations_total"),
                "left": per_second("actor_passivations_total"),
                "left for lack of memory": per_second("actor_evictions_total"),
                "restarted": per_second("actor_restarts_total"),
            },
        ),
        Panel(
            "Changes of resources",
            "ops",
            {"published": per_second("publications_total"), "told": per_second("changes_told_total")},
        ),
    ],
    "Savings": [
        Panel(
            "Tokens that were not read, by the hour",
            "short",
            {"{{operation}}": " - ".join(within_an_hour(name, "operation") for name in SAVED)},
        ),
        Panel(
            "Tokens that were not read, since the start",
            "short",
            {"{{operation}}": " - ".join(total(name, "operation") for name in SAVED)},
        ),
        Panel(
            "Share of lookups that caches answered",
            "percentunit",
            {
                "{{operation}} {{level}}": " / ".join(
                    per_second("savings_cache_lookups_total", "operation, level", where)
                    for where in ('outcome="hit"', "")
                ),
            },
            most=1,
        ),
    ],
    "Process": [
        Panel(
            "Processors",
            "short",
            {"busy": f"sum(rate({series('process_cpu_seconds_total')}[$__rate_interval]))"},
        ),
        Panel("Memory", "bytes", {"resident": f"sum({series('process_resident_memory_bytes')})"}),
        Panel(
            "Open files",
            "short",
            {"open": f"sum({series('process_open_fds')})", "limit": f"min({series('process_max_fds')})"},
        ),
    ],
}
"""The panels, by the row that they stand in."""


def dashboard() -> str:
    """Return the dashboard as Grafana imports it."""
    whole = {
        "uid": "greenroom",
        "title": "Greenroom",
        "description": "Written by docs/generate.py; change docs/dashboard.py, not this file.",
        "schemaVersion": 39,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {"list": list(variables())},
        "panels": list(laid_out()),
    }
    return json.dumps(whole, indent=1) + "\n"


def variables() -> Iterator[dict[str, Any]]:
    """Yield what is chosen at the head: where Prometheus is, and of which servers."""
    yield {"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus"}
    for name, query in (
        ("job", "label_values(greenroom_build_info, job)"),
        ("instance", 'label_values(greenroom_build_info{job="$job"}, instance)'),
    ):
        several = {"multi": True, "includeAll": True, "current": {"text": "All", "value": "$__all"}}
        yield {
            "name": name,
            "label": name.capitalize(),
            "type": "query",
            "datasource": SOURCE,
            "query": {"query": query, "refId": name},
            "refresh": 2,  # when the range of time changes
            **(several if name == "instance" else {}),
        }


def laid_out() -> Iterator[dict[str, Any]]:
    """Yield the panels of Grafana, each at its place."""
    number, top = 0, 0
    for title, panels in ROWS.items():
        number += 1
        place = {"x": 0, "y": top, "w": 24, "h": 1}
        yield {
            "id": number,
            "type": "row",
            "title": title,
            "collapsed": False,
            "gridPos": place,
            "panels": [],
        }
        top += 1
        for at, panel in enumerate(panels):
            number += 1
            place = {"x": at % COLUMNS * WIDTH, "y": top + at // COLUMNS * HEIGHT, "w": WIDTH, "h": HEIGHT}
            yield {"id": number, "gridPos": place, **drawn(panel)}
        top += -(-len(panels) // COLUMNS) * HEIGHT


def drawn(panel: Panel) -> dict[str, Any]:
    """Return a panel without its place."""
    limits = panel.limits or ()
    colours = [("green", None), *zip(("yellow", "red"), limits, strict=False)]
    defaults = {
        "unit": panel.unit,
        "min": None if panel.unit == "short" else 0,  # what was saved may be less than nothing
        "max": panel.most,
        "thresholds": {"mode": "absolute", "steps": [{"color": name, "value": at} for name, at in colours]},
        "custom": {"fillOpacity": 10, "thresholdsStyle": {"mode": "line" if limits else "off"}},
    }
    return {
        "type": "timeseries",
        "title": panel.title,
        "datasource": SOURCE,
        "fieldConfig": {"defaults": defaults, "overrides": []},
        "options": {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi"}},
        "targets": [
            {"refId": chr(ord("A") + at), "datasource": SOURCE, "expr": query, "legendFormat": name}
            for at, (name, query) in enumerate(panel.queries.items())
        ],
    }
