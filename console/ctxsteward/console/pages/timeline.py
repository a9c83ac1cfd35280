"""The calls of a session in order: tokens by source against the budget, tokens served by the cache, and costs.

Figures come from `past_calls`, that is from manifests and log alone. A call is priced as if the provider's cache held
only the previous call: the unchanged beginning is *read* from the cache if it is long enough to be cached, the rest of
a prompt that is long enough is *written* to it, and a short prompt is neither. Costs are in plain prompt tokens of the
call's own model, by its published price ratios, and also in dollars if the price of a million tokens is given.
Page 1 shows the newest calls, in order. The overview has at most `POINTS` points; each is the largest call of a range
of calls.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ctxsteward.envelope import Prices
from ctxsteward.envelope.building.past_calls import SOURCES, PastCall
from ctxsteward.envelope.tokens.models import dollars_of, prices_of
from ctxsteward.schemas.frozen import FrozenModel

from .cut_costs import CutCost, cut_costs
from .frame import CALLS
from .inspector import Block, CallView
from .sessions import pages_of

POINTS = 240


class TimelineCall(FrozenModel):
    """A call and its cost."""

    call: PastCall
    read_tokens: int
    """Prompt tokens that the cache serves."""
    written_tokens: int
    """Prompt tokens that are written to the cache."""
    fresh_tokens: int
    """Prompt tokens that are neither read from the cache nor written to it."""
    priced_tokens: float
    """Cost in plain prompt tokens."""
    dollars: float | None
    """Cost in dollars; None if no price was given or is known."""
    is_priced: bool
    """Whether the model's price ratios are known; if not, those of most models are used."""
    cut: CutCost | None = None
    """Profit and loss of the compaction that the call made; None if it made none."""


class TimelineTotals(FrozenModel):
    """Totals over all calls of the session."""

    calls: int
    prompt_tokens: int
    read_tokens: int
    written_tokens: int
    priced_tokens: float
    dollars: float | None
    compactions: int
    saved: float
    """What the compactions saved so far, in plain prompt tokens."""
    losses: int
    prefix_breaks: int
    over_budget: int
    peak_tokens: int


class OverviewPoint(NamedTuple):
    """A range of calls in the overview."""

    first: int
    last: int
    prompt_tokens: int
    """Prompt tokens of the range's largest call."""
    limit_tokens: int
    compactions: int


class Timeline(FrozenModel):
    """A page of a session's calls."""

    session: str
    page: int
    pages: int
    totals: TimelineTotals
    calls: tuple[TimelineCall, ...]
    overview: tuple[OverviewPoint, ...]
    """Overview of the whole session; empty if it has one page."""


def timeline_page(
    session: str, calls: Sequence[PastCall], *, page: int = 1, price: float | None = None, size: int = CALLS
) -> Timeline:
    """Return a page of these calls and the totals over all; `price` is in dollars for a million prompt tokens."""
    cuts = {cut.call: cut for cut in cut_costs(calls, price)}
    priced = [priced_call(call, price).model_copy(update={"cut": cuts.get(call.number)}) for call in calls]
    pages = pages_of(len(calls), size)
    page = min(page, pages)
    stop = len(calls) - (page - 1) * size
    return Timeline(
        session=session,
        page=page,
        pages=pages,
        totals=_totals(priced),
        calls=tuple(priced[max(0, stop - size) : stop]),
        overview=tuple(_overview(calls)) if pages > 1 else (),
    )


def priced_call(call: PastCall, price: float | None = None) -> TimelineCall:
    """Return a call with its cost; `price` is in dollars for a million prompt tokens, by default the model's own."""
    published = prices_of(call.model)
    prices = published or Prices()
    prompt = call.prompt_tokens
    read = min(call.prefix_tokens, prompt) if prices.served(call.prefix_tokens) else 0
    marked = prompt - call.unwritten_tokens
    written = max(0, marked - read) if marked >= prices.block_tokens else 0
    priced = prices.of(prompt, read, call.unwritten_tokens)
    dollars = dollars_of(call.model, priced) if price is None else priced * price / 1e6
    return TimelineCall(
        call=call,
        read_tokens=read,
        written_tokens=written,
        fresh_tokens=prompt - read - written,
        priced_tokens=round(priced, 1),
        dollars=None if dollars is None else round(dollars, 8),
        is_priced=published is not None,
    )


