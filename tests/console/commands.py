"""Commands of the terminal, called in this process."""

from __future__ import annotations

import json
from typing import Any

from click.testing import CliRunner, Result

from ctxsteward.console.cli import cli


def run(*args: str, code: int = 0, stdin: str | None = None, **environment: str) -> Result:
    """Run ``ctxsteward ARGS``, which ends with `code`."""
    result = CliRunner().invoke(cli, args, input=stdin, env=environment)
    assert result.exit_code == code, (args, result.output, result.exception)
    return result


def value(*args: str, code: int = 0) -> Any:
    """Return what ``ctxsteward ARGS --json`` prints, one line."""
    (line,) = run(*args, "--json", code=code).stdout.splitlines()
    return json.loads(line)
