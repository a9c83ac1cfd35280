"""A finding: something a person may want to know, never a reason to stop.

`kind` is a stable snake_case word (``tool_call_without_result``, ``field_dropped``, …), `ref` the message it is
about (None: the whole session), `field` the dotted place inside it, `text` one sentence for people.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Finding(BaseModel):
    """One observation about an input or an output."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    kind: str
    ref: str | None = None
    field: str | None = None
    text: str
