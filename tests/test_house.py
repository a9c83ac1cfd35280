"""The house: rooms, imports, lock, wheel. What a user's own files, tools and network policy rely on."""

import ast
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from importlib import import_module
from pathlib import Path

import pytest
from inline_snapshot import external_file, snapshot

from . import house

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("schemas", "envelope", "summarizers", "steward", "evals", "flows", "console")
"""Each is a source root: ROOM/ctxsteward/ROOM is the package `ctxsteward.ROOM`."""
PACKAGES = {room: [room] for room in ROOMS} | {
    "envelope": ["envelope", "store"],
    "summarizers": ["language", "summarizers"],
}
"""The packages of each root."""


def run(*command: str | Path, cwd: Path = ROOT) -> str:
    """What the command prints; a failure shows both streams."""
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


# -- rooms -------------------------------------------------------------------------------------------------


def test_the_distribution_is_these_rooms_and_no_others() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    found = {path.parent.name for path in ROOT.glob("*/ctxsteward") if path.is_dir()}

    assert found == set(ROOMS)
    assert project["tool"]["hatch"]["build"]["targets"]["wheel"]["sources"] == list(ROOMS)


def test_the_namespace_is_native() -> None:
    """One `ctxsteward/__init__.py` would hide every room but its own; `python -m ctxsteward` needs `__main__.py`."""
    found = [path.relative_to(ROOT) for room in ROOMS for path in (ROOT / room / "ctxsteward").glob("*.py")]
    assert found == [Path("console/ctxsteward/__main__.py")]
    assert import_module("ctxsteward").__file__ is None


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_holds_its_typed_packages_and_nothing_else(room: str) -> None:
    root = ROOT / room / "ctxsteward"

    assert (
        sorted(path.name for path in root.iterdir() if path.is_dir() and path.name != "__pycache__") == PACKAGES[room]
    )
    for package in PACKAGES[room]:
        assert (root / package / "__init__.py").is_file()
        assert (root / package / "py.typed").is_file()


def test_models_are_frozen_and_take_no_field_they_do_not_know() -> None:
    """A watermark alone reads on behind fields of a later version."""
    classes = [
        (module.name, node) for module in house.modules() for node in module.nodes if isinstance(node, ast.ClassDef)
    ]
    models = [(name, node) for name, node in classes if "BaseModel" in map(ast.unparse, node.bases)]
    assert len(models) > 5
    open_ones = []
    for name, node in models:
        (config,) = [
            ast.unparse(part)
            for part in node.body
            if isinstance(part, ast.Assign | ast.AnnAssign) and ast.unparse(part).startswith("model_config")
        ]
        assert "frozen=True" in config, (name, node.name)
        open_ones += [] if "extra='forbid'" in config else [node.name]
    assert open_ones == ["Watermark"]
    heirs = [node for _, node in classes if "FrozenModel" in map(ast.unparse, node.bases)]
    assert len(heirs) > 80
    assert [node.name for node in heirs if re.search(r"\b(frozen|extra)=", ast.unparse(node))] == []


def test_rooms_are_layers() -> None:
    tool = Path(sys.executable).parent / "lint-imports"
    if not tool.exists():
        pytest.skip("import-linter is not installed")

    run(tool, "--no-cache")


def test_every_package_gives_the_names_that_it_lists(modules: list[house.Module]) -> None:
    listed = {f"ctxsteward.{module.name}": house.public_names(module) for module in modules if module.is_package}
    assert len(listed) > 30
    for package, names in listed.items():
        given = getattr(import_module(package), "__all__", [])
        if names and given:
            assert sorted(given) == sorted(names), package
            assert [name for name in names if not hasattr(import_module(package), name)] == []


def test_no_package_gives_a_name_that_hides_another_module(modules: list[house.Module]) -> None:
    assert house.hidden_modules(modules) == []


def test_names_that_packages_promise(modules: list[house.Module]) -> None:
    """A name that leaves a list is a breaking change. Update: pytest --inline-snapshot=fix."""
    promised = {
        module.name: sorted(house.public_names(module))
        for module in modules
        if module.is_package and hasattr(import_module(f"ctxsteward.{module.name}"), "__all__")
    }

    assert promised == external_file("promised_names.json")


# -- size and names ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def modules() -> list[house.Module]:
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("not a git checkout: which files belong to it is unknown")
    return house.modules()


