"""What a stranger installs: the wheel with one set of extras, in an environment of its own, away from the checkout.

    python -m tests.installed dist                    # `make installed`: every extra, every combination of a page
    python -m tests.installed dist --only steward     # one environment

For each extra, for none, and for what a page's ``pip install`` names, a fresh virtual environment gets the wheel with
the versions of the locks. In an empty folder with an empty home it imports the modules that own the extra
(`tool.ctxsteward.extras`), runs the README's Python, and then, of every page, the Python blocks and the commands that
stand below that ``pip install``. The nearest one above a block says what the block needs; without one it needs nothing.
Lines that follow each other are alternatives: what is below is run with each of them, but not with one that brings all
that another brings and more. Names of blocks above are there.

Of blocks that need a service of somebody else (a provider's key, a bucket, a server) the imports are run, or all of the
block and a scripted double of the service (`DOUBLES`). An environment or a page in which nothing was run is a failure.

Each of the processes that play makes its environments one after another at the same path, and they share what Python
compiled: a module that two of them have is compiled once.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
import urllib.request
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NamedTuple

from .package import KEPT, Refused

ROOT = Path(__file__).resolve().parents[1]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
EXTRAS: dict[str, list[str]] = PROJECT["project"]["optional-dependencies"]
OWNERS: dict[str, dict[str, list[str]]] = PROJECT["tool"]["ctxsteward"]["extras"]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
LOCKS = {"inspect": "requirements-inspect.lock"} | dict.fromkeys(
    ("langchain", "pydantic-ai", "openai-agents", "agent-framework", "claude-agent-sdk"),
    "requirements-integrations.lock",
)
"""Which lock has the versions; of all others `requirements.lock`."""

FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
INSTALL = re.compile(r"pip install ((?:'[^'\n]+'|[\w.\[\],>=<-]+)(?: (?:'[^'\n]+'|[\w.\[\],>=<-]+))*)")
INDENTED = re.compile(r"^    (?:\$ )?(ctxsteward [^\n]*)$", re.MULTILINE)
IN_TABLE = re.compile(r"\| `(ctxsteward [^`]+)` \|$", re.MULTILINE)

IMPORTS_ONLY = {
    "guide-fastapi.md": "its service asks a model; tests/test_docs.py answers",
    "keep-a-store.md": "its store is a bucket; tests/test_durability_doc.py runs it on a server of S3",
    "guide-nightly-steward.md": "its line asks a store of which a night was run",
}
"""Pages of whose Python only the imports are run, and why."""
DOUBLES = {"ClaudeAgentOptions(": "scripted_claude"}
"""Code of a block that needs a program of somebody else, and the module of tests that plays that program."""
ELSEWHERE = {
    "curl": "asks the service, which `served` does",
    "python -m uvicorn": "listens; tests/test_docs.py starts it",
    "for sight": "asks that service",
    "kill": "ends that service",
    "ctxsteward serve --": "listens; `served` starts it",
    "ctxsteward mcp": "reads a client's messages",
    "prefect": "a server of Prefect",
    "export": "sets what the environment of the reader has",
    "pip": "is how the environment was made",
    "python3": "is for who works on the code",
    "CTXSTEWARD_CLAUDE_SDK": "is for who works on the code",
    "CTXSTEWARD_TELEMETRY": "sends to a collector",
    "0 3": "a line for cron",
    "30 7": "a line for cron",
    "ctxsteward steward run --transcripts s3": "reads a bucket",
    "ctxsteward steward propose profile.yaml": "needs a profile of the reader's",
    "ctxsteward view --static pages": "needs a store; `install.md` shows it again, of one that it built",
    "ctxsteward demo": "`tests.package` runs it",
    "ctxsteward evals run all": "plays for minutes; each suite is played by `make evals`",
    "ctxsteward evals run goal-continuity": "plays for minutes; each suite is played by `make evals`",
    "ctxsteward evals merge": "needs the parts of that run",
    "ctxsteward evals compare": "needs two runs",
    "ctxsteward run CASCADE": "asks a model's server",
    "ctxsteward evals run compression --model-url": "asks a model's server",
}
"""Beginnings of commands that are not run here, and why."""
STANDS_FOR = {
    "DATA…": "runs.jsonl",
    "RUN.traj": "runs.jsonl",
    "transcript.jsonl": "runs.jsonl",
    "FOLDER": "chats",
    "--linger 60": "",
    "prometheus": "prometheus=127.0.0.1:0",
    "--write docs/cost.md": "",
    "--write docs/selection.md": "",
    "/etc/ctxsteward/": "",
    "--gate  ": "  ",
    "logs/chats": "runs.jsonl",
    "report transcript": "report runs",
    " --profile profile.yaml": "",
}
"""Placeholders of indented lines, and what is there in their place."""


class Requirements(NamedTuple):
    """What one environment has: extras of the wheel, and packages beside it."""

    extras: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return "+".join((*self.extras, *self.beside)) or "no extra"

    @classmethod
    def read(cls, words: str) -> Requirements | None:
        """Of a ``pip install`` of a page; None: it is not about the wheel."""
        asked = shlex.split(words)
        own = [word for word in asked if re.fullmatch(r"(?:\S*/)?ctxsteward(\[[\w,-]+\])?", word)]
        if not own:
            return None
        names = re.findall(r"[\w-]+", own[0].partition("[")[2])
        return cls(tuple(sorted(names)), tuple(sorted(word for word in asked if word not in own)))


class Block(NamedTuple):
    """A fence or a command of a page."""

    start: int
    kind: str
    text: str
    line: int


class Part(NamedTuple):
    """What one environment plays of one page: everything above, and its own."""

    page: Path
    needs: Requirements
    blocks: tuple[Block, ...]
    own: int


def blocks_of(text: str) -> list[Block]:
    """Fences, indented commands and commands of tables, in the order of the page."""
    fences = [Block(m.start(), m[1].strip(), m[2], text[: m.start()].count("\n") + 2) for m in FENCE.finditer(text)]
    inside = [(m.start(), m.end()) for m in FENCE.finditer(text)]
    found = [block for block in fences if block.kind in ("python", "python no-run", "console", "sh")]
    for kind, pattern in (("indented", INDENTED), ("table", IN_TABLE)):
        found += [
            Block(m.start(), kind, m[1], text[: m.start()].count("\n") + 1)
            for m in pattern.finditer(text)
            if not any(start <= m.start() < end for start, end in inside)
        ]
    return sorted(found)


def parts_of(page: Path, text: str) -> Iterator[Part]:
    """A page's parts; an install line inside a fence counts for that fence."""
    blocks, marks = blocks_of(text), list[tuple[int, Requirements]]()
    for m in INSTALL.finditer(text):
        needs = Requirements.read(m[1])
        if needs is not None:
            holding = [fence.start() for fence in FENCE.finditer(text) if fence.start() <= m.start() < fence.end()]
            marks.append((holding[0] if holding else m.start(), needs))
    if not marks or (blocks and blocks[0].start < marks[0][0]):
        marks.insert(0, (-1, Requirements()))
    groups = list[tuple[int, list[Requirements]]]()
    for at, needs in marks:
        if groups and not any(groups[-1][0] <= block.start < at for block in blocks):
            groups[-1][1].append(needs)
        else:
            groups.append((at, [needs]))
    for number, (at, several) in enumerate(groups):
        end = groups[number + 1][0] if number + 1 < len(groups) else len(text)
        above = tuple(block for block in blocks if block.start < end)
        own = sum(block.start >= at for block in above)
        for needs in dict.fromkeys(several):
            if own and not any(brings_all_of(needs, other) for other in several):
                yield Part(page, needs, above, own)


