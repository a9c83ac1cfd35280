"""Rendering: an envelope as the arguments of a provider's client, and such a request read back."""
