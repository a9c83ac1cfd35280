"""An extra is needed by the modules that say so in ``pyproject.toml``, and by no others.

The environment of the tests has nearly every package, so an import too many is not noticed there. Here the imports of
the code are read (those inside functions, too) and held to the table ``[tool.ctxsteward.extras]``; and the modules are
imported in a process in which our code cannot import the packages of any extra. `make installed` tries each extra by
itself.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ctxsteward.console.terminal.failures import EXTRAS
from ctxsteward.evals.suites.catalogue import NAMES, suite_named

from .house import PREFIX, Module, modules

ROOT = Path(__file__).resolve().parents[1]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
TABLE: dict[str, dict[str, list[str]]] = PROJECT["tool"]["ctxsteward"]["extras"]
ASKED: dict[str, list[str]] = PROJECT["project"]["optional-dependencies"]
OWNED = {f"ctxsteward.{owner}" for row in TABLE.values() for owner in row["owners"]}
NO_EXTRA = {"litellm"}
"""Rows of the table for packages that a user of an integration has already."""


@cache
def sources() -> dict[str, Module]:
    """Modules of the product by name; read by the tests alone, since each process of a run collects this file."""
    return {f"{PREFIX}{module.name}": module for module in modules() if module.path.name != "__main__.py"}


def canonical(requirement: str) -> str:
    """The distribution of a requirement, as package indexes write it."""
    found = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert found is not None, requirement
    return re.sub(r"[-_.]+", "-", found[0]).lower()


def is_of(package: str, module: str) -> bool:
    return f"{module}.".startswith(f"{package}.")


class Imported(NamedTuple):
    """One import of something that is neither ours nor Python's."""

    module: str
    """Of ours."""
    line: int
    name: str


def imports(nodes: Iterable[ast.AST], module: str) -> Iterator[Imported]:
    """All imports of other packages, at the top and inside functions; `import_module` with a constant name, too."""
    for node in nodes:
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module") and node.args:
            first = node.args[0]
            if isinstance(first, ast.Constant) and isinstance(first.value, str) and not first.value.startswith("."):
                names = [first.value]
            elif isinstance(first, ast.JoinedStr) and isinstance(first.values[0], ast.Constant):
                names = [str(first.values[0].value).rstrip(".")]
        for name in names:
            if name and name.partition(".")[0] not in {*sys.stdlib_module_names, "ctxsteward"}:
                yield Imported(module, getattr(node, "lineno", 0), name)


@cache
def always_there() -> set[str]:
    """Top-level modules of the packages that every installation has."""
    wanted = {canonical(one) for one in PROJECT["project"]["dependencies"]}
    found = {name for name, owners in packages_distributions().items() if wanted & {canonical(one) for one in owners}}
    return found - {"opentelemetry"} | {
        "opentelemetry.trace",
        "opentelemetry.metrics",
        "opentelemetry.context",
        "opentelemetry.util",
        "opentelemetry.propagate",
        *PROJECT["tool"]["ctxsteward"]["always"],
    }


def faults(found: Iterator[Imported], always: set[str]) -> list[str]:
    """Imports that no extra brings, and those outside the modules that own them."""
    told = []
    for one in found:
        rows = [row for row in TABLE.values() if any(is_of(package, one.name) for package in row["brings"])]
        if any(one.module == f"ctxsteward.{owner}" for row in rows for owner in row["owners"]):
            continue
        if rows:
            told.append(f"{one.module}:{one.line}: {one.name} is an extra's; import it in a module that owns it")
        elif not any(is_of(package, one.name) for package in always) and one.name != "opentelemetry":
            told.append(f"{one.module}:{one.line}: {one.name} is brought by nothing that is always installed")
    return told


def test_a_package_of_an_extra_is_imported_only_where_the_table_says() -> None:
    found = [one for name, module in sources().items() for one in imports(module.nodes, name)]
    always = always_there()
    assert len(found) > 300
    assert faults(iter(found), always) == []


@pytest.mark.parametrize(
    "code",
    [
        "import jsonpatch",
        "def f():\n    from boto3 import client",
        "import_module('stamina')",
        "import nobody_knows_it",
    ],
)
def test_an_import_elsewhere_is_found(code: str) -> None:
    assert len(faults(imports(ast.walk(ast.parse(code)), "ctxsteward.envelope.recall.room"), always_there())) == 1


def test_a_module_that_owns_an_extra_imports_it() -> None:
    for extra, row in TABLE.items():
        for owner in row["owners"]:
            needs = [one for other in TABLE.values() if owner in other["owners"] for one in other["brings"]]
            module = sources()[f"ctxsteward.{owner}"]
            brought = {one.name for one in imports(module.nodes, owner)}
            own = [name for name in brought if any(is_of(package, name) for package in needs)]
            through = [name for name in OWNED if name.rpartition(".")[2] in module.text]
            assert own or through or "import_module(" in module.text, (extra, owner)


