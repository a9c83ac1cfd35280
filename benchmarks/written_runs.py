"""Labelled runs of small made-up worlds in the form of tau-bench, one per line. The same seed gives the same bytes.

written_runs     seven causes of errors, with tools that accept wrong fixes as readily as the right one; a wrong fix
                 fails the task. For some causes the right end is a stop
worded_runs      five causes under two error codes, each in three wordings; advice by tool, code and parameter
                 alone mixes them up
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple


class _Values(NamedTuple):
    """The values of one task."""

    order: str
    payment: str
    other: str
    day: int
    price: int


class _Cause(NamedTuple):
    """Cause of a failing call, its right fix, and a wrong fix that is accepted as readily and fails the task."""

    name: str
    right: Callable[[_Values], list[dict[str, Any]]]
    wrong: Callable[[_Values], list[dict[str, Any]]]
    first: Callable[[_Values], list[dict[str, Any]]]


def _call(tool: str, answer: str, **arguments: Any) -> dict[str, Any]:
    return {"tool": tool, "answer": answer, "arguments": arguments}


def _looks(v: _Values) -> dict[str, Any]:
    return _call("get_order", json.dumps({"order_id": v.order, "payment_id": v.payment}), order_id=v.order)


def _dates(v: _Values) -> list[dict[str, Any]]:
    return [_call("book", "Error: invalid pickup_day, wrong format", order_id=v.order, pickup_day=f"{v.day}/11/2026")]


def _flights(v: _Values, count: int, amount: int, answer: str) -> dict[str, Any]:
    legs = [{"flight": f"HX{v.day}{leg}"} for leg in range(count)]
    return _call("rebook", answer, order_id=v.order, flights=legs, amount=amount)


_CAUSES = (
    _Cause(
        "a date in another format",
        lambda v: [_call("book", "{}", order_id=v.order, pickup_day=f"2026-11-{v.day}")],
        lambda v: [_call("book", "{}", order_id=v.order)],
        _dates,
    ),
    _Cause(
        "a value of another tool",
        lambda v: [_looks(v), _call("refund", "{}", order_id=v.order, payment_id=v.payment)],
        lambda v: [
            _call("get_user", json.dumps({"payment_id": v.other}), name="ann"),
            _call("refund", "{}", order_id=v.order, payment_id=v.other),
        ],
        lambda v: [_call("refund", "Error: payment method not found", order_id=v.order, payment_id="card_0001")],
    ),
    _Cause(
        "a sum that does not add up",
        lambda v: [_flights(v, 2, v.price, "{}")],
        lambda v: [_flights(v, 1, v.price - 40, "{}")],
        lambda v: [_flights(v, 2, v.price - 40, f"Error: payment amount does not add up, total is {v.price}")],
    ),
    _Cause(
        "an argument that is required",
        lambda v: [_call("ship", "{}", order_id=v.order, address="14 Mill Lane", insured=True)],
        lambda v: [_call("ship", "{}", order_id=v.order)],
        lambda v: [
            _call("ship", "Error: missing required argument: insured", order_id=v.order, address="14 Mill Lane")
        ],
    ),
    _Cause(
        "a call that comes first",
        lambda v: [_call("unlock", "{}", order_id=v.order), _call("cancel", "{}", order_id=v.order, reason="late")],
        lambda v: [_call("cancel", "{}", order_id=v.order, reason="test")],
        lambda v: [_call("cancel", "Error: order is locked", order_id=v.order, reason="late")],
    ),
    _Cause(
        "what is not allowed",
        lambda v: [],
        lambda v: [_call("compensate", "{}", order_id=v.order, amount=v.price // 2)],
        lambda v: [
            _call("compensate", "Error: permission denied: amount over the limit", order_id=v.order, amount=v.price)
        ],
    ),
    _Cause(
        "a service that is down for a moment",
        lambda v: [_call("track", "{}", order_id=v.order)],
        lambda v: [_call("track", "{}", order_id=v.other)],
        lambda v: [_call("track", "Error: timeout, service unavailable", order_id=v.order)],
    ),
)
TASKS, TRIALS, FAILING = 56, 4, 0.5


def _charge(v: _Values, payment: str | None, answer: str) -> dict[str, Any]:
    given = {} if payment is None else {"payment_id": payment}
    return _call("charge", answer, order_id=v.order, **given)


def _patch(v: _Values, old_text: str, answer: str) -> dict[str, Any]:
    return _call("patch", answer, path=f"src/mod_{v.day}.py", old_text=old_text)


def _said(v: _Values, *wordings: str) -> str:
    return f"Error: {wordings[v.price % len(wordings)]}"


def _line(v: _Values) -> str:
    return f"    total = price_{v.price} * count"


def _reads(v: _Values) -> dict[str, Any]:
    return _call("show", f"{v.day}\t{_line(v)}", path=f"src/mod_{v.day}.py")


_WORDED = (
    _Cause(
        "a payment method that the order does not have",
        lambda v: [_looks(v), _charge(v, v.payment, "{}")],
        lambda v: [_charge(v, None, "{}")],
        lambda v: [
            _charge(
                v,
                "card_0001",
                _said(
                    v,
                    "payment method card_0001 not found",
                    "no payment method card_0001 was found for the order",
                    "the payment method was not found: card_0001",
                ),
            )
        ],
    ),
    _Cause(
        "a payment id without its sign",
        lambda v: [_charge(v, "#" + v.order, "{}")],
        lambda v: [_charge(v, None, "{}")],
        lambda v: [
            _charge(
                v,
                v.order,
                _said(
                    v,
                    "payment id lacks its leading sign",
                    "the leading sign of the payment id is missing",
                    "payment id without a leading sign",
                ),
            )
        ],
    ),
    _Cause(
        "a voucher that needs no payment",
        lambda v: [_charge(v, None, "{}")],
        lambda v: [_charge(v, v.other, "{}")],
        lambda v: [
            _charge(
                v,
                v.payment,
                _said(
                    v,
                    "vouchers take no payment id",
                    "payment id is refused because vouchers cover it",
                    "vouchers cover this order, payment id refused",
                ),
            )
        ],
    ),
    _Cause(
        "line numbers in a text",
        lambda v: [_patch(v, _line(v), "{}")],
        lambda v: [_patch(v, f"{v.day}", "{}")],
        lambda v: [
            _reads(v),
            _patch(
                v,
                f"{v.day}\t{_line(v)}",
                _said(
                    v,
                    "old_text not found, it begins with line numbers",
                    "line numbers of old_text not found in the file",
                    "old_text with line numbers not found",
                ),
            ),
        ],
    ),
    _Cause(
        "a text without its indentation",
        lambda v: [_patch(v, _line(v), "{}")],
        lambda v: [_patch(v, "total", "{}")],
        lambda v: [
            _patch(
                v,
                _line(v).strip(),
                _said(
                    v,
                    "old_text not found, its leading blanks differ",
                    "leading blanks of old_text not found",
                    "blanks differ, old_text not found",
                ),
            )
        ],
    ),
)


def written_runs(*, seed: int, tasks: int = TASKS, trials: int = TRIALS) -> bytes:
    """Return runs whose errors have one wording per cause."""
    return _caused(_CAUSES, seed, tasks, trials)


def worded_runs(*, seed: int, tasks: int = TASKS, trials: int = TRIALS) -> bytes:
    """Return runs whose errors have several causes under one code, and several wordings of each."""
    return _caused(_WORDED, seed, tasks, trials)


def _caused(causes: Sequence[_Cause], seed: int, tasks: int, trials: int) -> bytes:
    draw = random.Random(seed)
    lines = []
    for task in range(tasks):
        cause, number = causes[draw.randrange(len(causes))], draw.randrange(10_000, 99_999)
        values = _Values(
            f"W-{number}", f"pay_{number * 7}", f"gift_{number * 3}", draw.randint(10, 28), draw.randint(300, 900)
        )
        for trial in range(trials):
            fails = draw.random() < FAILING
            calls = [*cause.first(values), *(cause.wrong if fails else cause.right)(values)]
            lines.append(json.dumps(_run(task, trial, not fails, calls, values)))
    return "\n".join(lines).encode()


def _run(task: int, trial: int, passed: bool, calls: Sequence[dict[str, Any]], values: _Values) -> dict[str, Any]:
    traj: list[dict[str, Any]] = [{"role": "user", "content": f"Please see to my order {values.order}."}]
    for number, call in enumerate(calls):
        if "says" in call:
            traj += [{"role": "assistant", "content": call["says"]}, {"role": "user", "content": call["hears"]}]
            continue
        function = {"name": call["tool"], "arguments": json.dumps(call["arguments"])}
        asked = [{"id": f"c{number}", "type": "function", "function": function}]
        traj.append({"role": "assistant", "content": None, "tool_calls": asked})
        traj.append({"role": "tool", "tool_call_id": f"c{number}", "name": call["tool"], "content": call["answer"]})
    traj.append({"role": "assistant", "content": "Is there anything else?"})
    return {"task_id": task, "trial": trial, "reward": float(passed), "info": {}, "traj": traj}
