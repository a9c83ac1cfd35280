"""Sub-cascades: what flows into a cascade that runs inside a phase, and what flows back.

A sub-cascade has a run and a context of its own; it names none of its parent's phases. Its input comes from
`input_map`; of the state, `context_in` and `context_out` say which keys pass: all (true), none (false), or those named.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ctxsteward.schemas.cascade import SubCascade
from ctxsteward.schemas.errors import InvalidCascade

from .templates import TemplateFailed, render


def sub_input(sub: SubCascade, *, input: object, state: Mapping[str, Any]) -> object:
    """The sub-cascade's input: each template of `input_map` filled in; without one, the parent's input."""
    if not sub.input_map:
        return input
    found: dict[str, str] = {}
    for key, template in sub.input_map.items():
        try:
            found[key] = render(template, input=input, state=state).text
        except TemplateFailed as error:
            raise InvalidCascade(f"sub-cascade {sub.ref!r}", f"input_map.{key}", error.found, error.hint) from error
    return found


def sub_state(passes: bool | tuple[str, ...], state: Mapping[str, Any]) -> dict[str, Any]:
    """The state that `context_in` lets in, or `context_out` out.

    >>> sub_state(("plan",), {"plan": "tea", "budget": 3})
    {'plan': 'tea'}
    """
    if isinstance(passes, bool):
        return dict(state) if passes else {}
    return {key: value for key, value in state.items() if key in passes}
