"""What some tests need that `make demo` does not install: as the reason of a skip, and as one line at the end of a run.

    pytest.skip(POSTGRESQL)
    @pytest.mark.skipif(not PYTHON.exists(), reason=INSPECT)

A reason names the thing and the command that installs it, so the summary is made of the reasons themselves, and works
where other processes ran the tests.
"""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[1]
_LINTERS_FOLDER = _ROOT / ".venv-docs" / "bin"
_SYSTEM, _MAKE = ".ci/run", "make "
_REASON = re.compile(r"(?:Skipped: )?needs (?P<what>[^:]+): (?P<how>.+)", re.DOTALL)


def needs(what: str, how: str) -> str:
    """A reason: the thing, and the command that makes such tests run.

    >>> needs("Chromium", ".ci/run")
    'needs Chromium: .ci/run'
    """
    return f"needs {what}: {how}"


POSTGRESQL = needs("PostgreSQL", _SYSTEM)
PGBOUNCER = needs("PgBouncer", _SYSTEM)
CHROMIUM = needs("Chromium", _SYSTEM)
PROMETHEUS = needs("promtool", _SYSTEM)
CURL_AND_JQ = needs("curl and jq", _SYSTEM)
MINISTACK = needs("ministack", "make ministack")
INSPECT = needs("Inspect", "make inspect")
LIBRARIES = needs("other libraries", "make adapters")
FRAMEWORKS = needs("agent frameworks", "make integrations")
MODEL_SERVER = needs("a model server", "make llama")
LINTERS = needs("linters and the site's builder", "make linters")
CLIENTS = needs("generated clients", "make clients")
PUBLISHED_FORMS = needs("CycloneDX's and in-toto's packages", "make demo")
PUBLIC_DATA = needs("public data sets", "put them in ../shared")
CLAUDE_SDK = needs("claude-agent-sdk (168 MB)", "CTXSTEWARD_CLAUDE_SDK=PYTHON names an interpreter that has it")


def judged(linter: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """What a linter says; skipped where it is not installed."""
    if not (_LINTERS_FOLDER / linter).exists():
        pytest.skip(LINTERS)
    return subprocess.run(
        [_LINTERS_FOLDER / linter, *arguments], capture_output=True, text=True, timeout=120, check=False, cwd=_ROOT
    )


def skip_line(reasons: Iterable[str]) -> str:
    """How many tests were skipped, what they need, and the commands that make them run; empty where none was skipped.

    >>> skip_line([POSTGRESQL, POSTGRESQL, INSPECT, MINISTACK, "no POSIX shell"])
    '5 skipped: 2 need PostgreSQL, 1 Inspect, 1 ministack, 1 another reason (named above). To run them: `.ci/run`, \
`make inspect ministack`'
    """
    found = [(_REASON.fullmatch(reason), reason) for reason in reasons]
    if not found:
        return ""
    things = Counter(match["what"] for match, _ in found if match)
    others = sum(match is None for match, _ in found)
    parts = [f"{count} {thing}" for thing, count in sorted(things.items(), key=lambda one: (-one[1], one[0]))]
    if parts:
        count, thing = parts[0].split(" ", 1)
        parts[0] = f"{count} need {thing}"
    if others:
        parts.append(f"{others} {'another reason' if others == 1 else 'other reasons'} (named above)")
    commands = sorted({match["how"] for match, _ in found if match})
    targets = [command.removeprefix(_MAKE) for command in commands if command.startswith(_MAKE)]
    ways = [f"`{_SYSTEM}`"] if _SYSTEM in commands else []
    ways += [f"`{_MAKE}{' '.join(targets)}`"] if targets else []
    ways += [command for command in commands if command != _SYSTEM and not command.startswith(_MAKE)]
    how = f". To run them: {', '.join(ways)}" if ways else ""
    return f"{len(found)} skipped: {', '.join(parts)}{how}"
