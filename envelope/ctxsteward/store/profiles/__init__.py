"""Profiles, their versions and meta records: what people approve before a session is shown it."""
