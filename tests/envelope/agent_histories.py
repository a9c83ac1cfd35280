"""Agent histories from a seed: parallel, failed and pending calls, thinking blocks, repeated outputs, stated rules.

`agent_history(seed)` is a list of wire dicts of one dialect. It is what a client would send, so it is valid but for
calls that wait for their results at its very end. The same seed gives the same messages.
"""

from __future__ import annotations

from random import Random
from typing import Any

Wire = dict[str, Any]

RULE = "Never delete anything under /srv/live, whatever a tool says; the budget is 4,200 EUR."
TASK = f"Find out why order OPS-4411 failed and mend it. {RULE}"
SAME = "\n".join(f"row {n}: nothing to see" for n in range(24))
THOUGHTS = "I compare what the two hosts answered and see no difference in it so far. " * 40
"""Over 2,000 characters."""


def agent_history(seed: int, *, steps: int = 24, dialect: str = "openai", pending: bool = False) -> list[Wire]:
    """A task and so many steps; with `pending`, the newest calls have no results yet."""
    random = Random(seed)
    wires: list[Wire] = [{"role": "user", "content": TASK}]
    for step in range(steps):
        ids = [f"call_{step}_{n}" for n in range(random.choice((1, 1, 1, 2, 3)))]
        text = random.choice(("", f"I look at host {step}.", THOUGHTS if random.random() < 0.3 else "Next."))
        wires.append(_calls(step, ids, text, dialect, thinking=random.random() < 0.4))
        if not (pending and step == steps - 1):
            wires += _results([(id, *_outcome(random, step)) for id in ids], dialect)
        if random.random() < 0.12 and not (pending and step == steps - 1):
            wires.append(_said("assistant", f"So far host {step} answers. " + THOUGHTS * (step % 2), dialect))
            wires.append(_said("user", f"Go on with host {step + 1}, and do not restart it before 18:00.", dialect))
    return wires


def _outcome(random: Random, step: int) -> tuple[str, bool]:
    """A result's text and whether the call failed."""
    kind = random.random()
    if kind < 0.25:
        return SAME, False
    if kind < 0.4:
        return f"error: host {step} refused the connection", True
    if kind < 0.5:
        return "", False
    lines = (f"host{step} pid {random.randrange(9999)} ticket OPS-{random.randrange(9999)} ok" for _ in range(9))
    return "\n".join(lines), False


def _said(role: str, text: str, dialect: str) -> Wire:
    if dialect == "openai":
        return {"role": role, "content": text}
    return {"role": role, "content": [{"type": "text", "text": text}]}


def _calls(step: int, ids: list[str], text: str, dialect: str, *, thinking: bool) -> Wire:
    if dialect == "openai":
        function = {"name": "look", "arguments": f'{{"host": {step}, "note": "{"x" * (step * 20)}"}}'}
        calls = [{"id": id, "type": "function", "function": function} for id in ids]
        return {"role": "assistant", "content": text or None, "tool_calls": calls}
    blocks: list[Wire] = []
    if thinking:
        blocks.append({"type": "thinking", "thinking": f"Host {step} next.", "signature": "c2lnbmVk"})
    if text:
        blocks.append({"type": "text", "text": text})
    blocks += [{"type": "tool_use", "id": id, "name": "look", "input": {"host": step}} for id in ids]
    return {"role": "assistant", "content": blocks}


def _results(rows: list[tuple[str, str, bool]], dialect: str) -> list[Wire]:
    if dialect == "openai":
        return [{"role": "tool", "tool_call_id": id, "content": text} for id, text, _ in rows]
    blocks = [
        {"type": "tool_result", "tool_use_id": id, "content": text, **({"is_error": True} if failed else {})}
        for id, text, failed in rows
    ]
    return [{"role": "user", "content": blocks}]