def test_no_figure_of_the_house_grows(modules: list[house.Module]) -> None:
    """`make house` prints them beside their bars. A figure that fell: python -m tests.house --lower"""
    assert house.grown(house.figures(modules)) == []


def test_values_that_a_walk_passes_on_are_classes_of_the_product(modules: list[house.Module]) -> None:
    """One that was deleted leaves `carriers` in `house.yaml`."""
    classes = house.class_names(modules)

    assert [name for walk in ("build", "night") for name in house.carriers(walk) if name not in classes] == []


def test_at_most_three_modules_import_each_other_in_a_circle(modules: list[house.Module]) -> None:
    """Imports for types and inside functions count."""
    names = frozenset(module.name for module in modules)
    led = {module.name: house.imports(module, names) for module in modules}

    assert len(house.largest_circle(led)) <= 3


def test_a_public_class_name_means_one_thing_and_is_a_noun(modules: list[house.Module]) -> None:
    assert house.public_twins(modules) == []
    assert house.bare_participles(modules) == []


# -- importing ---------------------------------------------------------------------------------------------

HEAVY = (
    "boto3",
    "prefect",
    "numpy",
    "openai",
    "tiktoken",
    "ruamel",
    "jsonschema",
    "jinja2",
    "sqlite3",
    "click",
    "rich",
)
IMPORTED_MODULES_LIMIT = 260
"""Modules that the builder imports beside those of pydantic and tiktoken: 254. `make house` shows what that costs; a
count is the same on a busy machine."""


def test_a_user_s_own_modules_of_the_same_names_are_left_alone(tmp_path: Path) -> None:
    for name in ("schemas", "envelope", "flows", "evals", "console"):
        (tmp_path / f"{name}.py").write_text(f"OWNER = 'the user of {name}'\n", encoding="utf-8")
    program = """
import ctxsteward.envelope, ctxsteward.schemas, ctxsteward.flows
import schemas, envelope, flows
print(schemas.OWNER, envelope.OWNER, flows.OWNER, sep=", ")
print(ctxsteward.envelope.EnvelopeBuilder.__module__, ctxsteward.schemas.Message.__module__, sep=", ")
"""

    assert run(sys.executable, "-c", program, cwd=tmp_path).splitlines() == [
        "the user of schemas, the user of envelope, the user of flows",
        "ctxsteward.envelope.building.builder, ctxsteward.schemas.message",
    ]


def test_importing_the_request_path_loads_nothing_heavy(tmp_path: Path) -> None:
    program = """
import sys
import ctxsteward.envelope
print(*sorted({name.partition(".")[0] for name in sys.modules}))
"""
    loaded = set(run(sys.executable, "-c", program, cwd=tmp_path).split())

    assert loaded.intersection(HEAVY) == set()
    assert not any(name.startswith("opentelemetry") for name in loaded)


def test_importing_the_builder_imports_little_beside_pydantic_and_tiktoken() -> None:
    def loaded(what: str) -> set[str]:
        code = f"import sys; {what}; print(*sys.modules)"
        return set(subprocess.check_output([sys.executable, "-c", code], text=True).split())

    ours = loaded("import ctxsteward.envelope as room; room.EnvelopeBuilder")
    own = ours - loaded("import pydantic, pydantic.main, tiktoken")
    assert "ctxsteward.envelope.building.builder" in own
    assert len(own) <= IMPORTED_MODULES_LIMIT


# -- lock --------------------------------------------------------------------------------------------------


def locked() -> dict[str, str]:
    """Requirement lines of the lock by normalized name, continuation lines joined."""
    text = (ROOT / "requirements.lock").read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return {_normal(re.split(r"[ =<>!~\[;]", line, maxsplit=1)[0]): line for line in lines}


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_every_locked_requirement_is_one_version_with_hashes() -> None:
    unpinned = [line for line in locked().values() if not re.match(r"[\w.-]+(\[[\w,-]+\])?==[\w.!+]+ ", line)]
    unhashed = [line for line in locked().values() if not re.search(r"--hash=sha256:[0-9a-f]{64}\b", line)]

    assert unpinned == []
    assert unhashed == []


def test_the_lock_says_nothing_about_where_packages_come_from() -> None:
    """A mirror, a proxy or an offline index serves as well: hashes say what is right, hosts do not."""
    text = (ROOT / "requirements.lock").read_text(encoding="utf-8")

    assert "://" not in text
    assert not re.search(r"^-|index-url|find-links|trusted-host", text, re.MULTILINE)


