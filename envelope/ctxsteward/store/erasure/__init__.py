"""Forget a session or a person: destroy keys, redact logs, withdraw derived records, and sign a receipt."""
