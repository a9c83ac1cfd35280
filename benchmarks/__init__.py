"""Figures of this project's own pages: see README.md."""
