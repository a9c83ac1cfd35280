"""Commands of a document, run as a reader's shell would: `ctxsteward` alone in this process, all else by ``sh``.

A process for each command would start Python some dozens of times only to read what is printed; signals, pipes and
exit codes of real processes are tested in ``tests/console/test_cli.py``.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from string import Template
from typing import NamedTuple

from click.testing import CliRunner

from ctxsteward.console.cli import cli

PLAIN = re.compile(r"ctxsteward [^|&;<>`()\n]*")
PROGRAM = f"#!{sys.executable}\nfrom ctxsteward.console.cli import main\nif __name__ == '__main__':\n    main()\n"
"""As pip writes it; what is played may be shared out to processes that import this file again."""


class Done(NamedTuple):
    """How a command ended."""

    code: int
    stdout: str
    stderr: str


class Shell:
    """A shell in one folder; `environment` is all that it has besides the paths of this process."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self._folder = folder
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("CTXSTEWARD_", "PREFECT_"))}
        self._environment = {**kept, "PYTHONIOENCODING": "utf-8", **environment}

    def run(self, command: str) -> Done:
        """Run one command line."""
        return self._here(command) if PLAIN.fullmatch(command) else self._elsewhere(command)

    def _here(self, command: str) -> Done:
        arguments = [Template(word).safe_substitute(self._environment) for word in shlex.split(command)[1:]]
        unset = {key: None for key in os.environ if key not in self._environment}
        with contextlib.chdir(self._folder):
            done = CliRunner().invoke(cli, arguments, prog_name="ctxsteward", env={**unset, **self._environment})
        assert done.exception is None or isinstance(done.exception, SystemExit), repr(done.exception)
        return Done(done.exit_code, done.stdout, done.stderr)

    def _elsewhere(self, command: str) -> Done:
        bin = self._folder.parent / f"{self._folder.name}-bin"
        if not bin.is_dir():
            bin.mkdir()
            (bin / "ctxsteward").write_text(PROGRAM)
            (bin / "ctxsteward").chmod(0o755)
        environment = self._environment | {
            "PATH": f"{bin}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": os.pathsep.join(sys.path),
        }
        done = subprocess.run(
            ["sh", "-c", command], cwd=self._folder, env=environment, capture_output=True, encoding="utf-8", timeout=300
        )
        return Done(done.returncode, done.stdout, done.stderr)
