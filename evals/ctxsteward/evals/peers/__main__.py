"""``python -m ctxsteward.evals.peers``: ours beside other libraries, on the same inputs, by the same judge.

Needs the peers' environment (``make peers`` builds it) and a folder of public transcripts. ``--write
docs/benchmarks.md`` puts the table between that file's markers.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from ctxsteward.envelope.tokens import Counter, load_tokenizer
from ctxsteward.schemas import ContextError

from ..documents import check_markers, write_blocks
from ..prompt_cost import Sizer
from ..recall import RECALL_FRACTION
from .adapter import PEERS
from .judge import RUNS, measure, read_inputs
from .senders import AdapterProcess, OurEnvelope, Sender, WholeHistory
from .table import EVERYTHING, NAME, columns, peers_block, table

PYTHON = Path(".venv-peers/bin/python")
OURS, OURS_FOR_QUESTIONS, OURS_WITHOUT_RECALL = "ours", "ours, recall 0.9", "ours, no recall"


def senders(python: Path) -> dict[str, Callable[[], Sender]]:
    """Everybody who is measured, by name."""
    return {
        EVERYTHING: WholeHistory,
        OURS: partial(OurEnvelope, "defaults at this budget"),
        OURS_FOR_QUESTIONS: partial(
            OurEnvelope, f"`recall_fraction={RECALL_FRACTION}`", {"recall_fraction": RECALL_FRACTION}
        ),
        OURS_WITHOUT_RECALL: partial(OurEnvelope, "`recall_fraction=0`", {"recall_fraction": 0.0}),
        **{name: partial(AdapterProcess, python, name) for name in PEERS},
    }


def main(argv: list[str] | None = None) -> int:
    """Measure and print the table; exit 2 on what cannot be used."""
    parser = argparse.ArgumentParser(prog="python -m ctxsteward.evals.peers", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of: {', '.join(senders(PYTHON))}; default: all")
    parser.add_argument("--data", type=Path, required=True, help="folder of public transcripts")
    parser.add_argument("--python", type=Path, default=PYTHON, help="of the peers' environment; default: %(default)s")
    parser.add_argument("--json", action="store_true", help="a JSON object a sender")
    parser.add_argument(
        "--write", type=Path, metavar="FILE", help=f"Markdown with <!-- {NAME} --> and <!-- /{NAME} -->"
    )
    options = parser.parse_args(argv)
    known = senders(options.python)
    unknown = [name for name in options.names if name not in known]
    if unknown:
        parser.error(f"unknown sender {unknown[0]!r}; one of: {', '.join(known)}")
    missing = [name for name in RUNS if not (options.data / name).is_dir()]
    if missing:
        parser.error(f"--data {options.data}: no folder {missing[0]}; pass the folder of public transcripts")
    if not options.python.is_file():
        parser.error(f"--python {options.python}: no such file; run `make peers` first")
    try:
        if options.write:
            check_markers(options.write, NAME)
        _measure(options)
    except (ContextError, OSError) as error:
        parser.error(str(error))
    return 0


def _measure(options: argparse.Namespace) -> None:
    sizer = Sizer(Counter(load_tokenizer("o200k_base")))
    started = time.monotonic()
    _tell("reading inputs")
    inputs = read_inputs(options.data, sizer)
    known = senders(options.python)
    wanted = dict.fromkeys((EVERYTHING, *(options.names or known)))
    measured = [measure(name, known[name], inputs, sizer, tell=_tell) for name in wanted]
    if options.json:
        for one in measured:
            print(json.dumps(dataclasses.asdict(one), ensure_ascii=False))
    else:
        print("\n".join(table(measured, columns(inputs))))
    if options.write:
        write_blocks(options.write, {NAME: peers_block(measured, inputs, time.monotonic() - started)})


def _tell(text: str) -> None:
    print(f"peers: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
