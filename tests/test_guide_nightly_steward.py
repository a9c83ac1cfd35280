"""The guide to the nightly steward tells the truth: its commands run, in order, and print what it shows.

Each ``$`` line of a ```console fence is a command, run in one folder with one store; what follows is what it prints.
Times are compared as one and the same, and so are ids, which a store's keys decide: an id in a later command stands for
the one that was printed at its place. ``python -m tests.test_guide_nightly_steward`` prints it all anew into the guide.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import shutil
import tempfile
from pathlib import Path
from typing import NamedTuple

import pytest

from .shell import Shell

ROOT = Path(__file__).parents[1]
GUIDE = ROOT / "docs" / "guide-nightly-steward.md"
DECIDES = ROOT / "docs" / "steward.md"
REWRITE = "rewrite: python -m tests.test_guide_nightly_steward"
MASTER_KEY = "5a" * 32
RUN = re.compile(
    r"^```console\n.*?^```$|^```python\n(?P<python>.*?)^```$(?:\n\n```text\n(?P<prints>.*?)^```$)?",
    re.MULTILINE | re.DOTALL,
)
"""Whatever a reader would run, in order, with what a program prints."""
FENCE = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00")
TODAY = re.compile(r"(\bnight n?|^ |\bOn |words on |From | to )\d{4}-\d\d-\d\d(?= |-|,|;|\.$)", re.MULTILINE)
"""The date of a night in a sentence, in a run's id, and at the head of a row; of what people decided; of a week."""
WEEK = re.compile(r"\b\d{4}-W\d\d\b")
ID = re.compile(r"\b[0-9a-f]{12,64}\b")
REFERENCE = re.compile(r"(?<= \[)[0-9a-f]{4,11}(?=\]$)", re.MULTILINE)
"""To a record, at the end of its line: the first digits of its id."""


class Shown(NamedTuple):
    """A command and what it prints."""

    command: str
    printed: str


def shown(text: str) -> list[Shown]:
    """All commands of the guide, in order."""
    parts = (part for fence in FENCE.findall(text) for part in re.split(r"^\$ ", fence, flags=re.MULTILINE)[1:])
    return [Shown(*part.partition("\n")[::2]) for part in parts]


def alike(text: str) -> str:
    """Without what differs from run to run."""
    plain = ID.sub("0" * 12, REFERENCE.sub("0000", text))
    plain = TODAY.sub(r"\g<1>0000-00-00", TIME.sub("0000-00-00T00:00:00+00:00", plain))
    plain = WEEK.sub("0000-W00", plain)
    lines = (line.rstrip() for line in plain.splitlines())
    return "\n".join(lines).strip()


class GuideShell:
    """Runs the guide's commands, with the ids that its own store made."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "desk"
        self.folder.mkdir()
        self._shell = Shell(folder / "desk", {"COLUMNS": "100", "CTXSTEWARD_MASTER_KEY": MASTER_KEY})
        self._ids: dict[str, str] = {}

    def run(self, command: str) -> str:
        """What it prints on stdout and stderr."""
        done = self._shell.run(self.known(command))
        assert "Traceback" not in done.stderr, done.stderr
        return done.stdout + done.stderr

    def program(self, text: str) -> str:
        """What a Python program of the guide prints, in the guide's folder."""
        out = io.StringIO()
        with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(out):
            patch.chdir(self.folder)
            patch.setenv("CTXSTEWARD_MASTER_KEY", MASTER_KEY)
            exec(compile(text, str(GUIDE), "exec"), {})
        return out.getvalue()

    def known(self, command: str) -> str:
        """The command with the ids of this run."""
        return ID.sub(lambda found: self._ids.get(found[0], found[0]), command)

    def learn(self, told: str, printed: str) -> None:
        """An id of the guide stands for the one at its place."""
        self._ids.update(zip(ID.findall(told), ID.findall(printed), strict=False))


@pytest.mark.skipif(shutil.which("sh") is None, reason="no POSIX shell")
def test_the_guide_to_the_nightly_steward_prints_what_it_says(tmp_path: Path) -> None:
    shell = GuideShell(tmp_path)
    text = GUIDE.read_text(encoding="utf-8")
    commands = programs = 0
    for fence in RUN.finditer(text):
        if fence["python"]:
            printed = shell.program(fence["python"])
            assert alike(printed) == alike(fence["prints"] or ""), f"{fence['python']}: {printed}"
            programs += 1
            continue
        for one in shown(fence[0]):
            printed = shell.run(one.command)
            assert alike(printed) == alike(one.printed), f"{one.command}: {printed}\n{REWRITE}"
            shell.learn(one.printed, printed)
            commands += 1
    assert (commands, programs) == (len(shown(text)), text.count("\n```python"))
    assert commands >= 12
    assert programs >= 1
    _run_schedule(shell, text)


