"""Drain the local journal into the object store, and move sessions between machines."""
