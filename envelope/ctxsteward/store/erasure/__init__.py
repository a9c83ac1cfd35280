"""Forgetting a session or a person: what is destroyed, redacted and withdrawn, and in which order."""
