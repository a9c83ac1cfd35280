"""Drift: what changed between two profiles, how bad that is, and the patches between them."""
