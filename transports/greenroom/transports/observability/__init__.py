"""Metrics and traces of a running server: counts and times for Prometheus, spans for OpenTelemetry.

`meter` and `find_tracer` are on the way of every request and import next to nothing. What
renders the figures is imported at the first scrape, and OpenTelemetry when it is configured.
"""
