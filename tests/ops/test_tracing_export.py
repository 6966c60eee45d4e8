"""Where spans go: found by the environment's variables, in processes of their own."""

from __future__ import annotations

import http.server
import json
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from harness import PATIENCE, clean_environment
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

SPANS = """
import logging, os, sys
from greenroom.transports.base.observability.export import export_spans
from greenroom.transports.base.observability.tracing import find_tracer
{before}
logging.basicConfig(format="%(levelname)s %(message)s")
with export_spans(os.environ):
    tracer = find_tracer()
    if tracer is not None:
        tracer.begin("tools/call", "2025-11-25", {{"name": "get_memory"}}, 7).end("ok")
    print(tracer is not None, "opentelemetry" in sys.modules)
"""
OWN_PROVIDER = """
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor
own = TracerProvider()
exporter = ConsoleSpanExporter(out=sys.stderr, formatter=lambda span: "own " + span.name)
own.add_span_processor(SimpleSpanProcessor(exporter))
trace.set_tracer_provider(own)
"""


def spans_made_by(home: Path, *, before: str = "", **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a program that makes one span where somebody takes it."""
    environment = clean_environment(home, **variables)
    return subprocess.run(
        [sys.executable, "-c", SPANS.format(before=before)],
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE,
        env={name: value for name, value in environment.items() if not name.startswith("OTEL_")} | variables,
    )


@pytest.mark.quick
@pytest.mark.promise("tracing.off")
@pytest.mark.parametrize(
    "variables",
    [
        {},
        {"OTEL_TRACES_EXPORTER": ""},
        {"OTEL_TRACES_EXPORTER": "none"},
        {"OTEL_TRACES_EXPORTER": " none , "},
        {"OTEL_TRACES_EXPORTER": "otlp", "OTEL_SDK_DISABLED": "True"},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"},
    ],
)
def test_without_an_exporter_nothing_of_opentelemetry_is_imported(
    tmp_path: Path, variables: dict[str, str]
) -> None:
    done = spans_made_by(tmp_path, **variables)
    assert (done.stdout, done.stderr) == ("False False\n", "")


def test_spans_are_named_by_the_environment(tmp_path: Path) -> None:
    done = spans_made_by(
        tmp_path,
        OTEL_TRACES_EXPORTER="console",
        OTEL_RESOURCE_ATTRIBUTES="deployment.environment=test",
    )
    assert done.stdout == "True True\n"
    span = json.loads(done.stderr)
    assert span["name"] == "tools/call get_memory"
    attributes = span["resource"]["attributes"]
    assert (attributes["service.name"], attributes["deployment.environment"]) == ("greenroom", "test")
    done = spans_made_by(tmp_path, OTEL_TRACES_EXPORTER="console", OTEL_SERVICE_NAME="lobby")
    assert json.loads(done.stderr)["resource"]["attributes"]["service.name"] == "lobby"
    done = spans_made_by(tmp_path, OTEL_TRACES_EXPORTER="console", OTEL_TRACES_SAMPLER="always_off")
    assert done.stderr == ""


@pytest.mark.parametrize("exporter", ["zipkin-that-is-not-there", "console,otlp_proto_nothing"])
def test_an_exporter_that_is_not_installed_is_a_warning_that_says_what_to_install(
    tmp_path: Path, exporter: str
) -> None:
    done = spans_made_by(tmp_path, OTEL_TRACES_EXPORTER=exporter)
    assert done.stdout == "False True\n"
    (warning,) = done.stderr.splitlines()
    assert warning.startswith("WARNING OTEL_TRACES_EXPORTER is set")
    assert "pip install 'greenroom[tracing]'" in warning
    assert exporter.rpartition(",")[2] in warning


def test_settings_that_an_exporter_refuses_are_a_warning(tmp_path: Path) -> None:
    done = spans_made_by(tmp_path, OTEL_TRACES_EXPORTER="otlp", OTEL_BSP_MAX_QUEUE_SIZE="0")
    assert "WARNING OTEL_TRACES_EXPORTER is set, but no spans are exported: " in done.stderr
    assert done.stdout == "False True\n"


def test_a_provider_that_the_program_has_set_stays(tmp_path: Path) -> None:
    done = spans_made_by(tmp_path, before=OWN_PROVIDER, OTEL_TRACES_EXPORTER="console")
    assert (done.stdout, done.stderr) == ("True True\n", "own tools/call get_memory")
    done = spans_made_by(tmp_path, before=OWN_PROVIDER)
    assert (done.stdout, done.stderr) == ("True True\n", "own tools/call get_memory")
    done = spans_made_by(tmp_path, before=OWN_PROVIDER, OTEL_SDK_DISABLED="true")
    assert (done.stdout, done.stderr) == ("False True\n", "")


@contextmanager
def collector() -> Iterator[tuple[str, list[Any]]]:
    """Take spans as OpenTelemetry's collector does; yield the address and what came."""
    came: list[Any] = []

    class Taking(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            came.append((self.path, ExportTraceServiceRequest.FromString(body)))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_said: Any) -> None:
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Taking) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", came
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.promise("tracing.export")
@pytest.mark.parametrize("name", ["otlp", "otlp_proto_http"])
def test_a_collector_gets_the_last_span_before_the_end(tmp_path: Path, name: str) -> None:
    with collector() as (address, came):
        spans_made_by(tmp_path, OTEL_TRACES_EXPORTER=name, OTEL_EXPORTER_OTLP_ENDPOINT=address)
    ((path, request),) = came
    assert path == "/v1/traces"
    (span,) = request.resource_spans[0].scope_spans[0].spans
    assert span.name == "tools/call get_memory"


@pytest.mark.promise("tracing.export")
@pytest.mark.parametrize("answers", [True, False])
def test_a_collector_that_is_away_keeps_nobody_from_ending(tmp_path: Path, *, answers: bool) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        if not answers:
            silent.close()  # refuses; else it takes connections and never says a word
        spans_made_by(
            tmp_path,
            OTEL_TRACES_EXPORTER="otlp",
            OTEL_EXPORTER_OTLP_ENDPOINT=f"http://127.0.0.1:{port}",
            OTEL_EXPORTER_OTLP_TIMEOUT="3600",
        )
