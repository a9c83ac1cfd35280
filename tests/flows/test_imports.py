"""Only the modules of `flows` import Prefect, and the package itself does not: analytics can be turned off first."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from .servers import environment


@pytest.mark.parametrize(
    "imported",
    [
        "ctxsteward.steward.night.run, ctxsteward.steward.setup, ctxsteward.steward.night.chain, "
        "ctxsteward.steward.night.telemetry",
        "ctxsteward.flows, ctxsteward.flows",
    ],
)
def test_prefect_and_dask_are_not_imported(tmp_path: Path, imported: str) -> None:
    script = f"import sys, {imported}; print([name for name in ('prefect', 'distributed') if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.strip() == "[]"
