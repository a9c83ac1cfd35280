"""What the request path tells OpenTelemetry, where somebody listens."""
