"""Generate tool results in formats of the split ``sealed`` only: XML, logfmt, INI, YAML, a tree, a mailbox, HTML.

    result = FORMATS["xml"](rng, things, 40)

Like `pasted_content` for the other splits: made from a source of randomness and some nouns, with a number of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from xml.sax.saxutils import escape, quoteattr

Make = Callable[[Random, Sequence[str], int], str]
MODULES = ("berths", "cellar", "playlist", "stacks", "tides", "velodrome", "binding", "rigging", "stage", "weighing")
OUTCOMES = ("afloat", "settled", "returned", "lapsed", "withdrawn", "on loan")


def _xml(rng: Random, things: Sequence[str], rows: int) -> str:
    items = (
        f'  <entry no="{at}" outcome={quoteattr(rng.choice(OUTCOMES))} weight="{rng.randint(1, 9_999) / 10}">'
        f"{escape(rng.choice(things))}</entry>"
        for at in range(1, rows + 1)
    )
    return "\n".join(['<?xml version="1.0"?>', f'<entries module="{rng.choice(MODULES)}">', *items, "</entries>"])


def _logfmt(rng: Random, things: Sequence[str], rows: int) -> str:
    return "\n".join(
        f"ts=17{rng.randrange(10**8):08d} module={rng.choice(MODULES)} outcome={rng.choice(OUTCOMES)} "
        f'took={rng.randint(1, 9_000)}us subject="{rng.choice(things)}"'
        for _ in range(rows)
    )


def _ini(rng: Random, things: Sequence[str], rows: int) -> str:
    lines = []
    for at in range(rows):
        if at % 4 == 0:
            lines.append(f"[{rng.choice(MODULES)}.{at // 4}]")
        lines.append(f"{rng.choice(('quota', 'backoff', 'finish', 'keeper'))}_{at} = {rng.choice(things)}")
    return "\n".join(lines)


def _yaml(rng: Random, things: Sequence[str], rows: int) -> str:
    rows_made = (
        f"  - subject: {rng.choice(things)}\n    outcome: {rng.choice(OUTCOMES)}\n    share: {rng.random():.4f}"
        for _ in range(rows)
    )
    return "\n".join([f"{rng.choice(MODULES)}:", *rows_made])


def _tree(rng: Random, things: Sequence[str], rows: int) -> str:
    depth, lines = 0, ["."]
    for _ in range(rows):
        depth = max(0, min(5, depth + rng.choice((-1, 0, 0, 1))))
        lines.append(f"{'│   ' * depth}├── {rng.choice(MODULES)}-{rng.randint(1, 99)}  # {rng.choice(things)}")
    return "\n".join(lines)


def _tabs(rng: Random, things: Sequence[str], rows: int) -> str:
    lines = [f"{rng.choice(things)}\t{rng.randint(1, 900)}\t{rng.choice(OUTCOMES)}" for _ in range(rows)]
    return "\n".join(["subject\tcount\toutcome", *lines])


def _mailbox(rng: Random, things: Sequence[str], rows: int) -> str:
    return "\n".join(
        f"{rng.randint(1, 28):>2} Mar  {rng.choice(MODULES)}@quay.example  "
        f"{rng.choice(('Re', 'Fwd', 'Re: Fwd'))}: {rng.choice(things)} ({rng.randint(1, 90)} KB)"
        for _ in range(rows)
    )


def _html(rng: Random, things: Sequence[str], rows: int) -> str:
    cells = (f"<tr><td>{escape(rng.choice(things))}</td><td>{rng.randint(1, 999)}</td></tr>" for _ in range(rows))
    return "\n".join(["<table>", "<tr><th>subject</th><th>count</th></tr>", *cells, "</table>"])


def _stack(rng: Random, things: Sequence[str], rows: int) -> str:
    frames = (
        f"\tat net.quay.{rng.choice(MODULES)}.Worker.run(Worker.java:{rng.randint(10, 900)})"
        for _ in range(max(1, rows))
    )
    return "\n".join([f"java.lang.IllegalStateException: {rng.choice(things)} is {rng.choice(OUTCOMES)}", *frames])


FORMATS: dict[str, Make] = {
    "xml": _xml,
    "logfmt": _logfmt,
    "ini": _ini,
    "yaml": _yaml,
    "tree": _tree,
    "tabs": _tabs,
    "mailbox": _mailbox,
    "html": _html,
    "stack": _stack,
}
TOOLS = (
    ("pull_notices", "xml"),
    ("radio_log", "logfmt"),
    ("open_config", "ini"),
    ("inspect_unit", "yaml"),
    ("list_stacks", "tree"),
    ("dump_table", "tabs"),
    ("find_letters", "mailbox"),
    ("render_notice", "html"),
    ("start_winch", "stack"),
)
