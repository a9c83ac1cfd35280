"""The tables of ``docs/cost.md``: our builders on agent runs at three budgets, beside masking baselines.

python -m benchmarks.cost DATA... [--write docs/cost.md]   # tau-bench and SWE-agent runs
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from ctxsteward.envelope import Budgets, EnvelopeBuilder, Prices, model_info
from ctxsteward.evals.documents import table

from .agent_costs import AGENT, OURS, OURS_WITHOUT_RECALL, CostRow, agent_builder, grouped, measure, title
from .masking import strategies
from .report import progress, publish, script

MODEL = "gpt-4o"
BUDGETS_TOKENS = (900, 4_000, 16_000)
HEAD = (
    "sent",
    "raw",
    "cache-priced",
    "from cache, %",
    "compactions",
    "over budget, %",
    "task shown, %",
    "used values shown, %",
)


def cells(row: CostRow) -> tuple[str, ...]:
    """Return a row's figures in the order of `HEAD`."""
    return (
        row.strategy,
        f"{row.raw_ratio:.2f}",
        f"{row.priced_ratio:.2f}",
        _percent(row.prefix_reuse),
        f"{row.compactions:,}",
        _percent(row.over_budget),
        _percent(row.task_shown),
        "–" if row.values_shown is None else _percent(row.values_shown),
    )


def _percent(share: float) -> str:
    return f"{100 * share:.1f}".removesuffix(".0")


def cost_block(data: Sequence[Path], budgets_tokens: Sequence[int] = BUDGETS_TOKENS) -> Iterator[str]:
    """Yield a table for each dynamic budget and each format; for the largest budget one for all formats."""
    prices = Prices(block_tokens=model_info(MODEL).prices.block_tokens)
    costs = f"A cached token costs {prices.cached:g}, a written one {prices.write:g}"
    yield f"{costs}; block {prices.block_tokens:,} tokens."
    for dynamic_tokens in budgets_tokens:
        measured = measure(data, _builders(dynamic_tokens), prices=prices, baselines=strategies, tell=progress)
        tables = list(grouped(measured).values())
        for rows in tables[-1:] if dynamic_tokens == max(budgets_tokens) else tables:
            yield from ("", f"**{title(rows, dynamic_tokens)}**", "", *table(HEAD, map(cells, rows)))


def _builders(dynamic_tokens: int) -> dict[str, EnvelopeBuilder]:
    ours = EnvelopeBuilder(MODEL, budgets=Budgets(dynamic_tokens=dynamic_tokens))
    bare = EnvelopeBuilder(MODEL, budgets=Budgets(dynamic_tokens=dynamic_tokens, recall_fraction=0))
    return {OURS: ours, OURS_WITHOUT_RECALL: bare, AGENT: agent_builder(ours)}


def main(argv: Sequence[str] | None = None) -> int:
    """Print the tables, or write them into the page."""
    parser = script(__doc__)
    parser.add_argument("data", type=Path, nargs="+", help="files of agent runs, or folders of them")
    options = parser.parse_args(argv)
    return publish(parser, options, {"cost": lambda: cost_block(options.data)})


if __name__ == "__main__":
    raise SystemExit(main())