def brings_all_of(needs: Requirements, other: Requirements) -> bool:
    """Whether it brings what `other` brings, and more: then what runs with `other` runs with it."""
    return needs.beside == other.beside and expanded(needs.extras) > expanded(other.extras)


def commands_of(block: Block, page: str) -> Iterator[dict[str, Any]]:
    """The commands of a block that are run here, with what the page prints below them."""
    where = f"{page}:{block.line}"
    if block.kind == "console":
        for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
            command, _, printed = part.partition("\n")
            if command.startswith("cat ") or not is_elsewhere(command):
                fails = bool(re.search(r"^ctxsteward: |FAILED", printed, re.MULTILINE))
                yield {"where": where, "command": command, "printed": printed, "fails": fails}
        return
    lines = block.text.splitlines() if block.kind in ("sh", "indented", "table") else []
    for line in lines:
        command = re.split(r"  +(?=[#a-z])|  +$", line)[0]
        for word, other in STANDS_FOR.items():
            command = command.replace(word, other)
        if command.strip() and not is_elsewhere(command):
            yield {"where": where, "command": command.strip(), "printed": "", "fails": False}


def is_elsewhere(command: str) -> bool:
    return command.startswith(tuple(ELSEWHERE))


# -- playing ------------------------------------------------------------------------------------------------------


