"""Reconcile: which observations claim the same, and the record that they make together."""
