"""Render an envelope as the arguments of a provider's client, and read such a request back."""
