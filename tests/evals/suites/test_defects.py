"""Ten defects, each seeded into a copy of the product's source: the suite that is there for it turns red.

A copy of the room is put before the installed one; the same scenarios, with the same gates, pass without the defect.
An everyday run tries two of them, `CTXSTEWARD_SOAK=1` all.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
ROOMS = ("schemas", "envelope", "summarizers", "steward", "evals", "flows", "console")


@dataclass(frozen=True, kw_only=True)
class Defect:
    """What is broken, and what notices."""

    file: str
    """Below a room, without ``ctxsteward/ROOM/``."""
    was: str
    now: str
    suite: str
    scenarios: tuple[int, ...]
    metrics: tuple[str, ...]
    """Figures of which at least one falls below its gate."""
    everyday: bool = False
    """Tried in every run of the tests; the others with ``CTXSTEWARD_SOAK=1``."""


DEFECTS = {
    "the last raw turn is dropped": Defect(
        file="envelope/compaction/policy.py", was="must = {state.last_user, state.last_text, state.ordinal}",
        now="must = {state.last_user, state.ordinal}",
        suite="verbatim", scenarios=(1,), metrics=("last_assistant",), everyday=True,
    ),
    "a citation is forgotten": Defect(
        file="envelope/layout/composition.py",
        was="""return f"- {form.bullet(bullet.text)} {' '.join(bullet.citations)}\\n\"""",
        now='return f"- {form.bullet(bullet.text)}\\n"',
        suite="citations", scenarios=(1,), metrics=("bullets_cited",),
    ),
    "the seal is skipped": Defect(
        file="envelope/building/assembly.py", was="    if sealed:\n", now="    if False:\n",
        suite="cache", scenarios=(1,), metrics=("sealed",), everyday=True,
    ),
    "the budget is ignored": Defect(
        file="envelope/compaction/policy.py", was="    history = window.history_tokens - window.pinned_tokens\n",
        now="    return False\n    history = window.history_tokens - window.pinned_tokens\n",
        suite="compression", scenarios=(1,), metrics=("within_budget",),
    ),
    "results are masked and not stored": Defect(
        file="envelope/history/log_view.py", was="        ordinal = state.ordinal + 1\n",
        now=(
            "        if message.role == 'tool':\n"
            "            from ctxsteward.schemas.message import take_wire\n"
            "            wire, message = take_wire({**message.wire, 'content': '[masked]'})\n"
            "        ordinal = state.ordinal + 1\n"
        ),
        suite="agents", scenarios=(1,), metrics=("results_resolvable",),
    ),
    "a stale value is kept": Defect(
        file="summarizers/extraction.py", was="outcome = replaced(everything)",
        now="outcome = replaced([])",
        suite="compression", scenarios=(2, 3), metrics=("updates_followed",),
    ),
    "a clock stands in the prefix": Defect(
        file="envelope/render/openai_chat.py", was='"content": fragment.text} for fragment',
        now='"content": f"{fragment.text} {__import__(\'time\').time_ns()}"} for fragment',
        suite="compression", scenarios=(1,), metrics=("prefix_stable",),
    ),
    "the wrong tenant is read": Defect(
        file="steward/ingest/sessions.py", was="self.store, self.tenant, self.profile = store, tenant, profile",
        now='self.store, self.tenant, self.profile = store, "globex", profile',
        suite="governance", scenarios=(2,), metrics=("leaks_across_tenants",),
    ),
    "meta is filled from a candidate": Defect(
        file="steward/admission.py",
        was='("independent_principals",))\n    return AdmissionVerdict("candidate", ("needs_principals",))',
        now='("independent_principals",))\n    return AdmissionVerdict("active", ("needs_principals",))',
        suite="governance", scenarios=(2,), metrics=("poison_active", "candidates_in_meta"),
    ),
    "the audit is off": Defect(
        file="envelope/audit/auditor.py", was="    findings = _differences(expected,",
        now="    return ()\n    findings = _differences(expected,",
        suite="cache", scenarios=(1,), metrics=("audit_misses",),
    ),
}  # fmt: skip


SOAK = os.environ.get("CTXSTEWARD_SOAK") == "1"
TRIED = {name: defect for name, defect in DEFECTS.items() if SOAK or defect.everyday}
SUITES = sorted({defect.suite for defect in TRIED.values()})


def seeded(defect: Defect, folder: Path) -> Path:
    """A room with the defect in it, to be put before the others."""
    room, _, inside = defect.file.partition("/")
    copy = folder / room / "ctxsteward" / room
    shutil.copytree(ROOT / room / "ctxsteward" / room, copy)
    file = copy / inside
    file.write_text(file.read_text(encoding="utf-8").replace(defect.was, defect.now), encoding="utf-8")
    return folder / room


def run(suite: str, scenarios: tuple[int, ...], first: tuple[Path, ...] = ()) -> dict[str, bool]:
    """Play scenarios with the product as it is, or with a room put before it; which gates did not fail."""
    path = os.pathsep.join(str(folder) for folder in (*first, *(ROOT / room for room in ROOMS)))
    only = [arg for number in scenarios for arg in ("--only", f"{suite}/docs-{number}")]
    program = "from ctxsteward.console.cli import main; main()"
    asked = [sys.executable, "-c", program, "evals", "run", suite, "--gate", "--workers", "1", "--json", *only]
    done = subprocess.run(asked, env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True, timeout=300)
    assert done.returncode in (0, 1), done.stderr[-3000:]
    assert done.stdout, done.stderr[-3000:]
    result = json.loads(done.stdout)
    assert (done.returncode, result["errors"]) == (0 if result["passed"] else 1, {})
    return {gate["metric"]: gate["verdict"] != "failed" for gate in result["gates"]}


@pytest.fixture(scope="module")
def sound() -> dict[str, dict[str, bool]]:
    """What the same scenarios come to without any defect."""
    wanted = {suite: sorted({n for d in TRIED.values() if d.suite == suite for n in d.scenarios}) for suite in SUITES}
    return {suite: run(suite, tuple(numbers)) for suite, numbers in wanted.items()}


@pytest.mark.parametrize("defect", TRIED.values(), ids=TRIED.keys())
def test_a_seeded_defect_turns_its_suite_red(defect: Defect, sound: dict[str, dict[str, bool]], tmp_path: Path) -> None:
    assert all(sound[defect.suite][metric] for metric in defect.metrics), sound[defect.suite]
    held = run(defect.suite, defect.scenarios, (seeded(defect, tmp_path),))
    assert not all(held[metric] for metric in defect.metrics), held


def test_there_are_ten_each_with_one_place() -> None:
    def places(defect: Defect) -> int:
        room, _, inside = defect.file.partition("/")
        return (ROOT / room / "ctxsteward" / room / inside).read_text(encoding="utf-8").count(defect.was)

    assert {name: places(defect) for name, defect in DEFECTS.items()} == dict.fromkeys(DEFECTS, 1)
    assert len(DEFECTS) == 10