def test_everything_the_project_names_is_locked() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    named = [*project["project"]["dependencies"], *project["dependency-groups"]["dev"]]
    names = {_normal(re.split(r"[ =<>!~\[;]", one, maxsplit=1)[0]) for one in named}

    assert names - set(locked()) == set()


# -- repository --------------------------------------------------------------------------------------------

HOSTS = ("pypi" + ".org", "files.python" + "hosted", "registry.npm" + "js", "crates" + ".io")
FOLDERS = re.compile(r"(?<![\w.])/(?:home|Users|root|work)/(?=\w)")
UNMERGED = ("<" * 7 + " ", ">" * 7 + " ")


def test_no_file_names_somebody_s_folder_or_a_package_registry_or_has_a_merge_s_marks() -> None:
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("not a git checkout: which files belong to it is unknown")
    listed = run("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0")
    named = []
    for path in filter(None, listed):
        data = (ROOT / path).read_bytes() if (ROOT / path).is_file() else b"\0"
        if b"\0" in data:
            continue
        for number, line in enumerate(data.decode("utf-8", "replace").splitlines(), start=1):
            if FOLDERS.search(line) or any(host in line for host in HOSTS) or line.startswith(UNMERGED):
                named.append(f"{path}:{number}: {line[:120]}")

    assert named == []


# -- wheel -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder)
    (built,) = folder.glob("*.whl")
    return built


def test_the_wheel_holds_every_file_of_every_room_and_nothing_else(wheel: Path) -> None:
    """No tests, no docs, no experiments, no demo of somebody else's."""
    shipped = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    written = {
        path.relative_to(ROOT / room).as_posix()
        for room in ROOMS
        for path in (ROOT / room / "ctxsteward").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }

    assert shipped == written
    assert not [name for name in shipped if "test_" in name or name.startswith("tests/")]


def test_the_wheel_holds_what_is_read_at_run_time(wheel: Path) -> None:
    needed = {
        *(f"ctxsteward/{package}/py.typed" for packages in PACKAGES.values() for package in packages),
        *(f"ctxsteward/schemas/json/{name}.v1.json" for name in ("message", "envelope", "compression_report")),
        "ctxsteward/console/data/demo.jsonl",
        "ctxsteward/console/data/demo-profile.yaml",
        "ctxsteward/envelope/tokens/models.toml",
        "ctxsteward/language/data/words.toml",
        "ctxsteward/language/lists.schema.json",
        "ctxsteward/summarizers/templates/history_bullets.md",
    }

    assert needed - set(zipfile.ZipFile(wheel).namelist()) == set()


def test_the_wheel_works_without_the_source_tree(wheel: Path, tmp_path: Path) -> None:
    zipfile.ZipFile(wheel).extractall(tmp_path)
    program = f"""
import sys
sys.path.insert(0, {str(tmp_path)!r})
from ctxsteward.schemas import publish
import ctxsteward.envelope, ctxsteward.summarizers
publish.validate("message", {{"role": "user", "content": "x"}})
for module in (publish, ctxsteward.envelope, ctxsteward.summarizers):
    assert module.__file__.startswith({str(tmp_path)!r}), module.__file__
print(len(publish.names()))
"""

    assert int(run(sys.executable, "-c", program, cwd=tmp_path)) >= 7


def test_the_wheel_lets_the_builder_find_a_summarizer_by_name(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    (points,) = [name for name in archive.namelist() if name.endswith("entry_points.txt")]

    assert archive.read(points).decode() == snapshot("""\
[console_scripts]
ctxsteward = ctxsteward.console.cli:main

[ctxsteward.erasure]
steward = ctxsteward.steward.erasure:StewardRecords

[ctxsteward.eval_gates]
suites = ctxsteward.evals.steward_gate:suite_gate

[ctxsteward.replacing]
extractive = ctxsteward.summarizers:Reader

[ctxsteward.rules]
extractive = ctxsteward.summarizers:UserRules

[ctxsteward.summarizers]
extractive = ctxsteward.summarizers:extractive
structured = ctxsteward.summarizers:structured

[inspect_ai]
ctxsteward = ctxsteward.evals.inspect_tasks
""")
