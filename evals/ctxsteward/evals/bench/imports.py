"""What `import ctxsteward.envelope` costs, in a fresh process."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from collections.abc import Iterator

from . import BenchmarkRow, row

NAME = "import"
HEAVY = ("boto3", "prefect", "numpy", "openai", "tiktoken", "ruamel.yaml", "click", "rich")
_PROBE = f"""
import json, sys, time
start = time.process_time()
import ctxsteward.envelope
print(json.dumps([time.process_time() - start, [m for m in {HEAVY!r} if m in sys.modules]]))
"""


def run(data: object = None) -> Iterator[BenchmarkRow]:
    """Yield the figures."""
    results = [json.loads(subprocess.check_output([sys.executable, "-c", _PROBE])) for _ in range(5)]
    yield row(
        NAME,
        "import ctxsteward.envelope",
        statistics.median(seconds for seconds, _ in results),
        "s",
        at_most=0.25,
    )
    loaded = sorted({module for _, modules in results for module in modules})
    yield row(NAME, f"of {', '.join(HEAVY)} imported", len(loaded), at_most=0)
