"""Generate pasted content and tool results: JSON, logs, diffs, search results, listings, tables, code.

    name, arguments, result = tool_output(rng, things)
    result = KINDS["log"](rng, things, rows=400)

All of it is made from a source of randomness and some nouns; a kind takes its length in rows. The split ``sealed`` has
other tools and formats (`sealed_formats`). `calls` is an assistant message that calls tools (one, or several at once).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from random import Random

from ctxsteward.schemas.message import Wire

from . import sealed_formats
from .suite import Split

Make = Callable[[Random, Sequence[str], int], str]
FOLDERS = ("src", "lib", "app", "docs", "tests", "scripts", "etc", "data", "web", "jobs")
STEMS = (
    "index",
    "reader",
    "worker",
    "report",
    "client",
    "schema",
    "notes",
    "loader",
    "cache",
    "route",
    "table",
    "view",
)
ENDS = ("py", "md", "json", "ts", "yaml", "sql", "csv", "txt")
VERBS = ("read", "load", "merge", "sort", "check", "send", "pack", "trim", "scan", "join")
STATES = ("ok", "queued", "running", "skipped", "done", "stale")


PastedOutput = tuple[str, Wire, str]
"""Name and arguments of a tool call, and its result."""


def calls(*rows: tuple[str, str, Wire], text: str | None = None) -> Wire:
    """Make an assistant message that calls tools; rows are id, name, arguments."""
    made = [
        (id, {"name": name, "arguments": json.dumps(arguments, ensure_ascii=False)}) for id, name, arguments in rows
    ]
    made_calls = [{"id": id, "type": "function", "function": function} for id, function in made]
    return {"role": "assistant", "content": text, "tool_calls": made_calls}


def paste(rng: Random, things: Sequence[str], language: str, split: Split = "docs") -> str:
    """Make something short that a person copies into a message."""
    if split == "sealed":
        return sealed_formats.FORMATS[rng.choice(tuple(sealed_formats.FORMATS))](rng, things, rng.randint(3, 9))
    kind = rng.choice(("list", "numbered", "table", "code", "log", "json", "diff", "csv"))
    if kind in ("list", "numbered"):
        return _list(rng, things, language, numbered=kind == "numbered")
    body = KINDS[kind](rng, things, rng.randint(3, 9))
    return body if kind == "table" else f"```{'' if kind in ('log', 'csv') else kind}\n{body}\n```"


def tool_output(rng: Random, things: Sequence[str], rows: int | None = None, split: Split = "docs") -> PastedOutput:
    """Make a tool call and a result of a few to a few dozen rows."""
    tools, kinds = (sealed_formats.TOOLS, sealed_formats.FORMATS) if split == "sealed" else (TOOLS, KINDS)
    name, kind = rng.choice(tools)
    count = rows if rows is not None else rng.choice((3, 5, 8, 8, 12, 20, 30))
    arguments: Wire = {"target": rng.choice(things), "limit": count} if rng.random() < 0.5 else {"path": path_of(rng)}
    return name, arguments, kinds[kind](rng, things, count)


def _list(rng: Random, things: Sequence[str], language: str, *, numbered: bool) -> str:
    chosen = rng.sample(list(things), rng.randint(3, min(6, len(things))))
    after = "：" if language == "zh" else ": "
    marks = [f"{n}. " if numbered else "- " for n in range(1, len(chosen) + 1)]
    return "\n".join(f"{mark}{thing}{after}{rng.choice(STATES)}" for mark, thing in zip(marks, chosen, strict=True))


def path_of(rng: Random) -> str:
    """Make a file path."""
    folders = "/".join(rng.sample(FOLDERS, rng.randint(1, 3)))
    return f"{folders}/{rng.choice(STEMS)}_{rng.randint(1, 99)}.{rng.choice(ENDS)}"


def _log(rng: Random, things: Sequence[str], rows: int) -> str:
    at, lines = rng.randint(0, 80_000), []
    for _ in range(rows):
        at += rng.randint(1, 40)
        clock = f"{at // 3600 % 24:02d}:{at // 60 % 60:02d}:{at % 60:02d}"
        level = rng.choice(("INFO", "INFO", "INFO", "DEBUG", "WARN"))
        lines.append(
            f"{clock} {level} {rng.choice(VERBS)} {rng.choice(STEMS)}-{rng.randint(1, 40)} in {rng.randint(1, 900)} ms"
        )
    return "\n".join(lines)


def _json(rng: Random, things: Sequence[str], rows: int) -> str:
    records = [
        {
            "id": rng.randrange(10**6),
            "name": rng.choice(things),
            "state": rng.choice(STATES),
            "score": round(rng.random(), 3),
        }
        for _ in range(rows)
    ]
    return json.dumps({"items": records, "total": len(records)}, ensure_ascii=False, indent=rng.choice((None, 2)))


def _csv(rng: Random, things: Sequence[str], rows: int) -> str:
    head = "name,state,count,share"
    return "\n".join(
        [
            head,
            *(
                f"{rng.choice(things)},{rng.choice(STATES)},{rng.randint(1, 900)},{rng.random():.3f}"
                for _ in range(rows)
            ),
        ]
    )


def _table(rng: Random, things: Sequence[str], rows: int) -> str:
    body = [f"| {rng.choice(things)} | {rng.choice(STATES)} | {rng.randint(1, 99)} |" for _ in range(rows)]
    return "\n".join(["| what | state | count |", "|---|---|---|", *body])


def _code(rng: Random, things: Sequence[str], rows: int) -> str:
    name = f"{rng.choice(VERBS)}_{rng.choice(STEMS)}"
    lines = [
        f"    {rng.choice(STEMS)}_{rng.randint(1, 60)} = {rng.choice(VERBS)}(rows, {rng.random():.3f})"
        for _ in range(rows)
    ]
    return "\n".join([f"def {name}(rows):", *lines, "    return rows"])


def _diff(rng: Random, things: Sequence[str], rows: int) -> str:
    path = path_of(rng)
    lines = [f"--- a/{path}", f"+++ b/{path}", f"@@ -{rng.randint(1, 90)},{rows} +{rng.randint(1, 90)},{rows} @@"]
    for _ in range(rows):
        line = f"{rng.choice(STEMS)} = {rng.choice(VERBS)}({rng.randint(1, 999)})"
        lines += [f"-{line}", f"+{line}  # {rng.choice(VERBS)}"] if rng.random() < 0.4 else [f" {line}"]
    return "\n".join(lines)


def _search(rng: Random, things: Sequence[str], rows: int) -> str:
    lines = []
    for place in range(1, rows + 1):
        first, second = rng.choice(things), rng.choice(things)
        lines.append(f"[{place}] {path_of(rng)}:{rng.randint(1, 400)}: {first} / {second} ({rng.random():.2f})")
    return "\n".join(lines)


def _listing(rng: Random, things: Sequence[str], rows: int) -> str:
    return "\n".join(f"-rw-r--r-- {rng.randint(80, 90_000):>6} {path_of(rng)}" for _ in range(rows))


def _traceback(rng: Random, things: Sequence[str], rows: int) -> str:
    lines = ["Traceback (most recent call last):"]
    for _ in range(max(1, rows // 2)):
        lines += [
            f'  File "{path_of(rng)}", line {rng.randint(1, 400)}, in {rng.choice(VERBS)}',
            f"    {rng.choice(STEMS)}({rng.randint(1, 9)})",
        ]
    return "\n".join([*lines, f"ValueError: {rng.choice(STEMS)} {rng.randint(10, 99)} is not {rng.choice(STATES)}"])


KINDS: dict[str, Make] = {
    "log": _log,
    "json": _json,
    "csv": _csv,
    "table": _table,
    "code": _code,
    "diff": _diff,
    "search": _search,
    "listing": _listing,
    "traceback": _traceback,
}
TOOLS = (
    ("search_files", "search"),
    ("list_folder", "listing"),
    ("tail_log", "log"),
    ("get_records", "json"),
    ("query", "csv"),
    ("show_diff", "diff"),
    ("read_file", "code"),
    ("run_checks", "traceback"),
    ("get_overview", "table"),
)
