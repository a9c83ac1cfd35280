"""The tables of ``docs/cost.md``: our builders on agent runs at two budgets and the default, beside masking baselines.

python -m benchmarks.cost DATA... [--write docs/cost.md]   # tau-bench and SWE-agent runs
python -m benchmarks.cost DATA... --budget 100000 --longest 10   # a wide budget, the ten largest files
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from ctxsteward.console.pages.cut_costs import CutCost, cut_costs
from ctxsteward.envelope import Budgets, EnvelopeBuilder, Prices, model_info, past_calls
from ctxsteward.envelope.testing import memory_store
from ctxsteward.envelope.transcripts.files import read_transcripts
from ctxsteward.evals.documents import table
from ctxsteward.evals.replay import files_of, open_session, replay

from .agent_costs import AGENT, OURS, OURS_WITHOUT_RECALL, CostRow, agent_builder, grouped, measure, title
from .cascade_runs import scenarios_block
from .masking import strategies
from .report import progress, publish, script

MODEL = "gpt-5.6"
"""A model whose cache writes cost 1.25."""
BUDGETS_TOKENS = (900, 4_000, None)
"""Of dynamic; None: a builder without `budgets`."""


def cost_block(data: Sequence[Path], budgets_tokens: Sequence[int | None] = BUDGETS_TOKENS) -> Iterator[str]:
    """Yield a table for each dynamic budget, with a column of prices and one of values for each format of runs."""
    prices = Prices(block_tokens=model_info(MODEL).prices.block_tokens)
    costs = f"A cached token costs {prices.cached:g}, a written one {prices.write:g}"
    yield f"{costs}; block {prices.block_tokens:,} tokens."
    for dynamic_tokens in budgets_tokens:
        measured = measure(data, _builders(dynamic_tokens), prices=prices, baselines=strategies, tell=progress)
        groups = grouped(measured)
        *_, together = groups.values()
        head = ("sent", *groups, "raw", "dearest run", "over budget, %", "task shown, %")
        head = (*head, *(f"values, {runs_of}, %" for runs_of in [*groups][:-1] or groups))
        rows = map(cells, zip(*groups.values(), strict=True))
        yield from ("", f"**{title(together, dynamic_tokens)}**", "", *table(head, rows))


def cells(row: Sequence[CostRow]) -> tuple[str, ...]:
    """Return one strategy's figures; the last of its rows is of all runs."""
    together = row[-1]
    return (
        together.strategy,
        *(f"{one.priced_ratio:.2f}" for one in row),
        f"{together.raw_ratio:.2f}",
        f"{together.dearest_run:.2f}",
        _percent(together.over_budget),
        _percent(together.task_shown),
        *("–" if one.values_shown is None else _percent(one.values_shown) for one in row[:-1] or row),
    )


def _percent(share: float) -> str:
    return f"{100 * share:.1f}".removesuffix(".0")


NEAR = 0.15
"""A prediction is near if it is off by at most this share of what a cut saved."""


def _is_near(predicted: float, saved: float) -> bool:
    return abs(predicted - saved) <= NEAR * abs(saved)


def cuts_block(data: Sequence[Path], budgets_tokens: Sequence[int] = (900, 4_000)) -> Iterator[str]:
    """Yield a table of what compactions cost and saved, as predicted and as it came."""
    rows = []
    for dynamic_tokens in budgets_tokens:
        for path in data:
            cuts = list(_cuts(path, EnvelopeBuilder(MODEL, budgets=Budgets(dynamic_tokens=dynamic_tokens))))
            alone = [cut.saved + cut.recall for cut in cuts]
            counts = (
                sum(_is_near(cut.predicted, saved) for cut, saved in zip(cuts, alone, strict=True)),
                sum(_is_near(cut.predicted, cut.saved) for cut in cuts),
            )
            figures = (
                sum(cut.predicted for cut in cuts),
                sum(alone),
                sum(cut.recall for cut in cuts),
                sum(cut.saved for cut in cuts),
            )
            of_all = [f"{count} of {len(cuts)}" for count in counts]
            rows.append((path.name, f"{dynamic_tokens:,}", *of_all, *(f"{figure:,.0f}" for figure in figures)))
    near = f"within {NEAR:.0%}"
    shares = (f"cut {near}", f"with recall {near}")
    yield from table(("runs", "budget", *shares, "predicted", "saved by cuts", "recall", "together"), rows)


def _cuts(path: Path, builder: EnvelopeBuilder) -> Iterator[CutCost]:
    for file in files_of([path]):
        for transcript in read_transcripts(file):
            progress(f"cuts at {builder.budgets.dynamic_tokens:,}", transcript.session)
            with memory_store() as store:
                session = open_session(store, transcript)
                for _ in replay(transcript, builder, session):
                    pass
                yield from cut_costs(past_calls(store, session.id))


def _builders(dynamic_tokens: int | None) -> dict[str, EnvelopeBuilder]:
    stated = None if dynamic_tokens is None else Budgets(dynamic_tokens=dynamic_tokens)
    ours = EnvelopeBuilder(MODEL, budgets=stated)
    bare = EnvelopeBuilder(MODEL, budgets=ours.budgets.model_copy(update={"recall_fraction": 0.0}))
    return {OURS: ours, OURS_WITHOUT_RECALL: bare, AGENT: agent_builder(ours)}


def main(argv: Sequence[str] | None = None) -> int:
    """Print the tables, or write them into the page."""
    parser = script(__doc__)
    parser.add_argument("data", type=Path, nargs="+", help="files of agent runs, or folders of them")
    parser.add_argument("--budget", type=int, action="append", help="of dynamic; instead of those of the page")
    parser.add_argument("--longest", type=int, help="measure only the largest files")
    options = parser.parse_args(argv)
    if options.budget or options.longest:
        files = sorted(files_of(options.data), key=lambda file: file.stat().st_size)[-(options.longest or 0) :]
        print("\n".join(cost_block(files, options.budget or BUDGETS_TOKENS)))
        return 0
    blocks = {
        "cost": lambda: cost_block(options.data),
        "cuts": lambda: cuts_block(options.data),
        "scenarios": scenarios_block,
    }
    return publish(parser, options, blocks)


if __name__ == "__main__":
    raise SystemExit(main())
