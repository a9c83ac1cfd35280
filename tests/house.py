"""The size and shape of the code beside the bars it aims at, as a table.

    python -m tests.house            # what `make house` prints; exit code 1 if a figure grew
    python -m tests.house --json
    python -m tests.house --lower    # the same, and writes figures that fell into house.yaml

Figures come from the syntax trees of every tracked Python file outside `tests`. `house.yaml` has a bar for most, which
is an aim and never a reason to pack code, and the value at which each figure is held: `test_house.py` fails if one
grows. Raise a held value by hand only where the growth is worth it, and say why in the commit.
"""

from __future__ import annotations

import ast
import json
import os
import re
import statistics
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from ruamel.yaml import YAML

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
IRREGULAR = frozenset(_IRREGULAR.split())
NOUNS = frozenset(_NOUNS.split())
"""Words in -ed and -ing that name a thing."""


SETTINGS = Path(__file__).with_name("house.yaml")
IMPORT_RATIO = "import of EnvelopeBuilder, x pydantic + tiktoken"


class Module(NamedTuple):
    name: str
    """Without the prefix."""
    path: Path
    text: str
    tree: ast.Module
    is_package: bool
    nodes: tuple[ast.AST, ...]
    """All of the tree, which a dozen bars look through."""


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
        tree = ast.parse(text)
        read.append(Module(name, path, text, tree, is_package, walked(tree)))
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


def imports(module: Module, names: frozenset[str]) -> set[str]:
    """Modules of the project that it names in any import, at the top or not, for types or not."""
    found = set()
    for node in module.nodes:
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

    That is the package where its `__init__` gives the name, though a module may have the same one.
    """
    if (base, name) in _sources_of_packages():
        return base
    return _known(f"{base}.{name}".strip("."), names)


def hidden_modules(read: Iterable[Module]) -> list[str]:
    """Names that a package gives from one module though another module of the package is called so."""
    read = list(read)
    names = frozenset(module.name for module in read)
    return sorted(
        f"{module.name}.{alias.name}"
        for module in read
        if module.is_package
        for node in module.nodes
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


# -- the table ---------------------------------------------------------------------------------------------


def used_once(read: Iterable[Module]) -> list[str]:
    """Private functions at the top of a module that the project names once beside their definition."""
    read = list(read)
    imported = Counter(
        alias.name
        for module in read
        for node in module.nodes
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.name.startswith("_")
    )
    found = []
    for module in read:
        uses = Counter(node.id for node in module.nodes if isinstance(node, ast.Name) and node.id.startswith("_"))
        found += [
            f"{module.name}.{node.name}"
            for node in module.tree.body
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            and node.name.startswith("_")
            and uses[node.name] + imported[node.name] == 1
        ]
    return sorted(found)


def public_names(module: Module) -> set[str]:
    """Names that a package gives: those its `__init__` imports from ours."""
    return {
        alias.asname or alias.name
        for node in module.nodes
        if isinstance(node, ast.ImportFrom) and _base(module, node) is not None
        for alias in node.names
        if not (alias.asname or alias.name).startswith("_")
    }


def resolved_imports(module: Module, names: frozenset[str]) -> set[str]:
    """Modules that define what this one imports: a name that a package gives counts where it is defined."""
    resolved = {
        _definer(_base(module, node) or "", alias.name, names)
        for node in module.nodes
        if isinstance(node, ast.ImportFrom) and _base(module, node) is not None
        for alias in node.names
    }
    resolved |= {
        _known(alias.name.removeprefix(PREFIX), names)
        for node in module.nodes
        if isinstance(node, ast.Import)
        for alias in node.names
        if alias.name.startswith(PREFIX)
    }
    return {name for name in resolved if name is not None and name != module.name}


def _definer(base: str, name: str, names: frozenset[str]) -> str | None:
    for _ in range(5):  # packages that pass on what another package gives
        source = _sources_of_packages().get((base, name))
        if source is None:
            break
        base, name = source
    return _known(f"{base}.{name}".strip("."), names)


@cache
def _sources_of_packages() -> dict[tuple[str, str], tuple[str, str]]:
    """By package and name: the module and the name there that the package's `__init__` imports."""
    return {
        (module.name, alias.asname or alias.name): (_base(module, node) or "", alias.name)
        for module in modules()
        if module.is_package
        for node in module.nodes
        if isinstance(node, ast.ImportFrom) and _base(module, node) is not None
        for alias in node.names
    }


