"""The rules and the dashboard of `docs/monitoring/`, and the figures of who comes in and what goes out."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import promql_parser
import pytest
import yaml
from ops.test_metrics_process import Samples, get, scrape
from support.commands import serving

from greenroom.actors import (
    Agent,
    CreateApiKey,
    ExportMemories,
    ExportSession,
    PassportOptions,
    StartSession,
    StoreMemory,
    open_key_cache,
    open_link,
)
from greenroom.transports import Caller, KeyAuthenticator
from greenroom.transports.base.errors import HttpRefusedError
from greenroom.transports.base.observability.access import ADDRESSES, KEYS, AccessMeter

if TYPE_CHECKING:
    from collections.abc import Iterable

    from support.agents import Enter

MONITORING = Path(__file__).parents[2] / "docs" / "monitoring"
OF_PROMETHEUS = {"job", "instance"}
"""The labels that Prometheus gives each series that it scrapes."""

Labels = dict[str, dict[str, set[str]]]
"""The values of each label of each metric."""


class Read(NamedTuple):
    """What an expression reads of a metric: by which labels, with which values where they are told."""

    metric: str
    labels: dict[str, str | None]


def rules() -> list[dict[str, Any]]:
    groups = yaml.safe_load((MONITORING / "alerts.yml").read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def panels() -> list[dict[str, Any]]:
    return [panel for panel in dashboard()["panels"] if panel["type"] != "row"]


def dashboard() -> dict[str, Any]:
    return cast("dict[str, Any]", json.loads((MONITORING / "dashboard.json").read_text()))


def targets() -> list[dict[str, str]]:
    return [target for panel in panels() for target in panel["targets"]]


def parsed(expression: str) -> promql_parser.Expr:
    return promql_parser.parse(expression.replace("$__rate_interval", "5m"))


def read_by(expression: str) -> list[Read]:
    """Return what an expression reads, each metric with the labels that it is chosen or summed by."""
    metrics: list[promql_parser.VectorSelector] = []
    summed: set[str] = set()

    def visit(part: promql_parser.Expr) -> None:
        if isinstance(part, promql_parser.MatrixSelector):
            metrics.append(part.vector_selector)
        elif isinstance(part, promql_parser.VectorSelector):
            metrics.append(part)
        elif isinstance(part, promql_parser.AggregateExpr) and part.modifier is not None:
            summed.update(part.modifier.labels)

    promql_parser.walk(parsed(expression), visit)
    return [
        Read(
            str(each.name),
            dict.fromkeys(summed)
            | {
                label.name: label.value if label.op == promql_parser.MatchOp.Equal else None
                for label in each.matchers.matchers
            },
        )
        for each in metrics
    ]


def unknown(expressions: Iterable[str], samples: Samples) -> list[str]:
    """Return what expressions read that is no metric, no label of it, or no value of that label."""
    labels: Labels = {"up": {}}
    for name, pairs in samples:
        of = labels.setdefault(name, defaultdict(set))
        for label, value in pairs:
            of[label].add(value)
    wrong = []
    for read in (read for expression in expressions for read in read_by(expression)):
        known = labels.get(read.metric)
        if known is None:
            wrong.append(read.metric)
            continue
        wrong += [
            f"{read.metric}: {label}={value}"
            for label, value in read.labels.items()
            if label not in OF_PROMETHEUS and (label not in known or value not in {None, *known[label]})
        ]
    return wrong


@pytest.mark.promise("metrics.alerts", "metrics.dashboard")
@pytest.mark.slow
def test_every_rule_and_panel_reads_what_a_server_says(tmp_path: Path) -> None:
    with serving(tmp_path, "--stdio", "--http", "127.0.0.1:0") as server:
        before = scrape(server)
        assert get(server, Authorization="Bearer gr_wrong")[0] == 401
        server.call("store_memory", content="the harbour opens at six", key="harbour")
        size = server.call("export_memories")["size_bytes"]
        after = scrape(server)
        server.call("ingest_documents", texts=[{"path": "a.md", "text": "# Harbour\n\nIt opens at six."}])
        for _ in range(2):
            server.call("semantic_search", query="harbour")  # the second one from a cache
        samples = scrape(server)
    asked = [rule["expr"] for rule in rules()] + [target["expr"] for target in targets()]
    assert unknown(asked, samples) == []
    lost = ["greenroom_gone", "sum by (colour) (up)", 'greenroom_requests_total{method="no/such"}']
    assert unknown(lost, samples) == [
        "greenroom_gone",
        "up: colour=None",
        "greenroom_requests_total: method=no/such",
    ]
    assert all(read_by(rule["expr"]) and rule["annotations"]["summary"] for rule in rules())

    def grown(name: str) -> float:
        return after[f"greenroom_{name}_total", ()] - before[f"greenroom_{name}_total", ()]

    assert (grown("authentications_refused"), grown("exports"), grown("exported_bytes")) == (1, 1, size)
    assert grown("authentications") == 1, "the second scrape"


@pytest.mark.promise("metrics.dashboard")
def test_the_dashboard_asks_whatever_prometheus_is_chosen_about_the_chosen_servers() -> None:
    variables = {each["name"]: each for each in dashboard()["templating"]["list"]}
    assert variables["datasource"]["type"] == "datasource"
    assert variables["datasource"]["query"] == "prometheus"
    sources = [each["datasource"]["uid"] for each in (*panels(), *targets())]
    assert set(sources) == {"${datasource}"}
    for target in targets():
        assert all({"job", "instance"} <= read.labels.keys() for read in read_by(target["expr"])), target[
            "expr"
        ]
        assert set(re.findall(r"\$(\w+)", target["expr"])) <= {*variables, "__rate_interval"}
        named = set(re.findall(r"{{(\w+)}}", target["legendFormat"]))
        assert all(named <= read.labels.keys() for read in read_by(target["expr"])), target["legendFormat"]


@pytest.mark.quick
@pytest.mark.promise("metrics.dashboard")
def test_every_panel_has_a_title_a_unit_and_a_place_of_its_own() -> None:
    whole = dashboard()
    assert (whole["title"], whole["uid"]) == ("Greenroom", "greenroom")
    assert whole["schemaVersion"] > 36  # since then a datasource is an object
    ids = [panel["id"] for panel in whole["panels"]]
    assert len(ids) == len(set(ids)) > 20
    taken: set[tuple[int, int]] = set()
    for panel in whole["panels"]:
        at = panel["gridPos"]
        cells = {(at["x"] + x, at["y"] + y) for x in range(at["w"]) for y in range(at["h"])}
        assert at["x"] + at["w"] <= 24
        assert not cells & taken, panel["title"]
        taken |= cells
        assert panel["title"]
    for panel in panels():
        assert panel["fieldConfig"]["defaults"]["unit"]
        letters = [target["refId"] for target in panel["targets"]]
        assert len(letters) == len(set(letters)) > 0


@pytest.mark.promise("metrics.alerts")
async def test_a_key_s_new_address_is_counted_and_its_first_is_not(enter: Enter) -> None:
    meter = AccessMeter()

    async def come(key: str, *addresses: str) -> int:
        for address in addresses:
            headers = [(b"authorization", f"Bearer {key}".encode())]
            await authenticator.authenticate(Caller(address=address), headers)
        return meter.statistics().new_addresses

    async with enter() as at, open_key_cache(at.runtime, clock=at.clock) as cache:
        authenticator = KeyAuthenticator(cache, access=meter)
        admin = at.agent("root", user="owner", scopes=frozenset({"admin"}))
        one, other = [
            (await admin.ask(CreateApiKey(name=name, scopes=["*:read"]))).api_key for name in ("one", "other")
        ]
        await cache.load()
        assert await come(one, "192.0.2.1", "192.0.2.1", "::ffff:192.0.2.1") == 0
        assert await come(one, "192.0.2.2") == 1
        assert await come(other, "192.0.2.2") == 1
        assert await come(one, "192.0.2.1", "192.0.2.2") == 1
        with pytest.raises(HttpRefusedError):
            await come(f"{one}x", "192.0.2.9")
    told = meter.statistics()
    assert (told.admitted, told.refused) == (7, 1)


@pytest.mark.quick
@pytest.mark.promise("metrics.alerts")
def test_no_more_addresses_are_remembered_than_are_allowed() -> None:
    meter = AccessMeter()
    for number in range(ADDRESSES + 1):
        meter.record_admitted("key", f"address {number}")
    assert meter.statistics().new_addresses == ADDRESSES
    meter.record_admitted("key", f"address {ADDRESSES}")  # the newest is remembered
    meter.record_admitted("key", "address 1")
    assert meter.statistics().new_addresses == ADDRESSES
    meter.record_admitted("key", "address 0")  # the oldest is not
    assert meter.statistics().new_addresses == ADDRESSES + 1
    for number in range(KEYS):
        meter.record_admitted(f"key {number}", "address")
    meter.record_admitted("key", "elsewhere")  # forgotten, so this is its first
    assert meter.statistics().new_addresses == ADDRESSES + 1


@pytest.mark.promise("metrics.alerts")
async def test_what_is_exported_is_counted_by_its_bytes(enter: Enter) -> None:
    async with enter(embedder="none") as at:
        meter = AccessMeter()
        alice = Agent(
            at.runtime,
            at.agent("a", user="alice").principal,
            passports=PassportOptions(base_url="http://localhost"),
            on_export=meter.record_export,
        )
        await alice.ask(StoreMemory(content="the harbour opens at six"))
        memories = await alice.ask(ExportMemories())
        passport = (await alice.ask(StartSession(workspace_path="/w", purpose="Häfen"))).memory_passport
        session = await alice.ask(ExportSession())
        told = meter.statistics()
        assert (told.exports, told.exported_bytes) == (2, memories.size_bytes + session.size_bytes)
        assert passport is not None
        opened = await open_link(
            at.runtime,
            (passport.export_url or "").rpartition("/")[2],
            None,
            options=PassportOptions(),
            is_valid=lambda _: True,
            on_export=meter.record_export,
        )
    assert opened is not None
    assert meter.statistics().exported_bytes == told.exported_bytes + len(opened.text.encode())
