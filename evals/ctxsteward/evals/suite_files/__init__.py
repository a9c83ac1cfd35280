"""Suites that teams bring as files: read and checked, played and judged, drafted from transcripts, run in parts.

This is the door; `__init__.pyi` says which module has a name.
"""
