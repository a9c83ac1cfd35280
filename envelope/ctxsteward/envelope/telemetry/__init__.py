"""Metrics and spans of the request path, recorded where the process has loaded OpenTelemetry."""
