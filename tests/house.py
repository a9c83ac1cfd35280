"""The size and shape of the code beside the bars it is held to, as a table.

    python -m tests.house            # what `make house` prints; exit code 1 while a bar is missed
    python -m tests.house --json
    python -m tests.house --night    # the modules of the third walk, by name

Static figures come from the syntax trees of every tracked Python file outside `tests`; the three walks from running one
append, one build with compaction and recall, and one night under `sys.setprofile`. The night is `open_night` and
`run_night` over the shipped transcripts, on a store that has the shipped profile; no command line is in it. Harvesting
runs in this process, and threads count, so the walk has every module that a night needs; a module that is only
imported on the way is no part of one. `python -m tests.house --night` names them.
"""

from __future__ import annotations

import ast
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("schemas", "envelope", "summarizers", "steward", "evals", "flows", "console")
PREFIX = "ctxsteward."
_IRREGULAR = """
built cut dealt done drawn found given gone grown heard held kept known laid left let lost made meant met put read said
seen sent set shown spent stood taken told understood written
"""
_NOUNS = """
bed being binding building embedding encoding ending feed finding gating grounding heading keyring king meaning need
nothing offering ordering pricing ranking rating reading recording seed setting shed speed spelling string testing
thing timing training warning wording
"""
WHOLE = frozenset(("schemas", "language", "store", "summarizers"))
OWN_DOORS = frozenset(("summarizers.models",))
"""Folders of whole rooms that have a door of their own: whoever asks no model does not learn of it."""
"""Rooms that others enter by one door."""
IRREGULAR = frozenset(_IRREGULAR.split())
NOUNS = frozenset(_NOUNS.split())
"""Words in -ed and -ing that name a thing."""


class Bar(NamedTuple):
    name: str
    value: float | str
    bar: float | None
    """At most; None: shown only."""

    @property
    def is_met(self) -> bool:
        return self.bar is None or float(self.value) <= self.bar


class Module(NamedTuple):
    name: str
    """Without the prefix."""
    path: Path
    text: str
    tree: ast.Module
    is_package: bool
    door: ast.Module | None
    """The stub beside a package's `__init__`: which name of it is loaded from which of its modules."""
    nodes: tuple[ast.AST, ...]
    """All of the tree, which a dozen bars look through."""
    door_nodes: tuple[ast.AST, ...]


def tracked(*patterns: str) -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", *patterns],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split("\0")
    return [ROOT / name for name in listed if name and (ROOT / name).is_file()]


@cache
def modules() -> list[Module]:
    """Every module of the distribution."""
    read = []
    for path in tracked(*(f"{room}/*.py" for room in ROOMS)):
        text = path.read_text(encoding="utf-8")
        parts = path.relative_to(ROOT).with_suffix("").parts[2:]
        is_package = parts[-1] == "__init__"
        name = ".".join(parts[:-1] if is_package else parts)
        stub = path.with_suffix(".pyi")
        door = ast.parse(stub.read_text(encoding="utf-8")) if stub.is_file() else None
        tree = ast.parse(text)
        read.append(Module(name, path, text, tree, is_package, door, walked(tree), walked(door) if door else ()))
    return read


def walked(tree: ast.AST) -> tuple[ast.AST, ...]:
    """What `ast.walk` yields, but for marks of how a name is used."""
    nodes: list[ast.AST] = [tree]
    for node in nodes:
        for field in node._fields:
            value = getattr(node, field, None)
            if isinstance(value, list):
                nodes.extend(item for item in value if isinstance(item, ast.AST))
            elif isinstance(value, ast.AST) and not isinstance(value, ast.expr_context):
                nodes.append(value)
    return tuple(nodes)


# -- imports -----------------------------------------------------------------------------------------------


