"""Metrics and traces of a running server: Prometheus counters and times, OpenTelemetry spans.

`meter` and `find_tracer` run for every request and import next to nothing. The code that renders the
figures is imported at the first scrape, and OpenTelemetry only if it is configured.
"""
