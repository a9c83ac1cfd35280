"""Maintenance of a store: check and repair it (`fsck`), remove garbage (`gc`), list and count its content (`stats`)."""