def imports(module: Module, names: frozenset[str], *, doors: bool = False) -> set[str]:
    """Modules of the project that it names in any import, at the top or not, for types or not.

    With `doors` also those that a package's door leads to: they count for circles, not as something the package uses.
    """
    found = set()
    for node in (*module.nodes, *(module.door_nodes if doors else ())):
        if isinstance(node, ast.Import):
            found.update(_known(alias.name.removeprefix(PREFIX), names) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = _base(module, node)
            if base is not None:
                found.update(_origin(module, base, alias.name, names) for alias in node.names)
    return {name for name in found if name is not None and name != module.name}


def _base(module: Module, node: ast.ImportFrom) -> str | None:
    if node.level == 0:
        said = node.module or ""
        return said.removeprefix(PREFIX) if said.startswith(PREFIX) else "" if said == PREFIX[:-1] else None
    parts = module.name.split(".") if module.is_package else module.name.split(".")[:-1]
    kept = parts[: len(parts) - node.level + 1]
    return ".".join([*kept, *([node.module] if node.module else [])])


def _origin(module: Module, base: str, name: str, names: frozenset[str]) -> str | None:
    """The module that `from base import name` reads.

    That is the door where the door gives the name, though a module may have the same one. A door may give a module,
    too; for what is in the package that is the module.
    """
    given = _given_by_doors().get(base, {})
    at_home = f"{module.name}.".startswith(f"{base}.")
    if name in given and not (at_home and given[name]):
        return base
    return _known(f"{base}.{name}".strip("."), names)


@cache
def _given_by_doors() -> dict[str, dict[str, bool]]:
    """By package: the names that its door gives, and whether that is a module."""
    return {
        module.name: {
            alias.asname or alias.name: node.module is None
            for node in module.door_nodes
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }
        for module in modules()
        if module.door is not None
    }


def beside_doors(read: Iterable[Module]) -> list[str]:
    """Imports of another folder's module where the folder, or the whole room, has a door.

    A room's own modules at its root have no other door than their names, and a module above another in one folder is
    at home there. Doors of whole rooms: `WHOLE`.
    """
    read = list(read)
    names = frozenset(module.name for module in read)
    packages = frozenset(module.name for module in read if module.is_package)
    found = []
    for module in read:
        for target in imports(module, names):
            folder = target if target in packages else target.rpartition(".")[0]
            home = module.name if module.is_package else module.name.rpartition(".")[0]
            room = target.partition(".")[0]
            foreign = room != module.name.partition(".")[0]
            by_room = foreign and room in WHOLE and target not in (room, *OWN_DOORS)
            by_folder = "." in folder and target != folder and f"{home}.".startswith(f"{folder}.") is False
            if (by_room or by_folder) and folder != home:
                found.append(f"{module.name} -> {target}")
    return sorted(found)


def hidden_modules(read: Iterable[Module]) -> list[str]:
    """Names that a door gives from one module though another module of the package is called so."""
    read = list(read)
    names = frozenset(module.name for module in read)
    return sorted(
        f"{module.name}.{alias.name}"
        for module in read
        if module.door is not None
        for node in module.door_nodes
        if isinstance(node, ast.ImportFrom) and node.module is not None
        for alias in node.names
        if f"{module.name}.{alias.name}" in names and node.module.partition(".")[0] != alias.name
    )


def _known(name: str, names: frozenset[str]) -> str | None:
    """The module that a dotted name is, or is in."""
    while name and name not in names:
        name = name.rpartition(".")[0]
    return name or None


def largest_circle(graph: dict[str, set[str]]) -> list[str]:
    """The largest strongly connected component (Tarjan, SIAM J. Computing 1972), without recursion."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    largest: list[str] = []
    for root in graph:
        work: list[tuple[str, Iterator[str]]] = [] if root in index else [(root, iter(sorted(graph[root])))]
        while work:
            name, targets = work[-1]
            if name not in index:
                index[name] = low[name] = len(index)
                stack.append(name)
            for target in targets:
                if target not in index:
                    work.append((target, iter(sorted(graph[target]))))
                    break
                if target in stack:
                    low[name] = min(low[name], index[target])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[name])
                if low[name] == index[name]:
                    at = stack.index(name)
                    circle, stack[at:] = stack[at:], []
                    largest = max(largest, circle, key=len)
    return largest if len(largest) > 1 else []


# -- names -------------------------------------------------------------------------------------------------


def class_names(read: Iterable[Module]) -> Counter[str]:
    return Counter(node.name for module in read for node in module.nodes if isinstance(node, ast.ClassDef))


def public_twins(read: Iterable[Module]) -> list[str]:
    """Class names that two modules give to the outside."""
    public = Counter(
        node.name
        for module in read
        for node in module.tree.body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    return sorted(name for name, times in public.items() if times > 1)


def bare_participles(read: Iterable[Module]) -> list[str]:
    """Classes and modules that are called after a participle and nothing else; an error may say what happened."""
    classes = [
        f"{module.name}:{node.name}"
        for module in read
        for node in module.nodes
        if isinstance(node, ast.ClassDef) and is_participle(node.name) and not _is_error(node)
    ]
    return sorted([*classes, *(module.name for module in read if is_participle(module.name.rpartition(".")[2]))])


def _is_error(node: ast.ClassDef) -> bool:
    return any(re.search(r"(?:Error|Exception)$", ast.unparse(base)) for base in node.bases) or "Damaged" in map(
        ast.unparse, node.bases
    )


def is_participle(name: str) -> bool:
    """Whether it is one word, and that a form of a verb.

    >>> [is_participle(name) for name in ("Taken", "_Kept", "Deciding", "Embedding", "TakenAway", "Journal")]
    [True, True, True, False, False, False]
    """
    word = name.strip("_")
    if not re.fullmatch(r"[A-Z]?[a-z]+", word) or word.lower() in NOUNS:
        return False
    return word.lower() in IRREGULAR or re.search(r"(?:ed|ing)$", word) is not None


# -- walks -------------------------------------------------------------------------------------------------


def modules_on_the_way(work: Callable[[], object]) -> set[str]:
    """Modules of the project one of whose functions runs, in any thread that is started; imports do not count."""
    seen: set[str] = set()
    modules_under_way = threading.local()

    def profile(frame: Any, event: str, _: object) -> None:
        if event not in ("call", "return"):
            return
        depth = getattr(modules_under_way, "depth", 0)
        if frame.f_code.co_name == "<module>":
            modules_under_way.depth = depth + (1 if event == "call" else -1)
        elif event == "call" and not depth:
            seen.add(frame.f_globals.get("__name__", ""))

    threading.setprofile(profile)
    sys.setprofile(profile)
    try:
        work()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return {name for name in seen if name.startswith(PREFIX)}


def walks() -> Iterator[Bar]:
    from ctxsteward.envelope import Budgets, EnvelopeBuilder
    from ctxsteward.envelope.testing import memory_store

    lines = (files("ctxsteward.console") / "data" / "demo.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines[1:]]
    builder = EnvelopeBuilder("gpt-4o", budgets=Budgets())
    with memory_store() as store:
        session = store.session("s")
        appended, built = [], []
        for row in rows[:120]:
            appended.append(len(modules_on_the_way(lambda row=row: session.append(row))))  # type: ignore[misc]
            if row["role"] != "assistant":
                built.append(len(modules_on_the_way(lambda: builder.build(session))))
        yield Bar("modules on the way: append", int(statistics.median(appended)), 10)
        yield Bar("modules on the way: build with compaction and recall", max(built), 40)
    yield Bar("modules on the way: a night", len(modules_of_a_night()), 85)


def modules_of_a_night() -> set[str]:
    from ctxsteward.envelope import Profile, open_store
    from ctxsteward.steward import NightSettings, of_this_process, open_night, run_night
    from ctxsteward.steward.ingest import InProcess

    shipped = files("ctxsteward.console") / "data" / "steward"
    profile = Profile.from_yaml((shipped / "profile.yaml").read_text(encoding="utf-8"), "profile.yaml")
    with tempfile.TemporaryDirectory() as folder:
        uri = f"file:{folder}/store"
        with open_store(uri) as store:
            store.profiles(profile.name).commit(profile, who="house", why="shipped", when="2026-11-22", parent=None)
        settings = NightSettings(store=uri, profile=profile.name, sources=(str(shipped / "transcripts"),), workers=1)

        def one_night() -> None:
            with open_night(settings, of_this_process(), isolate=lambda worker, _: InProcess(worker)) as night:
                run_night(night.stages, night.shell)

        return modules_on_the_way(one_night)


# -- the table ---------------------------------------------------------------------------------------------


def size(read: list[Module]) -> Iterator[Bar]:
    functions = [
        (node.end_lineno or 0) - node.lineno + 1
        for module in read
        for node in module.nodes
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    lines = [len(module.text.splitlines()) for module in read]
    comments = sum(line.lstrip().startswith("#") for module in read for line in module.text.splitlines())
    tests = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in tracked("tests/*.py"))
    yield Bar("lines of Python outside tests", sum(lines), 66_000)
    yield Bar("lines of tests", tests, 49_000)
    yield Bar("modules", len(read), 420)
    yield Bar("classes", sum(class_names(read).values()), 650)
    yield Bar("longest file", max(lines), 500)
    yield Bar("functions, p95 lines", statistics.quantiles(functions, n=20)[-1], 24)
    yield Bar("longest function", max(functions), 64)
    yield Bar("comment lines, %", round(100 * comments / sum(lines), 1), None)


def shape(read: list[Module]) -> Iterator[Bar]:
    names = frozenset(module.name for module in read)
    graph = {module.name: imports(module, names) for module in read}
    folders = Counter(module.path.parent for module in read)
    yield Bar("modules in the fullest folder", max(folders.values()), 20)
    yield Bar("folders over 20", sum(count > 20 for count in folders.values()), 0)
    yield Bar("project imports a module, mean", round(statistics.mean(map(len, graph.values())), 1), 4.0)
    yield Bar("project imports a module, max", max(map(len, graph.values())), 20)
    led = {module.name: imports(module, names, doors=True) for module in read}
    yield Bar("largest circle, types and lazy imports too", len(largest_circle(led)), 3)
    yield Bar("public class names used twice", len(public_twins(read)), 0)
    yield Bar("bare participles as class or module names", len(bare_participles(read)), 0)


def start() -> Iterator[Bar]:
    """CPU of importing what a service's first line does, as a multiple of what that stands on.

    Names, since the package alone loads nothing: a door loads a module when one of its names is asked for.
    """
    probe = "import time; t = time.process_time(); {}; print(time.process_time() - t)"

    def seconds(what: str) -> float:
        command = [sys.executable, "-c", probe.format(what)]
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        subprocess.check_call(command, env=environment, stdout=subprocess.DEVNULL)  # compiles what is new
        return statistics.median(float(subprocess.check_output(command, env=environment)) for _ in range(5))

    yield Bar(
        "import of EnvelopeBuilder and open_store, x pydantic + tiktoken",
        round(
            seconds("import tiktoken; from ctxsteward.envelope import EnvelopeBuilder, open_store")
            / seconds("import pydantic, pydantic.main, tiktoken"),
            1,
        ),
        2.0,
    )


def main() -> int:
    if "--night" in sys.argv:
        print("\n".join(sorted(modules_of_a_night())))
        return 0
    read = modules()
    bars = [*size(read), *shape(read), *walks(), *start()]
    if "--json" in sys.argv:
        print(json.dumps([{**bar._asdict(), "met": bar.is_met} for bar in bars], indent=1))
    else:
        for bar in bars:
            at_most = "" if bar.bar is None else f"≤ {bar.bar:g}"
            print(f"{'✓' if bar.is_met else '✗'} {bar.name:<58}{bar.value!s:>10}  {at_most}")
    return int(not all(bar.is_met for bar in bars))


if __name__ == "__main__":
    sys.exit(main())
