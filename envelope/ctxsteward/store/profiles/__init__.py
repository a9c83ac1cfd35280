"""Profiles, their versions and meta records: governed text that people approve before sessions show it."""
