"""Metrics and spans of the request path, recorded if the process has loaded OpenTelemetry."""
