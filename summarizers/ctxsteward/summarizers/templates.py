"""Prompts for a summarizer of yours that asks a model: plain files with ``$slots``, and what to strip from the reply.

They are data for such a callable: nothing in the product asks a model, so nothing in it fills them. What a history says
goes into a slot as rows that no text can forge: `ctxsteward.envelope.layout.rows.continued`. The files lie in the
folder `templates` beside this module.

Slots: ``summarize_history`` takes ``history``, ``standing``, ``budget_tokens``; ``summarize_tool_log`` takes ``tool``,
``ref``, ``log``, ``budget_tokens``. Raises `KeyError` for a slot left empty and `ValueError` for one that the template
does not have. Source: the structured compaction prompt of the continuity design (seven sections, hidden analysis).
"""

from __future__ import annotations

import re
from importlib.resources import files
from string import Template
from typing import Literal

TemplateName = Literal["summarize_history", "summarize_tool_log"]

_ANALYSIS = re.compile(r"<analysis>.*?(?:</analysis>\s*|\Z)", re.DOTALL | re.IGNORECASE)


def template_text(name: TemplateName) -> str:
    """The template as it is shipped."""
    return files(__package__).joinpath("templates", f"{name}.md").read_text(encoding="utf-8")


def fill_template(name: TemplateName, /, **slots: str | int) -> str:
    """Fill every slot of a template; text in a slot is never expanded again."""
    template = Template(template_text(name))
    unknown = slots.keys() - set(template.get_identifiers())
    if unknown:
        raise ValueError(
            f"template {name!r} has no slot {sorted(unknown)}; it has {sorted(template.get_identifiers())}"
        )
    return template.substitute(slots)


def strip_analysis(reply: str) -> str:
    """Remove the model's ``<analysis>``; one that was never closed takes the rest with it.

    >>> strip_analysis("<analysis>let me think</analysis>\\n- port 5432 (§3)")
    '- port 5432 (§3)'
    """
    return _ANALYSIS.sub("", reply).strip()
