"""Harvest: what one transcript says that is worth keeping, as observations; no model, nothing trained."""