def _run_schedule(shell: GuideShell, text: str) -> None:
    """The lines for cron, with the guide's own settings at this test's places, leave what they say they leave."""
    (settings,) = re.findall(r"^```yaml\n(store:.*?)^```$", text, re.MULTILINE | re.DOTALL)
    here = settings.replace("/var/lib/desk/context", ".ctxsteward").replace(
        "profile: support", "profile: fernhollow-desk"
    )
    here = here.replace("/etc/desk/actors.yaml", ".ctxsteward/actors.yaml").replace("[logs/chats, store]", "[store]")
    here = here.replace("/var/log/desk/requests", "requests")
    (shell.folder / "requests").mkdir()
    (shell.folder / "steward.yaml").write_text(here, encoding="utf-8")
    lines = re.findall(r"^(?:[0-9*]+ ){5}cd \S+ && (ctxsteward .+)$", text, re.MULTILINE)
    assert len(lines) == 2
    for line in lines:
        shell.run(line.replace("\\%", "%"))
    assert json.loads((shell.folder / "nights.jsonl").read_text(encoding="utf-8"))["profile"] == "fernhollow-desk"
    assert "fernhollow-desk" in (shell.folder / "week.md").read_text(encoding="utf-8")


def test_the_guide_names_every_verb_reason_and_exit_code() -> None:
    from ctxsteward.console.commands import STEWARD
    from ctxsteward.console.steward.quarantine import DO

    text = GUIDE.read_text(encoding="utf-8")
    assert [verb for verb in STEWARD if f"steward {verb}" not in text] == []
    assert [reason for reason in DO if f"`{reason}`" not in text] == []
    assert [code for code in (0, 1, 2, 3, 4) if f"| {code} |" not in text] == []


def test_the_guides_figures_are_those_of_the_program() -> None:
    from ctxsteward.steward.admission import AdmissionPolicy
    from ctxsteward.steward.ingest.sources import SETTLED_SECONDS
    from ctxsteward.steward.ingest.watermark import OVERLAP_SECONDS
    from ctxsteward.steward.release.approvals import EXPIRES_DAYS
    from ctxsteward.steward.release.slice import HIGH_TOKENS, LOW_TOKENS, MARGIN
    from ctxsteward.steward.settings import NightSettings

    days = AdmissionPolicy().half_life_days
    text = " ".join(f"{GUIDE.read_text(encoding='utf-8')} {DECIDES.read_text(encoding='utf-8')}".split())
    for told in (
        f"only if it is worth {MARGIN:.0%} more".replace("%", " %"),
        f"fitted to {LOW_TOKENS}-{HIGH_TOKENS} tokens",
        f"halves in {days['correction']:.0f} days (corrections), {days['preference']:.0f} (preferences), "
        f"{days['tool_fix']:.0f} (tool errors), {days['eval_failure']:.0f} (eval failures), "
        "counted from when",
        f"an overlap of {OVERLAP_SECONDS / 3600:.0f} hours",
    ):
        assert told in text
    assert (SETTLED_SECONDS, "quiet for six hours" in text) == (6 * 3600, True)
    assert (EXPIRES_DAYS, "holds seven days" in text) == (7, True)
    assert (NightSettings().lease_seconds, "on any other after two minutes" in text) == (120, True)


def test_the_guides_settings_are_settings_and_its_sidecar_is_one() -> None:
    from ctxsteward.console.steward.context import read_settings
    from ctxsteward.steward.ingest.transcripts import read_metadata

    text = GUIDE.read_text(encoding="utf-8")
    (yaml,) = re.findall(r"^```yaml\n(store:.*?)^```$", text, re.MULTILINE | re.DOTALL)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "steward.yaml"
        path.write_text(yaml)
        assert read_settings(str(path))["profile"] == "support"
    (sidecar,) = re.findall(r"^```json\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert read_metadata(json.dumps(json.loads(sidecar)).encode(), "guide").principal == "ada"


def test_the_guides_cases_are_cases(tmp_path: Path) -> None:
    from ctxsteward.steward.gate.suite import load_suite

    (cases,) = re.findall(r"^```yaml\n(name:.*?)^```$", GUIDE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    (tmp_path / "gate.yaml").write_text(cases, encoding="utf-8")
    found = load_suite(str(tmp_path / "gate.yaml"))
    assert ([one.id for one in found.cases], [one.id for one in found.held]) == (["parcel"], ["shelf"])


def rewrite() -> None:
    """Print every command's output anew into the guide."""
    text = GUIDE.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        shell = GuideShell(Path(folder))

        def fence(found: re.Match[str]) -> str:
            if found["python"]:
                shell.program(found["python"])  # a command may print what it did
                return found[0]
            made = []
            for one in shown(found[0]):
                printed = "\n".join(line.rstrip() for line in shell.run(one.command).splitlines())
                shell.learn(one.printed, printed)
                made.append(f"$ {shell.known(one.command)}\n{printed}".rstrip() + "\n")
            return "```console\n" + "\n".join(made) + "```"

        text = RUN.sub(fence, text)
    GUIDE.write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    rewrite()
