"""Pages for people to look at: one HTML file each, with nothing loaded from anywhere."""

from .inspector import inspect_call
from .site import Site
from .timeline import timeline_page

__all__ = ["Site", "inspect_call", "timeline_page"]