def test_the_table_names_every_extra_that_brings_packages() -> None:
    composed = {
        extra for extra, asked in ASKED.items() if all(canonical(requirement) == "ctxsteward" for requirement in asked)
    }
    assert set(TABLE) - NO_EXTRA == set(ASKED) - composed


def test_what_commands_say_of_missing_packages_is_what_the_table_says() -> None:
    for package in EXTRAS:
        brought = {extra for extra, row in TABLE.items() if any(is_of(one, package.module) for one in row["brings"])}
        whole = {extra for extra, asked in ASKED.items() if brought & set(re.findall(r"[\w-]+", "".join(asked)))}
        assert package.extra in brought | whole, package
    for suite in map(suite_named, NAMES):
        if suite.extra is not None:
            assert sorted(suite.modules) == sorted(TABLE[suite.extra]["brings"])
    assert [name for name in NAMES if suite_named(name).extra] == ["governance"]


# -- in a process without them ------------------------------------------------------------------------------------

WITHOUT = """
import json, sys
from importlib import import_module

gone = json.loads(sys.argv[1])


class Gone:
    # Our code does not find the packages; what other packages import on their own account is theirs.
    def find_spec(self, name, path=None, target=None):
        if not any(f"{name}.".startswith(f"{package}.") for package in gone):
            return None
        frame = sys._getframe(1)
        while "importlib" in frame.f_code.co_filename or frame.f_globals.get("__name__") == "lazy_loader":
            frame = frame.f_back
        if frame.f_globals.get("__name__", "").startswith(("ctxsteward", "__main__")):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


sys.meta_path.insert(0, Gone())
"""
IMPORTING = """
failed = {}
for name in json.loads(sys.argv[2]):
    try:
        module = import_module(name)
        for each in getattr(module, "__all__", ()):
            getattr(module, each)
    except Exception as error:
        failed[name] = f"{type(error).__name__}: {error}"
print(json.dumps(failed))
"""


def without(gone: list[str], code: str, names: list[str]) -> dict[str, str]:
    """Run code in a process in which our modules cannot import these packages."""
    command = [sys.executable, "-c", WITHOUT + code, json.dumps(gone), json.dumps(names)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    found: dict[str, str] = json.loads(done.stdout)
    return found


EVERY = sorted({package for row in TABLE.values() for package in row["brings"]})


def test_every_other_module_is_imported_without_any_extra_and_packages_give_every_name() -> None:
    names = [name for name in sources() if name not in OWNED]
    assert len(names) > 300
    assert sum(sources()[name].is_package and "__all__" in sources()[name].text for name in names) >= 8
    assert without(EVERY, IMPORTING, names) == {}


MAKING = """
from ctxsteward.envelope import *
from ctxsteward.envelope.recall.strategies import Multilingual, selector_named
from ctxsteward.schemas import InputError
from ctxsteward.summarizers.models import GovernedModel, ModelSummarizer, OpenAIModel


class Mine:
    name = "mine"


told = {}
for name, make in {
    "wrapped": lambda: wrap(object(), open_store("memory:")), "governed": lambda: GovernedModel(Mine()),
    "summarizer": lambda: ModelSummarizer(Mine()), "openai": lambda: OpenAIModel("gpt-4o-mini"),
    "weights": Multilingual, "selector": lambda: selector_named("semantic"),
}.items():
    try:
        make()
    except (ImportError, InputError) as error:
        told[name] = str(error)
print(json.dumps(told))
"""


def test_what_needs_an_extra_says_so_when_it_is_made() -> None:
    told = without(EVERY, MAKING, [])
    extras = {name: "dense" if name in ("weights", "selector") else "openai" for name in told}
    assert sorted(told) == ["governed", "openai", "selector", "summarizer", "weights", "wrapped"]
    assert [name for name, text in told.items() if f"pip install 'ctxsteward[{extras[name]}]'" not in text] == []


LISTING = """
from click.testing import CliRunner
from ctxsteward.console.cli import cli

told = {}
for line in CliRunner().invoke(cli, ["evals", "list", "--json"]).stdout.splitlines():
    row = json.loads(line)
    told[row["suite"]] = row["unplayable"] or ""
done = CliRunner().invoke(cli, ["evals", "run", "governance", "--scenarios", "1"])
told["run"] = f"{done.exit_code}: {done.output}"
told["table"] = CliRunner().invoke(cli, ["evals", "list"]).stdout
print(json.dumps(told))
"""


def test_all_suites_are_listed_without_extras_and_the_one_that_cannot_be_played_says_why() -> None:
    # `find_spec` asks in the name of the suite's own module, so the packages are gone for it, too
    told = without(EVERY, LISTING, [])
    run, table = told.pop("run"), " ".join(told.pop("table").split())
    assert list(told) == list(NAMES)
    assert [name for name, reason in told.items() if reason] == ["governance"]
    assert told["governance"].endswith("pip install 'ctxsteward[steward]'")
    assert "It cannot be played here: it needs the extra `steward`" in table
    assert run.startswith("2: ctxsteward: eval suite governance: it needs the extra `steward`")
