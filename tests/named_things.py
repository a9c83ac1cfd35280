"""Finds what documents name and says which of it exists: names of Python, files, tests, make targets, command lines.

A document is a Markdown page, a docstring, or the comments of `pyproject.toml` and the Makefile. A name is a code span
(between backticks); make targets and command lines are also read from code blocks. Words in capitals within a path
stand for a reader's own folder.
"""

from __future__ import annotations

import ast
import re
import shlex
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from functools import cache, cached_property
from pathlib import Path
from typing import NamedTuple

import click

from ctxsteward.console.cli import cli

from .house import modules

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("schemas", "envelope", "summarizers", "steward", "evals", "flows", "console")
HISTORY = frozenset(("CHANGELOG.md",))
"""Tells of names that are gone, on purpose."""

SPAN = re.compile(r"(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL)
FENCE = re.compile(r"^ *```[^\n]*\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
INDENTED = re.compile(r"^ {4}(\S.*)$", re.MULTILINE)
TEST = re.compile(r"(?P<file>[\w/.]+\.py)::(?P<name>\w+)")
TEST_NAME = re.compile(r"(?P<name>test_\w+)(?P<cut>…?)")
PATH = re.compile(r"\.?[\w.*-]+(?:/[\w.*-]+)*/?")
DOTTED = re.compile(r"(?P<name>[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+)(?:\(.*\))?", re.DOTALL)
IDENTIFIER = re.compile(r"(?P<name>[A-Z][a-z0-9]+(?:[A-Z][a-z0-9]+)+|[A-Za-z]\w*_\w+|\w+(?=\())(?:\(.*\))?", re.DOTALL)
MAKE = re.compile(r"\bmake ([a-z][a-z-]*)\b")
COMMAND = re.compile(r"(?:^|[\s/])ctxsteward ((?:[a-z-]+)(?: [^|&;<>#\n]*)?)")
MODULE = re.compile(r"python -m ((?:ctxsteward|tests)[\w.]*)")


DATA_FILES = (
    ".yaml",
    ".yml",
    ".toml",
    ".json",
    ".js",
    ".ts",
    ".html",
    "Makefile",
    "Dockerfile",
    ".gitignore",
    ".ci/run",
)


class Named(NamedTuple):
    """Something that a document names."""

    where: str
    kind: str
    name: str


class Text(NamedTuple):
    """A document's text and its place; `is_page` where its code blocks are commands for readers."""

    where: str
    text: str
    is_page: bool


@cache
def tracked() -> tuple[str, ...]:
    """All files of the repository, by path."""
    done = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    return tuple(line for line in done.stdout.splitlines() if (ROOT / line).is_file())


def documents() -> Iterator[Text]:
    """Every text that is read for names."""
    for path in tracked():
        if path.endswith(".md") and path not in HISTORY and "/templates/" not in path:
            yield Text(path, (ROOT / path).read_text(encoding="utf-8"), True)
        elif path.endswith(".py") and not path.startswith("clients/"):
            for line, said in facts(path).docstrings:
                yield Text(f"{path}:{line}", said, False)
        elif path in ("Makefile", "pyproject.toml"):
            lines = (ROOT / path).read_text(encoding="utf-8").splitlines()
            yield Text(path, "\n".join(line.partition("#")[2] for line in lines if "#" in line), False)


@cache
def parsed(path: str) -> ast.Module:
    read = {module.path: module.tree for module in modules()} if path.startswith(ROOMS) else {}
    return read.get(ROOT / path) or ast.parse((ROOT / path).read_text(encoding="utf-8"))


class Facts(NamedTuple):
    """What one Python file says, defines and uses, from one walk over its tree."""

    docstrings: list[tuple[int, str]]
    names: set[str]
    """Defined anywhere in it, or imported."""
    words: set[str]
    """Every identifier."""
    strings: set[str]
    """Strings that are no docstrings."""
    classes: dict[str, set[str]]
    """Methods, fields and attributes of each class."""
    bases: dict[str, set[str]]


@cache
def facts(path: str) -> Facts:
    found = Facts([], set(), set(), set(), {}, {})
    _walk(parsed(path), found, None)
    found.words.update(found.names)
    return found


def _walk(node: ast.AST, found: Facts, owner: str | None) -> None:
    match node:
        case ast.ClassDef():
            found.classes.setdefault(node.name, set())
            found.bases.setdefault(node.name, set()).update(
                ast.unparse(base).split("[")[0].split(".")[-1] for base in node.bases
            )
            _define(node.name, found, owner)
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            _define(node.name, found, owner)
        case ast.Name():
            if isinstance(node.ctx, ast.Store):
                _define(node.id, found, owner)
            else:
                found.words.add(node.id)
        case ast.Attribute():
            found.words.add(node.attr)
            if owner is not None and isinstance(node.ctx, ast.Store):
                found.classes[owner].add(node.attr)
        case ast.alias():
            found.names.update((node.asname or node.name, *node.name.split(".")))
        case ast.ImportFrom():
            found.words.update((node.module or "").split("."))
        case ast.arg() | ast.keyword():
            found.words.add(node.arg or "")
        case ast.Constant(value=str() as text):
            found.strings.add(text)
        case _:
            pass
    if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        said = ast.get_docstring(node)
        if said:
            found.docstrings.append((getattr(node, "lineno", 1), said))
    inside = node.name if isinstance(node, ast.ClassDef) else owner
    for child in ast.iter_child_nodes(node):
        if not (isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant)):  # a docstring
            _walk(child, found, inside)


def _define(name: str, found: Facts, owner: str | None) -> None:
    found.names.add(name)
    if owner is not None:
        found.classes[owner].add(name)


def named_in(document: Text) -> Iterator[Named]:
    """What a document names, in the kinds that `Tree.has` judges."""
    blocks = [found[1] for found in FENCE.finditer(document.text)] if document.is_page else []
    prose = FENCE.sub("", document.text) if document.is_page else document.text
    commands = [*blocks, *INDENTED.findall(prose)] if document.is_page else []
    spans = [
        " ".join(found[2].split())
        for found in SPAN.finditer(re.sub(r"^ {4}\S.*$", "", prose, flags=re.MULTILINE) if document.is_page else prose)
    ]
    for text in (*commands, *spans):
        for line in text.splitlines():
            yield from (Named(document.where, "make", target) for target in MAKE.findall(line))
            yield from (Named(document.where, "module", module.rstrip(".")) for module in MODULE.findall(line))
            yield from (Named(document.where, "command", said.strip()) for said in COMMAND.findall(line))
    for span in spans:
        for kind, pattern in (
            ("test", TEST),
            ("test name", TEST_NAME),
            ("dotted", DOTTED),
            ("path", PATH),
            ("identifier", IDENTIFIER),
        ):
            found = pattern.fullmatch(span)
            if found is None or (kind == "path" and "/" not in span):
                continue
            yield Named(document.where, kind, found["name"] if kind in ("dotted", "identifier") else span)
            break


class Tree:
    """What there is: files, modules, classes, and the words of the code."""

    @cached_property
    def paths(self) -> frozenset[str]:
        """Files and folders, by every ending of their path, Python files with and without `.py`."""
        endings = set()
        for path in tracked():
            parts = path.split("/")
            whole = [parts[:cut] for cut in range(1, len(parts) + 1)]
            for piece in whole:
                for start in range(len(piece)):
                    end = "/".join(piece[start:])
                    endings |= {end, end.removesuffix(".py")}
        return frozenset(endings)

    @cached_property
    def modules(self) -> dict[str, str]:
        """The file of each module, by dotted name."""
        found = {}
        for path in tracked():
            if path.endswith(".py"):
                parts = path.rsplit(".", 1)[0].split("/")
                parts = parts[1:] if parts[0] in ROOMS else parts
                parts = parts[:-1] if parts[-1] == "__init__" else parts
                found[".".join(parts)] = path
        return found

    @cached_property
    def by_ending(self) -> dict[str, list[str]]:
        """Modules and packages by every dotted ending of their name."""
        found = defaultdict(list)
        packages = {".".join(name.split(".")[:cut]) for name in self.modules for cut in range(1, name.count(".") + 1)}
        for name in {*self.modules, *packages}:
            parts = name.split(".")
            for start in range(len(parts)):
                found[".".join(parts[start:])].append(name)
        return found

    def names_of(self, module: str) -> frozenset[str]:
        """Top-level names of a module, or the names that a package promises."""
        path = self.modules.get(module)
        names = {name.rsplit(".", 1)[1] for name in self.by_ending_of(module)}
        if path is None:
            return frozenset(names)
        return frozenset(names | facts(path).names)

    def by_ending_of(self, module: str) -> list[str]:
        return [
            name for name in self.modules if name.startswith(f"{module}.") and name.count(".") == module.count(".") + 1
        ]

    @cached_property
    def members(self) -> dict[str, set[str]]:
        """Methods, fields and attributes of each class, with those of its bases in the tree."""
        own: dict[str, set[str]] = defaultdict(set)
        bases: dict[str, set[str]] = defaultdict(set)
        for path in self.modules.values():
            for name, members in facts(path).classes.items():
                own[name] |= members
                bases[name] |= facts(path).bases[name]

        def whole(name: str, seen: frozenset[str]) -> set[str]:
            more = (whole(base, seen | {name}) for base in bases[name] if base not in seen and base in own)
            return own[name].union(*more)

        return {name: whole(name, frozenset()) for name in list(own)}

    @cached_property
    def words(self) -> frozenset[str]:
        """Identifiers of the code, tests included, and words of strings and data files."""
        words = {word for path in tracked() if path.endswith(".py") for word in facts(path).words}
        return frozenset(words | set(re.findall(r"[A-Za-z_]\w*", self.all_strings)))

    @cached_property
    def strings(self) -> frozenset[str]:
        """Strings of the code, without those of the test of this module, which has names that are gone."""
        python = [path for path in tracked() if path.endswith(".py") and path != "tests/test_named_things.py"]
        return frozenset(text for path in python for text in facts(path).strings)

    @cached_property
    def all_strings(self) -> str:
        """Strings of the code and all data files, to look a file's or metric's name up in."""
        data = [
            (ROOT / path).read_text(encoding="utf-8")
            for path in tracked()
            if path.endswith(DATA_FILES) and path != "tests/names_of_others.yaml"
        ]
        return "\n".join([*self.strings, *data])

    @cached_property
    def tests(self) -> dict[str, set[str]]:
        """Names of tests by file."""
        return {
            path: set(re.findall(r"^ *(?:async )?def (test_\w+)", (ROOT / path).read_text(encoding="utf-8"), re.M))
            for path in tracked()
            if path.startswith("tests/") and path.endswith(".py")
        }

    @cached_property
    def names_of_tests(self) -> frozenset[str]:
        """Names of tests and of their files."""
        return frozenset().union(*self.tests.values(), (Path(path).stem for path in self.tests))

    @cached_property
    def dotted_strings(self) -> frozenset[str]:
        """Dotted names in strings and data files, and their beginnings: `context.build` of `context.build.duration`."""
        found = set()
        for name in set(re.findall(r"\w+(?:\.\w+)+", self.all_strings)):
            parts = name.split(".")
            found |= {".".join(parts[:cut]) for cut in range(2, len(parts) + 1)}
        return frozenset(found)

    # -- judgements --------------------------------------------------------------------------------

    def has(self, named: Named) -> bool:
        """Whether there is such a thing."""
        name = named.name
        match named.kind:
            case "make":
                return name in targets()
            case "module":
                return name in self.modules or f"{name}.__main__" in self.modules
            case "command":
                return is_command(name)
            case "test":
                file, _, test = name.partition("::")
                return any(test in self.tests.get(path, ()) for path in (file, f"tests/{file}"))
            case "test name":
                known = self.names_of_tests
                return name in known or (name.endswith("…") and any(test.startswith(name[:-1]) for test in known))
            case "path":
                return self.has_path(name)
            case "dotted":
                return self.has_dotted(name)
            case _:
                return name in self.words
        raise AssertionError(named.kind)

    def has_path(self, name: str) -> bool:
        inner = re.sub(r"^(?:[A-Z][A-Z_]*/)+|^[A-Z][A-Z_]*$", "", name.strip("/"))  # PATH/journal.sqlite
        inner = re.sub(r"\b[A-Z][A-Z_]*\b", "*", inner)  # data/NAME.yaml: any name
        if not inner or inner in self.paths:
            return True
        if "*" in inner:
            return any(Path(path).match(inner) for path in tracked())
        return inner in self.strings or f"{inner}/" in self.strings or f"/{inner}" in self.all_strings

    def has_dotted(self, name: str) -> bool:
        first, *rest = name.split(".")
        if name in self.paths or name in self.strings:  # a file, a metric
            return True
        for cut in range(len(rest), -1, -1):
            module, names = ".".join((first, *rest[:cut])), rest[cut:]
            homes = [whole for whole in self.by_ending.get(module, ()) if first != "ctxsteward" or whole == module]
            if homes:  # what follows the longest name of a module is a name in it
                if not names or (any(names[0] in self.names_of(whole) for whole in homes) and self.has_members(names)):
                    return True
                break
        if first == "ctxsteward" or (first in ROOMS and len(rest) > 1):
            return False
        if first in self.members:
            return self.has_members([first, *rest])
        if name in self.dotted_strings:
            return True
        known = self.known_members
        return not first[0].isupper() and all(part in known for part in rest)

    @cached_property
    def known_members(self) -> frozenset[str]:
        return frozenset().union(*self.members.values())

    def has_members(self, names: list[str]) -> bool:
        """Whether a class has the member that follows it; what follows a function or a value is not known."""
        owner, *rest = names
        return not rest or owner not in self.members or rest[0] in self.members[owner]


@cache
def targets() -> frozenset[str]:
    """Targets of the Makefile."""
    return frozenset(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))


def is_command(line: str) -> bool:
    """Whether a command line without its `ctxsteward` has a command and options that exist."""
    try:
        rest = shlex.split(line)
    except ValueError:  # a quotation that goes on in the next line
        rest = line.split()
    command: click.Command = cli
    while isinstance(command, click.Group) and rest and re.fullmatch(r"[a-z][a-z-]*", rest[0]):
        inner = command.get_command(click.Context(command), rest[0])
        if inner is None:
            return False
        command, rest = inner, rest[1:]
    known = {name for option in command.params for name in (*option.opts, *option.secondary_opts)} | {"--help"}
    return all(word.partition("=")[0] in known for word in rest if re.match(r"--[a-z]", word))