def _totals(calls: Sequence[TimelineCall]) -> TimelineTotals:
    compactions = [made for each in calls for made in each.call.compactions]
    dollars = [each.dollars for each in calls if each.dollars is not None]
    return TimelineTotals(
        calls=len(calls),
        prompt_tokens=sum(each.call.prompt_tokens for each in calls),
        read_tokens=sum(each.read_tokens for each in calls),
        written_tokens=sum(each.written_tokens for each in calls),
        priced_tokens=round(sum(each.priced_tokens for each in calls), 1),
        dollars=round(sum(dollars), 8) if len(dollars) == len(calls) else None,
        compactions=len(compactions),
        saved=round(sum(each.cut.saved for each in calls if each.cut), 1),
        losses=sum(made.losses for made in compactions),
        prefix_breaks=sum(each.call.broke_in is not None for each in calls),
        over_budget=sum(each.call.overflow_tokens > 0 for each in calls),
        peak_tokens=max((each.call.prompt_tokens for each in calls), default=0),
    )


def _overview(calls: Sequence[PastCall]) -> Iterator[OverviewPoint]:
    step = -(-len(calls) // POINTS)
    for start in range(0, len(calls), step):
        stretch = calls[start : start + step]
        peak = max(stretch, key=lambda call: call.prompt_tokens)
        made = sum(len(call.compactions) for call in stretch)
        yield OverviewPoint(stretch[0].number, stretch[-1].number, peak.prompt_tokens, peak.limit_tokens, made)


# -- drawn --------------------------------------------------------------------------------------------------------

WIDTH, LEFT, RIGHT, TOP = 1240, 56, 8, 22
SECTION_WIDTH = 320
HEIGHT, COST_HEIGHT, OVERVIEW_HEIGHT = 220, 70, 60


class Plot(NamedTuple):
    """A plot of stacked columns for SVG; lengths are in user units."""

    width: int
    height: int
    bottom: float
    """Height at which the lower axis is."""
    layers: list[tuple[str, str]]
    """SVG path of each source."""
    columns: list[tuple[float, float]]
    """Left edge and width of each call."""
    left: list[tuple[float, str]]
    """Labels of the vertical axis, each with its position."""
    below: list[tuple[float, str]]
    limit: str = ""
    """Path of the budget."""
    threshold: str = ""
    """Path of the threshold from which on dynamic is compacted."""
    marks: tuple[tuple[str, float, float], ...] = ()
    """Marks at calls (compaction, break or fault), with their positions."""


def tokens_plot(shown: Timeline) -> Plot:
    """Return a plot of each call's tokens by source, with the budget."""
    calls = [priced.call for priced in shown.calls]
    most = max((max(call.prompt_tokens, call.limit_tokens) for call in calls), default=0) or 1
    stacks = {source: [getattr(call, f"{source}_tokens") for call in calls] for source in SOURCES}
    plot = _plot(stacks, [call.number for call in calls], most, HEIGHT)
    marks = [
        (kind, x + width / 2, _y(call.prompt_tokens, most, HEIGHT) if kind == "compaction" else plot.bottom)
        for (x, width), call in zip(plot.columns, calls, strict=True)
        for kind, there in (("compaction", call.compactions), ("break", call.broke_in), ("fault", call.fault))
        if there
    ]
    return plot._replace(
        limit=_steps([call.limit_tokens for call in calls], plot, most, HEIGHT),
        threshold=_steps([call.threshold_tokens for call in calls], plot, most, HEIGHT),
        marks=tuple(marks),
    )


def cost_plot(shown: Timeline) -> Plot:
    """Return a plot of the tokens of each call that are read from the cache, written to it, or neither."""
    calls = shown.calls
    most = max((priced.call.prompt_tokens for priced in calls), default=0) or 1
    stacks = {
        "read": [priced.read_tokens for priced in calls],
        "write": [priced.written_tokens for priced in calls],
        "fresh": [priced.fresh_tokens for priced in calls],
    }
    return _plot(stacks, [priced.call.number for priced in calls], most, COST_HEIGHT)


def overview_plot(shown: Timeline) -> Plot:
    """Return a plot of the largest call of each range of the session."""
    points = shown.overview
    most = max((max(point.prompt_tokens, point.limit_tokens) for point in points), default=0) or 1
    stacks = {"verbatim": [point.prompt_tokens for point in points]}
    plot = _plot(stacks, [point.first for point in points], most, OVERVIEW_HEIGHT)
    return plot._replace(limit=_steps([point.limit_tokens for point in points], plot, most, OVERVIEW_HEIGHT))


def _plot(stacks: dict[str, list[int]], numbers: Sequence[int], most: int, height: int) -> Plot:
    count = len(numbers)
    step = (WIDTH - LEFT - RIGHT) / max(1, count, 12)
    columns = [(LEFT + at * step, step) for at in range(count)]
    below = [0] * count
    layers = []
    for source, tokens in stacks.items():
        above = [low + own for low, own in zip(below, tokens, strict=True)]
        if any(tokens):
            # A closed path over the columns, without those that have no height.
            ends = ((_y(low, most, height), _y(high, most, height)) for low, high in zip(below, above, strict=True))
            parts = [
                f"M{x:.1f} {low:.1f}V{high:.1f}h{width:.2f}V{low:.1f}z"
                for (x, width), (low, high) in zip(columns, ends, strict=True)
                if low > high
            ]
            layers.append((source, "".join(parts)))
        below = above
    # Round labels from 0 up, about one every 45 units of height.
    rough = most / max(2, height // 45)
    power = 10 ** max(0, len(str(int(rough))) - 1)
    tick = next(tick for tick in (power, 2 * power, 5 * power, 10 * power) if tick >= rough)
    every = max(1, -(-count // 16))
    return Plot(
        width=WIDTH,
        height=TOP + height + 24,
        bottom=TOP + height,
        layers=layers,
        columns=columns,
        left=[(_y(value, most, height), f"{value:,}") for value in range(0, most + 1, int(tick))],
        below=[(columns[at][0] + step / 2, f"{numbers[at]:,}") for at in range(0, count, every)],
    )


def _y(tokens: int, most: int, height: int) -> float:
    return TOP + height * (1 - tokens / most)


def _steps(tokens: Sequence[int], plot: Plot, most: int, height: int) -> str:
    parts = []
    for at, ((x, width), value) in enumerate(zip(plot.columns, tokens, strict=True)):
        parts.append(f"{'L' if at else 'M'}{x:.1f} {_y(value, most, height):.1f}h{width:.2f}")
    return "".join(parts)


class PromptBar(NamedTuple):
    """A prompt, or a section of it, as a horizontal bar; lengths are in user units."""

    width: int
    segments: list[tuple[Block, float, float]]
    """Each block with its left edge and its width."""
    limit_x: float | None
    threshold_x: float | None


def prompt_bar(shown: CallView) -> PromptBar:
    """Return a bar of the whole prompt, block by block, with its limit."""
    call = shown.call
    blocks = [block for section in shown.sections for block in section.blocks]
    most = max(call.prompt_tokens, call.limit_tokens, sum(block.tokens for block in blocks)) or 1
    return _bar(blocks, most, call.limit_tokens, call.threshold_tokens, WIDTH)


def section_bars(shown: CallView) -> dict[str, PromptBar]:
    """Return a bar for each section that has a budget, with that budget."""
    return {
        section.name: _bar(
            section.blocks,
            max(section.budget_tokens, section.tokens) or 1,
            section.budget_tokens,
            section.threshold_tokens,
            SECTION_WIDTH,
        )
        for section in shown.sections
        if section.budget_tokens is not None
    }


def _bar(blocks: Sequence[Block], most: int, limit: int, threshold: int | None, width: int) -> PromptBar:
    segments, x = [], 0.0
    for block in blocks:
        length = width * block.tokens / most
        segments.append((block, x, length))
        x += length
    limit_x = None if limit >= most else width * limit / most
    return PromptBar(width, segments, limit_x, None if threshold is None else width * threshold / most)
