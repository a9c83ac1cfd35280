"""``ctxsteward costs``: what each compaction of a session cost and saved, against prices of its envelopes."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from click.testing import CliRunner

from ctxsteward.console.cli import cli
from ctxsteward.console.pages.cut_costs import cut_costs
from ctxsteward.envelope import Budgets, Envelope, EnvelopeBuilder, Prices, open_store, past_calls
from ctxsteward.envelope.building.past_calls import SOURCES, CallCompaction, PastCall
from ctxsteward.envelope.telemetry.spans import prefix_tokens
from ctxsteward.envelope.tokens.tokenizer import REPLY_PRIMING_TOKENS

MODEL = "claude-sonnet-5-5"
PRICES = Prices(cached=0.05)
TURNS = 60


def call(number: int, prompt: int, prefix: int, *made: tuple[int, int], **more: object) -> PastCall:
    compactions = tuple(CallCompaction(f"r{number}", pre, post, 0) for pre, post in made)
    given = sum(tokens for name, tokens in more.items() if name.removesuffix("_tokens") in SOURCES)
    more = {"live_tokens": prompt - given, **more}
    return PastCall.model_validate(
        {
            "number": number,
            "address": str(number),
            "position": number,
            "model": None,
            "prompt_tokens": prompt,
            "prefix_tokens": prefix,
            "compactions": compactions,
            **more,
        }
    )


@pytest.fixture(scope="module")
def talk(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, list[Envelope], list[int]]:
    """A store with a talk that was compacted; its envelopes, and for each the tokens of sending everything."""
    uri, built, everything = f"file:{tmp_path_factory.mktemp('costs')}", list[Envelope](), list[int]()
    builder = EnvelopeBuilder(MODEL, budgets=Budgets(dynamic_tokens=2_400, recall_fraction=0))
    with open_store(uri) as store:
        session = store.session("talk", system="You plan trips. " * 40, counter=builder.counter)
        said = 0
        for turn in range(TURNS):
            text = f"Day {turn}: the train to stop {turn * 7} leaves at {turn % 12 + 7}:40. " * 4
            said += session.append({"role": "user", "content": text}).tokens(builder.counter)
            built.append(builder.build(session))
            everything.append(built[-1].tokens - built[-1].section("dynamic").tokens + said)
            said += session.append({"role": "assistant", "content": f"Noted: {turn}. " * 6}).tokens(builder.counter)
    return uri, built, everything


def test_what_all_cuts_saved_is_the_bill_of_sending_everything_less_the_bill_that_was_paid(
    talk: tuple[str, list[Envelope], list[int]],
) -> None:
    uri, built, everything = talk
    builder = EnvelopeBuilder(MODEL)
    count, opening = builder.counter.text, builder.provider_tokens(REPLY_PRIMING_TOKENS)
    paid = PRICES.of(built[0].tokens, 0)
    paid += sum(PRICES.of(now.tokens, prefix_tokens(before, now, count)) for before, now in pairwise(built))
    whole = PRICES.of(everything[0], 0) + sum(PRICES.of(now, before - opening) for before, now in pairwise(everything))
    with open_store(uri) as store:
        cuts = cut_costs(past_calls(store, "talk"))

    assert len(cuts) > 3
    assert sum(cut.saved for cut in cuts) == pytest.approx(whole - paid, rel=0.02)
    assert {cut.broke_at for cut in cuts} <= {"task", "bullets"}


def test_each_cut_is_priced_up_to_the_next_one_and_then_as_cached_tokens() -> None:
    calls = [
        call(1, 2_000, 0, system_tokens=1_500),
        call(2, 2_500, 2_000, system_tokens=1_500),
        call(3, 2_000, 1_500, (1_500, 500), system_tokens=1_500, bullets_tokens=100, broke_in="dynamic"),
        call(4, 2_500, 2_000, system_tokens=1_500, new_tokens=500),
        call(5, 2_000, 1_600, (1_000, 500), system_tokens=1_500, bullets_tokens=100, broke_in="dynamic"),
        call(6, 2_500, 2_000, system_tokens=1_500, new_tokens=500),
    ]
    first, second = cut_costs(calls, price=2.0)

    # Without the first cut: 3,000 tokens of which 2,500 are cached, then 3,500 of which 3,000 are.
    at_once = (1_500 * 0.1 + 500 * 1.25) - (2_500 * 0.1 + 500 * 1.25)
    saved = -at_once + 100 + 100 + 100
    assert (first.call, first.broke_at, first.removed_tokens, first.rewritten_tokens) == (3, "bullets", 1_000, 1_000)
    assert (first.rewritten, first.saved, first.predicted) == (at_once, saved, saved)
    assert first.dollars == pytest.approx(saved * 2 / 1e6)
    assert (first.break_even_call, first.paid_back_call) == (3, 3)
    # Without the second: 2,500 of which 2,500 are cached.
    at_once = (1_600 * 0.1 + 400 * 1.25) - 2_500 * 0.1
    assert (second.rewritten, second.saved) == (at_once, 50 - at_once)
    assert (second.break_even_call, second.paid_back_call) == (5 + 9, None)


def test_recalled_text_counts_against_the_cut_that_made_it_necessary() -> None:
    first, cut_call = call(1, 3_000, 0), call(2, 2_000, 1_100, (3_000, 1_900), system_tokens=1_100)
    (cut,) = cut_costs([first, cut_call, call(3, 2_400, 1_100, system_tokens=1_100, recall_tokens=400)])
    (other,) = cut_costs([first, cut_call, call(3, 2_000, 2_000, system_tokens=1_100)])

    assert cut.predicted == other.predicted
    assert (cut.saved + cut.recall, other.recall) == (other.saved, 0)
    # 400 recalled tokens were written, and 900 behind them that the cache would have served.
    assert cut.recall == pytest.approx(400 * 1.25 + 900 * (1.25 - 0.1))


def test_recall_costs_what_is_written_behind_it_when_it_changes_and_little_while_it_stays() -> None:
    """A cut at call 2; recalled there, kept at call 3, gone at call 4."""
    calls = [
        call(1, 3_000, 0),
        call(2, 2_400, 1_100, (3_000, 1_900), system_tokens=1_100, recall_tokens=400, live_tokens=900),
        call(3, 2_600, 2_400, system_tokens=1_100, recall_tokens=400, live_tokens=1_100, new_tokens=200),
        call(4, 2_300, 1_100, system_tokens=1_100, live_tokens=1_200, new_tokens=100),
    ]
    (cut,) = cut_costs(calls)

    assert cut.recall == pytest.approx(400 * 1.25 + 400 * 0.1 + 1_100 * (1.25 - 0.1))
    assert cut.saved + cut.recall == pytest.approx(cut.predicted)


def test_a_cut_below_the_providers_block_never_pays_and_one_of_meta_is_none() -> None:
    calls = [call(1, 2_000, 0), call(2, 2_050, 2_000), call(3, 900, 300, (2_000, 850))]
    (cut,) = cut_costs(calls)
    assert (cut.break_even_call, cut.expected < 0) == (None, True)
    made = CallCompaction("r", 100, 50, 0, "meta")
    assert cut_costs([call(1, 2_000, 0), call(2, 2_050, 2_000).model_copy(update={"compactions": (made,)})]) == ()


def test_the_command_prints_a_row_for_each_cut_and_money_at_the_published_price(
    talk: tuple[str, list[Envelope], list[int]],
) -> None:
    uri, built, _ = talk
    shown = CliRunner().invoke(cli, ["costs", "talk", "--store", uri])
    told = json.loads(CliRunner().invoke(cli, ["costs", "talk", "--store", uri, "--json"]).output)
    made = [number for number, envelope in enumerate(built, 1) if envelope.reports]

    assert shown.exit_code == 0, shown.output
    assert [cut["call"] for cut in told["cuts"]] == made
    assert sum(line.split()[:1] == [str(number)] for number in made for line in shown.output.splitlines()) == len(made)
    assert f"{len(built)} calls, {len(made)} compactions" in shown.output
    assert told["dollars"] == pytest.approx(told["priced_tokens"] * 2.0 / 1e6, abs=1e-5)
    assert f"{told['saved']:,.0f} prompt tokens at full price ($ {told['dollars']:,.4f} and $" in shown.output


def test_a_session_that_is_not_there_is_refused() -> None:
    result = CliRunner().invoke(cli, ["costs", "x", "--store", "memory:"])
    assert (result.exit_code, "session 'x'" in result.output) == (2, True), result.output
