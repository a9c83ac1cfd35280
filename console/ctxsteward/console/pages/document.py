"""Renders a page: one HTML file, filled from the templates beside this module, with nothing loaded from anywhere.

Every value is escaped where a template puts it in; markup goes in as `Markup`, which only `drawing` makes. The page's
content security policy forbids scripts and every request. Light and dark follow the reader's setting.
"""

from __future__ import annotations

from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

_templates = Environment(
    loader=PackageLoader("ctxsteward.console.pages"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


def render(name: str, **values: Any) -> str:
    """Fill the template of this name; the same text for the same values."""
    return _templates.get_template(name).render(values)
