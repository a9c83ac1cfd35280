"""Draining the local journal into the object store, and moving sessions from machine to machine."""
