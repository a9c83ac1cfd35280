"""Suites that teams bring as files: read and checked, played and judged, drafted from transcripts, run in parts."""