def figures(read: list[Module]) -> dict[str, float]:
    """Everything that needs the sources alone, by the names of `house.yaml`."""
    lines = {module.name: len(module.text.splitlines()) for module in read}
    total = sum(lines.values())
    request_path = sum(
        count for name, count in lines.items() if re.match(r"envelope(?!\.(cascade|integrations)\b)", name)
    )
    promised = [len(public_names(module)) for module in read if module.is_package]
    names = frozenset(lines)
    needed = [len(resolved_imports(module, names)) for module in read]
    sources = [line for module in read for line in module.text.splitlines()]
    return {
        "lines outside tests": total,
        "lines of the request path": request_path,
        "lines of tests": sum(len(path.read_text(encoding="utf-8").splitlines()) for path in tracked("tests/*.py")),
        "classes": sum(class_names(read).values()),
        "public names": sum(promised),
        "public names of one package, max": max(promised),
        "private functions used once, per 1,000 lines": round(1000 * len(used_once(read)) / total, 1),
        "fmt: skip": sum("# fmt: skip" in line for line in sources),
        "imports a module, resolved, mean": round(statistics.mean(needed), 1),
        "imports a module, resolved, max": max(needed),
        "values a build passes on": len(carriers("build")),
        "values a night passes on": len(carriers("night")),
        "words of docs": sum(len(path.read_text(encoding="utf-8").split()) for path in tracked("docs/*.md")),
        "words of the README": len((ROOT / "README.md").read_text(encoding="utf-8").split()),
        "comment lines, %": round(100 * sum(line.lstrip().startswith("#") for line in sources) / total, 1),
    }


def import_ratio() -> float:
    """CPU of importing the builder's door and its builder, as a multiple of importing pydantic and tiktoken."""
    probe = "import time; t = time.process_time(); {}; print(time.process_time() - t)"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}

    def seconds(what: str) -> float:
        return float(subprocess.check_output([sys.executable, "-c", probe.format(what)], env=environment))

    # In turns, because other work on the machine slows whatever it meets.
    ours = "import tiktoken, ctxsteward.envelope as room; room.EnvelopeBuilder"
    theirs = "import pydantic, pydantic.main, tiktoken"
    spent = [(seconds(ours), seconds(theirs)) for _ in range(6)]
    return round(min(one for one, _ in spent) / min(other for _, other in spent), 1)


@cache
def settings() -> dict[str, Any]:
    """`house.yaml`: by figure its bar and the value it is held at, and the values that walks pass on."""
    loaded: dict[str, Any] = YAML(typ="safe").load(SETTINGS.read_text(encoding="utf-8"))
    return loaded


def carriers(walk: str) -> list[str]:
    """Values that one piece of work hands on, by class name, in order; kept by hand in `house.yaml`."""
    return [name for row in settings()["carriers"][walk] for name in row]


def grown(measured: dict[str, float]) -> list[str]:
    """Figures above the value that `house.yaml` holds them at."""
    held = {name: row["held"] for name, row in settings()["figures"].items() if "held" in row}
    return [
        f"{name}: {value}, held at {held[name]}" for name, value in measured.items() if value > held.get(name, value)
    ]


def lower(measured: dict[str, float]) -> None:
    """Write figures that fell into `house.yaml`; a value there never rises by this."""
    text = SETTINGS.read_text(encoding="utf-8")
    for name, row in settings()["figures"].items():
        if "held" in row and measured.get(name, row["held"]) < row["held"]:
            line = re.compile(rf"^(  \"?{re.escape(name)}\"?: .*\bheld: )[\d.]+", re.MULTILINE)
            text, times = line.subn(rf"\g<1>{measured[name]}", text)
            assert times == 1, name
    SETTINGS.write_text(text, encoding="utf-8")


def main() -> int:
    read = modules()
    measured = {**figures(read), IMPORT_RATIO: import_ratio()}
    if "--json" in sys.argv:
        print(json.dumps(measured, indent=1))
    else:
        for name, row in settings()["figures"].items():
            bar = row.get("bar")
            mark = " " if bar is None else "✓" if measured[name] <= bar else "✗"
            aim = "" if bar is None else f"≤ {bar:,}"
            print(f"{mark} {name:<58}{measured[name]:>10,}  {aim}")
    if "--lower" in sys.argv:
        lower(measured)
    print(*grown(measured), sep="\n", end="\n" if grown(measured) else "", file=sys.stderr)
    return int(bool(grown(measured)))


if __name__ == "__main__":
    sys.exit(main())
