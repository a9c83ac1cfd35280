"""``ctxsteward try``: show what several budgets save, show and hide on a user's own transcripts, on one page."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

import click
from click.core import ParameterSource

from ctxsteward.envelope import model_info
from ctxsteward.evals.prompt_cost import Bill
from ctxsteward.evals.replay import files_of
from ctxsteward.evals.trial import BudgetTrial, Trial, try_transcripts
from ctxsteward.schemas import InputError, UnknownModel

from ..pages.charts import Bar, bars
from ..pages.frame import render
from ..terminal.options import json_option, model_option, price_option, read_budgets_tokens, unknown_model, utc_now
from ..terminal.output import note, print_json, share_bar, table_console, write_text
from ..terminal.tables import grid, pairs, say

VALUE_CHARS = 40
EVERYTHING, DEFAULTS = "everything", "defaults"


@click.command("try")
@click.argument("folder", type=click.Path(), nargs=-1, required=True)
@model_option("Whose tokens, cache and prices count.")
@click.option(
    "--budgets",
    metavar="N,…",
    help="Dynamic budgets to try, in tokens; default: 1,000 to 16,000, and the builder's own.",
)
@price_option
@click.option("--html", type=click.Path(dir_okay=False), metavar="FILE", help="Also write the page as one HTML file.")
@json_option
def try_(
    folder: tuple[str, ...], model: str, budgets: str | None, price: float | None, html: str | None, as_json: bool
) -> None:
    """Replay the transcripts in FOLDER at several budgets, and recommend one.

    FOLDER holds chats and agent runs in any supported format; a single file works too. The output shows the money
    saved, what was compacted away and found again, and which values that later replies used were not shown. No
    model is called; nothing is sent or stored.
    """
    try:
        info = model_info(model)
    except UnknownModel as error:
        raise unknown_model(error) from error
    if html is not None and not Path(html).parent.is_dir():
        raise InputError(f"--html {html}: no such folder; make it first, or name another")
    if html is not None and Path(html).resolve() in {file.resolve() for file in files_of(folder)}:
        raise InputError(f"--html {html}: this is one of the transcripts; name another file")
    chosen = () if budgets is None else read_budgets_tokens(budgets)
    with share_bar("try", shown=not as_json) as tell:
        trial = try_transcripts(folder, model=info.name, budgets_tokens=chosen, dollars_per_million=price, tell=tell)
    for skipped in trial.skipped:
        note(f"left out: {skipped.why if skipped.path in skipped.why else f'{skipped.path}: {skipped.why}'}")
    is_assumed = click.get_current_context().get_parameter_source("model") is ParameterSource.DEFAULT
    about = heading(trial, is_assumed=is_assumed)
    print_json(trial.document()) if as_json else _print(trial, about)
    if html is not None:  # last, so that the figures are printed even if the file cannot be written
        write_text(html, page(trial, about, folder))
        note(f"{html}: the page is written; open it in a browser")


def _print(trial: Trial, about: str) -> None:
    console = table_console()
    say(console, about)
    columns = columns_of(trial)
    console.print(grid(*columns, rows=lines(trial), numbers=[*columns]))
    for text in legend(trial):
        say(console, text)
    console.print()
    if trial.chosen.unseen:
        say(console, unseen_title(trial))
        console.print(pairs([(_short(value), run) for value, run in trial.chosen.unseen], indent=2))
        console.print()
    say(console, f"Recommended: {trial.recommendation.code}", "bold")
    say(console, f"Why: {trial.recommendation.reason}.")


def heading(trial: Trial, *, is_assumed: bool) -> str:
    """Return a few words about the transcripts, the model and its price; `is_assumed`: the user named no model."""
    formats = ", ".join(f"{count:,} {name}" for name, count in trial.formats.items())
    price = trial.dollars_per_million
    cost = f"${price:g} for a million prompt tokens" if price is not None else "no price known; --price names it"
    kind = "tool loops" if trial.is_tool_loop else "chats"
    assumed = " was assumed, --model names another" if is_assumed else ""
    left_out = f", {trial.silent:,} without a reply left out" if trial.silent else ""
    return (
        f"Transcripts: {formats}{left_out}; model calls: {trial.everything.calls:,}, tried as {kind}; longest history: "
        f"{trial.longest_tokens:,} tokens. {trial.model}{assumed}: {cost}."
    )


def unseen_title(trial: Trial) -> str:
    """Return the title of the list of unseen values."""
    count = len(trial.chosen.bill.values_unseen)
    at = f"at {_named(trial.chosen)}{' tokens' if trial.chosen.dynamic_tokens else ''}"
    return f"Used by a reply and not in its prompt {at} ({count:,}, for example):"


def _named(row: BudgetTrial) -> str:
    return DEFAULTS if row.dynamic_tokens is None else f"{row.dynamic_tokens:,}"


COLUMNS: dict[str, str] = {
    "budget": "tokens of the conversation in a prompt",
    "cost": "of all prompts, with cached tokens at their price",
    "saved": "of what sending everything costs",
    "tokens": "of all prompts",
    "cached": "share of them that the provider's cache serves",
    "over": "calls whose newest messages alone exceed the budget",
    "lost": "things that compactions left out",
    "asked": "early statements in the prompt at the end, and brought back when asked for",
    "unseen": "values that replies used and their prompts did not show",
}
"""Meaning of each column, for the legend."""


def columns_of(trial: Trial) -> dict[str, str]:
    """Return the columns for which there are figures."""
    without = set() if any(row.asks for row in trial.budgets) else {"asked"}
    without |= set() if any(row.bill.values_used for row in trial.budgets) else {"unseen"}
    return {name: about for name, about in COLUMNS.items() if name not in without}


def lines(trial: Trial) -> list[list[str]]:
    """Return a row for each budget, and one for sending everything."""
    rows = []
    for row in trial.budgets:
        cells = {
            "budget": _named(row),
            **_of_bill(trial, row.bill),
            "over": f"{row.bill.over_budget:,}",
            "lost": f"{row.losses:,}",
            "asked": f"{row.shown_before}+{row.brought_back}/{row.asks}",
            "unseen": f"{len(row.bill.values_unseen)}/{row.bill.values_used}",
        }
        rows.append([cells[column] for column in columns_of(trial)])
    cells = {"budget": EVERYTHING, **_of_bill(trial, trial.everything)}
    return [*rows, [cells.get(column, "-") for column in columns_of(trial)]]


def _of_bill(trial: Trial, bill: Bill) -> dict[str, str]:
    dollars = trial.dollars(bill.priced)
    return {
        "cost": _rounded(bill.priced) if dollars is None else f"${dollars:,.2f}",
        "saved": f"{1 - bill.priced / trial.everything.priced:.0%}",
        "tokens": _rounded(bill.tokens),
        "cached": f"{bill.cached_tokens / max(1, bill.tokens):.0%}",
    }


def _rounded(tokens: float) -> str:
    """Return a number with three digits and a unit.

    >>> _rounded(1_187_605), _rounded(52_530), _rounded(812)
    ('1.19M', '52.5k', '812')
    """
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if tokens >= size:
            return f"{tokens / size:.3g}{unit}"
    return f"{tokens:.0f}"


def legend(trial: Trial) -> list[str]:
    """Return a line about each column; the line about losses says whether all originals resolve."""
    originals = sum(row.originals for row in trial.budgets)
    unresolved = sum(row.unresolved for row in trial.budgets)
    resolve = (
        f"their {originals:,} originals all resolve" if not unresolved else f"{unresolved:,} originals do not resolve"
    )
    abouts = columns_of(trial)
    abouts["lost"] += f"; {resolve}" if originals else ""
    if trial.dollars_per_million is None:
        abouts["cost"] += ", in tokens at full price"
    return [f"{name}: {about}" for name, about in abouts.items() if name != "budget"]


def page(trial: Trial, about: str, paths: Sequence[str]) -> str:
    """Return the result as one HTML file."""
    columns = [*map(_named, trial.budgets), EVERYTHING]
    priced = [*(row.bill.priced for row in trial.budgets), trial.everything.priced]
    price = trial.dollars_per_million
    unit, figure = ("tokens at full price", "{:,.0f}") if price is None else ("dollars", "${:,.2f}")
    title, dollars = f"Cost of all prompts in {unit}", 1.0 if price is None else price / 1_000_000
    rows = [Bar(name, (cost * dollars,)) for name, cost in zip(columns, priced, strict=True)]
    return render(
        "trial.html.j2",
        title="ctxsteward try",
        about=about,
        origin=f"{', '.join(paths)}; {utc_now()}; ctxsteward {version('ctxsteward')}",
        recommendation=trial.recommendation,
        columns=list(columns_of(trial)),
        legend=legend(trial),
        rows=lines(trial),
        chart_title=title,
        chart=bars(title, rows, figure=figure),
        unseen_title=unseen_title(trial) if trial.chosen.unseen else "",
        unseen=[(_short(value), run) for value, run in trial.chosen.unseen],
        skipped=[(Path(skipped.path).name, skipped.why) for skipped in trial.skipped],
    )


def _short(value: str) -> str:
    return value if len(value) <= VALUE_CHARS else f"{value[:VALUE_CHARS]}… ({len(value)} characters)"