class Environment:
    """A virtual environment with the wheel, in a folder that is gone afterwards."""

    def __init__(self, folder: Path, wheel: Path, needs: Requirements, bytecode: Path) -> None:
        self.folder, self.needs, self.bytecode = folder, needs, bytecode
        self.bin = folder / "venv" / "bin"
        self.home = folder / "home"
        self.home.mkdir(parents=True)
        uv = Path(sys.executable).with_name("uv")
        locks = {LOCKS.get(extra, "requirements.lock") for extra in needs.extras} or {"requirements.lock"}
        if needs.beside:
            locks = {"requirements-integrations.lock"}
        constraints = [part for lock in sorted(locks) for part in ("--constraints", ROOT / lock)]
        extras = f"[{','.join(needs.extras)}]" if needs.extras else ""
        kept = {name: value for name, value in os.environ.items() if name.startswith((*KEPT, "HOME", "XDG_"))}
        commands: list[list[str | Path]] = [
            [uv, "venv", "--quiet", "--python", sys.executable, folder / "venv"],
            [
                uv,
                "pip",
                "install",
                "--quiet",
                "--python",
                self.bin / "python",
                *constraints,
                f"{wheel}{extras}",
                *needs.beside,
            ],
        ]
        for command in commands:
            done = subprocess.run(command, env=kept, capture_output=True, text=True, timeout=900, check=False)
            if done.returncode:
                raise Refused(f"{needs.name}: {done.stderr.strip()[-800:]}")

    @property
    def variables(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if name in ("LANG", "LC_ALL", "TMPDIR")}
        return kept | {
            "PATH": f"{self.bin}{os.pathsep}/usr/local/bin{os.pathsep}/usr/bin{os.pathsep}/bin",
            "HOME": str(self.home),
            "NO_COLOR": "1",
            "COLUMNS": "100",
            "PYTHONIOENCODING": "utf-8",
            "PYTHONPYCACHEPREFIX": str(self.bytecode),
            "CTXSTEWARD_MASTER_KEY": "5a" * 32,
            "OPENAI_API_KEY": "none",
            "ANTHROPIC_API_KEY": "none",
        }

    def data(self) -> Path:
        """The shipped demo's files."""
        (found,) = (self.folder / "venv").glob("lib/python*/site-packages/ctxsteward/console/data")
        return found

    def play(self, part: Part, modules: Sequence[str]) -> tuple[int, list[str]]:
        """How much of a page was played, and what went wrong."""
        work = Path(tempfile.mkdtemp(dir=self.folder, prefix=f"{part.page.stem}-"))
        (work / "page" / "console" / "ctxsteward" / "console").mkdir(parents=True)
        (work / "page" / "console" / "ctxsteward" / "console" / "data").symlink_to(self.data())
        for name in ("reader.py", "shell.py", "scripted_providers.py", *(f"{name}.py" for name in DOUBLES.values())):
            shutil.copy(ROOT / "tests" / name, work)
        self._files(part, work / "page")
        python = [
            {
                "where": f"{part.page.name}:{block.line}",
                "code": block.text,
                "run": block.kind == "python" and part.page.name not in IMPORTS_ONLY,
                "own": number >= len(part.blocks) - part.own,
                "double": next((double for code, double in DOUBLES.items() if code in block.text), None),
            }
            for number, block in enumerate(part.blocks)
            if block.kind.startswith("python")
        ]
        own = part.blocks[len(part.blocks) - part.own :]
        # A table's rows are played in order: a later row reads the store that an earlier one filled.
        above = {"console", "table"} if any(block.kind == "table" for block in own) else {"console"}
        commands = [
            command
            for number, block in enumerate(part.blocks)
            if block.kind in above or number >= len(part.blocks) - part.own
            for command in commands_of(block, part.page.name)
        ]
        if not (modules or python or commands):  # all that the page shows is run elsewhere
            return 0, []
        asked = {
            "modules": list(modules),
            "python": python,
            "commands": commands,
            "environment": {
                "DATA": "console/ctxsteward/console/data",
                "COLUMNS": "100",
                "CTXSTEWARD_MASTER_KEY": "5a" * 32,
            },
        }
        (work / "blocks.json").write_text(json.dumps(asked), encoding="utf-8")
        done = subprocess.run(
            [self.bin / "python", work / "reader.py", work / "blocks.json"],
            cwd=work / "page",
            env=self.variables,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        try:
            told = json.loads(done.stdout.splitlines()[-1])
            played, failed = int(told["played"]), list[str](told["failed"])
        except (IndexError, KeyError, TypeError, ValueError):
            return 0, [f"{part.page.name}: {done.stdout[-300:]}{done.stderr[-700:]}"]
        if not played:
            failed.append(f"{part.page.name}: nothing was run")
        return played, failed

    def _files(self, part: Part, folder: Path) -> None:
        """What a page has its reader write first: examples, the demo's files, and blocks whose text names a file."""
        for path in (*(ROOT / "docs" / "examples").iterdir(), *self.data().iterdir()):
            if path.is_file():
                shutil.copy(path, folder)
        text = part.page.read_text(encoding="utf-8")
        for block in part.blocks:
            named = re.search(r"`([\w-]+\.(?:py|ya?ml))`:\n\n\Z", text[: block.start])
            if block.kind == "python" and named:
                (folder / named[1]).write_text(block.text, encoding="utf-8")
            for command in commands_of(block, part.page.name) if block.kind == "console" else ():
                if command["command"].startswith("cat "):
                    (folder / command["command"][4:]).write_text(command["printed"], encoding="utf-8")
        (folder / "locomo.json").write_text(json.dumps(LOCOMO), encoding="utf-8")
        lines = (folder / "demo.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
        (folder / "runs.jsonl").write_text("".join(lines[:40]), encoding="utf-8")
        (folder / "chats").mkdir()
        for number in (1, 3):
            for name, document in CHAT.items():
                (folder / "chats" / f"10K-{number}-{name}.json").write_text(json.dumps(document), encoding="utf-8")

    def served(self) -> tuple[int, list[str]]:
        """Start `serve --demo` and `serve`, ask both, stop them."""
        failed = []
        for arguments in (["--demo"], ["--store", "file:./.ctxsteward"]):
            command: list[str | Path] = [self.bin / "ctxsteward", "serve", *arguments, "--port", "0", "--json"]
            work = Path(tempfile.mkdtemp(dir=self.folder))
            with (
                (work / "errors").open("w") as errors,
                subprocess.Popen(
                    command, cwd=work, env=self.variables, stdout=subprocess.PIPE, stderr=errors, text=True
                ) as service,
            ):
                try:
                    assert service.stdout is not None
                    told = json.loads(service.stdout.readline())
                    for path in ("healthz", "", "api/sessions"):
                        with urllib.request.urlopen(told["url"] + path, timeout=30) as answer:
                            if answer.status != 200:
                                failed.append(f"serve {arguments[0]}: /{path}: HTTP {answer.status}")
                except (OSError, ValueError) as error:
                    failed.append(f"serve {arguments[0]}: {error}: {(work / 'errors').read_text()[-600:]}")
                finally:
                    service.send_signal(signal.SIGTERM)
                    try:
                        service.wait(30)
                    except subprocess.TimeoutExpired:
                        service.kill()
        return 2, failed


TALK = [
    {"speaker": "Ada", "dia_id": "D1:1", "text": "The key is under the third pot."},
    {"speaker": "Otto", "dia_id": "D1:2", "text": "I shall look there."},
]
LOCOMO = [
    {
        "sample_id": 1,
        "conversation": {
            "speaker_a": "Ada",
            "speaker_b": "Otto",
            "session_1_date_time": "1:56 pm on 8 May, 2023",
            "session_1": TALK,
        },
        "qa": [{"question": "Where is the key?", "category": 4, "evidence": ["D1:1"]}],
    }
]
TURN = [
    {"role": "user", "id": 0, "content": "The spare key hangs in the shed. ->-> 1,0"},
    {"role": "assistant", "id": 1, "content": "Noted: in the shed."},
]
CHAT = {
    "chat": [{"batch_number": 1, "turns": [TURN]}],
    "probing_questions": {"information_extraction": [{"question": "Where is the key?", "source_chat_ids": [0]}]},
}


def expanded(extras: Sequence[str]) -> set[str]:
    """Extras with those that they bring."""
    found = set(extras)
    for extra in extras:
        for asked in EXTRAS[extra]:
            if asked.startswith("ctxsteward["):
                found |= expanded(re.findall(r"[\w-]+", asked.partition("[")[2]))
    return found


def environments() -> dict[Requirements, list[Part]]:
    """Every environment, with what it plays."""
    found: dict[Requirements, list[Part]] = {Requirements(): []}
    found |= {Requirements((extra,)): [] for extra in EXTRAS}
    for page in PAGES:
        parts = {
            part.needs: part for part in parts_of(page, page.read_text(encoding="utf-8"))
        }  # the last has all above
        for needs, part in parts.items():
            found.setdefault(needs, []).append(part)
    (readme,) = (part for part in found[Requirements()] if part.page == PAGES[0])
    for needs, shown in found.items():
        if not shown:  # no page shows anything for it: what needs no extra runs with it, too
            shown.append(readme._replace(needs=needs, own=0))
    return found


def play(wheel: Path, needs: Requirements, parts: Sequence[Part], place: Path) -> tuple[int, list[str], float]:
    """Make one environment and play its parts; what Python compiles stays in `place` for the next environment."""
    began = time.monotonic()
    folder = place / "environment"
    try:
        environment = Environment(folder, wheel, needs, place / "bytecode")
        brought = expanded(needs.extras)
        owners = (owner for extra in sorted(brought) for owner in OWNERS.get(extra, {}).get("owners", ()))
        modules = [f"ctxsteward.{owner}" for owner in owners]
        played, failed = environment.served() if "console" in brought else (0, [])
        for number, part in enumerate(parts):
            count, wrong = environment.play(part, () if number else modules)
            played, failed = played + count, failed + wrong
    except Refused as error:
        return 0, [str(error)], time.monotonic() - began
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if not played:
        failed.append(f"{needs.name}: nothing was run")
    return played, failed, time.monotonic() - began


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.installed")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", help="extras of one environment, with commas; `none`: of no extra")
    asked = parser.parse_args(argv)
    (wheel,) = asked.folder.glob("*.whl")
    wanted = environments()
    if asked.only is not None:
        extras = () if asked.only == "none" else tuple(sorted(asked.only.split(",")))
        wanted = {needs: parts for needs, parts in wanted.items() if needs.extras == extras}
    if not wanted:
        parser.error(f"--only {asked.only}: no page and no extra asks for it")
    # The longest first, so that no process plays alone at the end.
    queue = sorted(wanted.items(), key=lambda one: -sum(len(part.blocks) for part in one[1]))
    bad, began, processes = 0, time.monotonic(), os.cpu_count() or 1
    places = SimpleQueue[Path]()

    def played_somewhere(one: tuple[Requirements, list[Part]]) -> tuple[int, list[str], float]:
        place = places.get()
        try:
            return play(wheel.resolve(), *one, place)
        finally:
            places.put(place)

    with (
        tempfile.TemporaryDirectory(prefix="ctxsteward-installed-") as folder,
        ThreadPoolExecutor(processes) as pool,
    ):
        for number in range(processes):
            places.put(Path(folder, str(number)))
        for (needs, _), (played, failed, seconds) in zip(queue, pool.map(played_somewhere, queue), strict=True):
            print(f"{needs.name}: {played} blocks and commands, {len(failed)} failed, {seconds:.0f} s", flush=True)
            for line in failed:
                print(f"  {line}", flush=True)
            bad += len(failed)
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    took = f"{time.monotonic() - began:.0f} s, {spent.ru_utime + spent.ru_stime:.0f} s of CPU"
    print(f"{len(wanted)} environments: {'all that the pages show works' if not bad else f'{bad} failures'}; {took}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
