"""The observation log of a session: its place and budget, what never changes, and what becomes of a full one."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from ctxsteward.envelope import (
    Budgets,
    Envelope,
    EnvelopeBuilder,
    NewMessage,
    Session,
    SummaryAhead,
    open_store,
    rebuild,
)
from ctxsteward.envelope.compaction.ahead import _Base
from ctxsteward.envelope.compaction.observation_log import MOST_A_MESSAGE, fault_of_log, observed
from ctxsteward.envelope.layout import cited, observations_text, rows_of, unfenced
from ctxsteward.envelope.tokens import Counter, load_tokenizer
from ctxsteward.evals.prompt_cost import anthropic_faults, openai_faults
from ctxsteward.schemas import (
    Bullet,
    InvalidBudget,
    Message,
    Ref,
    Reflection,
    SourceMessage,
    Summarizer,
    SummarizerInput,
    Summary,
)
from ctxsteward.store import MasterKeys, ObservationsAppended, forget, from_record
from ctxsteward.store.journal import to_record
from ctxsteward.summarizers import extractive
from ctxsteward.summarizers.models import ObservationLog

KEYS = MasterKeys(b"observation log".ljust(32, b"."))
BUDGETS = Budgets(dynamic_tokens=2_000)


class Observer:
    """Observes every message in its first words, and merges the two oldest where the log is deep."""

    observes = True

    def __init__(self, *, merges: bool = True) -> None:
        self.merges, self.asked = merges, list[SummarizerInput]()

    def __call__(self, source: SummarizerInput, *, budget_tokens: int, prefix: Any = None) -> Summary:
        self.asked.append(source)
        made = extractive(source, budget_tokens=budget_tokens)
        fresh = tuple(
            Bullet(text=" ".join(item.message.text.split()[:8]) or "nothing", citations=(item.ref,), value=number)
            for number, item in enumerate(source.unobserved)
        )
        told = sum(source.count_tokens(bullet.text) + 8 for bullet in source.observations)
        merged: tuple[Reflection, ...] = ()
        if self.merges and told > 0.7 * source.observations_tokens:
            text = f"both: {source.observations[0].text[:20]}"
            merged = (Reflection(observation=Bullet(text=text, citations=("§1",), value=99), merges=(0, 1)),)
        return made.model_copy(update={"observed": fresh, "reflected": merged})


def opened(id: str = "s", *, store: Any = None) -> Session:
    return (store or open_store("memory:", keys=KEYS)).session(id, system="You plan trips.")


def builder(summarizer: Summarizer | None = None, budgets: Budgets = BUDGETS, **given: Any) -> EnvelopeBuilder:
    return EnvelopeBuilder("gpt-4o", budgets=budgets, summarizer=summarizer or Observer(), **given)


def turn(session: Session, number: int, who: str | None = None) -> None:
    text = f"Order OPS-{number} costs {number} euros. " + "Some more talk about it. " * (10 + number * 7 % 30)
    session.append({"role": "user", "content": text}, ts=f"2026-01-{number % 28 + 1:02d}T09:00:00", principal=who)


def talk(session: Session, built: EnvelopeBuilder, turns: int, first: int = 0) -> list[Envelope]:
    envelopes = []
    for number in range(first, first + turns):
        turn(session, number)
        envelopes.append(built.build(session))
        session.append({"role": "assistant", "content": "Noted, it is in the plan. " * 6})
    return envelopes


def log_events(session: Session) -> list[ObservationsAppended]:
    return [event for event in session.replica.log.read(0) if isinstance(event, ObservationsAppended)]


def rows(envelope: Envelope) -> list[str]:
    log = envelope.dynamic.observations
    return [] if log is None else rows_of(unfenced(envelope.nonce, log.text).text)


# -- its place --------------------------------------------------------------------------------------------------------


def test_it_stands_behind_task_and_bullets_and_before_all_that_was_said() -> None:
    session = opened()
    envelope = talk(session, builder(Observer(merges=False)), 30)[-1]
    kinds = [fragment.kind for fragment in envelope.dynamic.fragments]
    assert kinds[:4] == ["group", "bullets", "observations", "group"]
    assert envelope.dynamic.fragments[0].refs == (1,)


def test_without_a_summarizer_that_keeps_one_every_byte_is_as_before() -> None:
    plain, other = opened("plain"), opened("plain")
    for one, built in ((plain, builder(extractive)), (other, builder(extractive, replace_log(BUDGETS, 700)))):
        talk(one, built, 30)
    assert plain.state.observations == ()
    assert "observed_to" not in plain.reports()[-1].checkpoint
    assert [
        (event.bullets, event.kept, event.report.losses, event.report.post_tokens) for event in plain.reports()
    ] == [(event.bullets, event.kept, event.report.losses, event.report.post_tokens) for event in other.reports()]
    assert "observations_tokens" not in str(BUDGETS.document())


def replace_log(budgets: Budgets, tokens: int) -> Budgets:
    return Budgets(dynamic_tokens=budgets.dynamic_tokens, observations_tokens=tokens)


def test_each_row_says_who_is_to_be_believed_and_what_matters() -> None:
    session = opened()

    def observing(source: SummarizerInput, *, budget_tokens: int) -> Summary:
        refs = [item.ref for item in source.unobserved]
        fresh = [Bullet(text=f"2026-01-01: seen {ref}", citations=(ref,)) for ref in refs[:2]]
        fresh.append(Bullet(text="never fly", citations=tuple(refs[:3]), kind="constraint"))
        return extractive(source, budget_tokens=budget_tokens).model_copy(update={"observed": tuple(fresh)})

    observing.observes = True  # type: ignore[attr-defined]
    calls = [{"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}]
    session.append({"role": "user", "content": "Look it up."})
    session.append({"role": "assistant", "content": "I look.", "tool_calls": calls})
    session.append({"role": "tool", "tool_call_id": "c1", "content": "It says: never fly."})
    session.append({"role": "assistant", "content": "Done."})
    built = builder(observing)
    assert built.observe(session) == (3, ())
    assert rows(built.build(session)) == [
        "- 2026-01-01: seen … §1", "- (assistant) 2026-01-01: seen … §2", "- ! (tool) never fly §1 §2 §3",
    ]  # fmt: skip


# -- frozen -----------------------------------------------------------------------------------------------------------


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.sampled_from(["turn", "turn", "turn", "night", "reread"]), min_size=10, max_size=60),
    st.integers(150, 700), st.booleans(),
)  # fmt: skip
def test_between_reflections_its_bytes_only_grow_at_their_end_and_it_keeps_its_budget(
    steps: list[str], log_tokens: int, merges: bool
) -> None:
    store = open_store("memory:", keys=KEYS)
    session, built = opened(store=store), builder(Observer(merges=merges), replace_log(BUDGETS, log_tokens))
    shown: list[tuple[int, str]] = []
    for number, step in enumerate(steps):
        if step == "night":
            built.observe(session)
        elif step == "reread":
            session = store.session(session.id)
        turn(session, number)
        envelope = built.build(session)
        session.append({"role": "assistant", "content": f"Noted {number}."})
        rewritten = sum(event.standing is not None for event in log_events(session))
        log = envelope.dynamic.observations
        shown.append((rewritten, log.text.rpartition("\n</")[0] if log else ""))
        assert envelope.dynamic.observations_tokens <= log_tokens
        must_fit = envelope.sections["dynamic"].tokens <= BUDGETS.dynamic_tokens
        assert must_fit or any(f.kind == "compaction_refused" for f in envelope.findings)
        assert not openai_faults(envelope.render("openai-chat"))
        assert not anthropic_faults(envelope.render("anthropic"))
    for (before, old), (after, new) in pairwise(shown):
        if before == after:
            assert new.startswith(old)


def test_no_message_is_observed_twice_and_none_is_left_out() -> None:
    session, observer = opened(), Observer(merges=False)
    built = builder(observer)
    talk(session, built, 20)
    built.observe(session)
    talk(session, built, 20, first=20)
    while built.observe(session)[0]:
        pass
    given = {id(source): source.unobserved for source in observer.asked}.values()
    refs = [Ref.parse(item.ref).ordinal for items in given for item in items]
    assert refs == list(range(1, len(session) + 1))


def test_an_observed_message_leaves_the_window_later_without_another_event() -> None:
    session = opened()
    built = builder(Observer(merges=False), Budgets(dynamic_tokens=8_000, observations_tokens=3_000))
    talk(session, built, 4)
    assert built.observe(session)[0] == 8
    assert built.observe(session) == (0, ())
    assert (len(log_events(session)), session.reports(), len(session.state.groups)) == (1, [], 8)


# -- reflected, and full ----------------------------------------------------------------------------------------------


def test_a_reflection_is_one_event_with_both_generations_and_the_report_counts_it() -> None:
    session, built = opened(), builder(Observer())
    envelopes = talk(session, built, 60)
    event = next(event for event in log_events(session) if event.merged)
    old, new = event.merged[0], (event.standing or ())[0]
    assert new.text.startswith("both: ")
    assert new.citations == tuple(f"§{n}" for n in sorted({Ref.parse(r).ordinal for b in old for r in b.citations}))
    assert [session.resolve(ref).text for ref in new.citations]
    counts = [report.observations for one in envelopes for report in one.reports if report.observations]
    first = next(count for count in counts if count.reflections)
    assert (first.merged, first.reflections) == (2, 1)
    assert sum(count.appended for count in counts) == sum(len(event.appended) for event in log_events(session))


def test_a_full_log_that_nobody_merges_loses_its_least_valuable_old_lines_at_once_and_then_grows_again() -> None:
    session, built = opened(), builder(Observer(merges=False), replace_log(BUDGETS, 300))
    envelopes = talk(session, built, 60)
    counts = [report.observations for one in envelopes for report in one.reports if report.observations]
    left = [count.left for count in counts]
    assert any(left)
    assert all(0 < count.tokens <= 300 for count in counts)


def test_a_smaller_budget_cuts_the_log_once() -> None:
    session = opened()
    talk(session, builder(Observer(merges=False)), 40)
    small = builder(extractive, replace_log(BUDGETS, 120))
    first, second = small.build(session), small.build(session)
    assert 0 < first.dynamic.observations_tokens <= 120
    assert first.address == second.address
    assert log_events(session)[-1].appended == ()


@pytest.mark.parametrize("tokens", [0, -1, 451, 900])
def test_a_budget_over_half_of_dynamic_or_of_nothing_is_refused(tokens: int) -> None:
    with pytest.raises(InvalidBudget, match="observations_tokens"):
        Budgets(dynamic_tokens=900, observations_tokens=tokens)


@pytest.mark.parametrize(
    "fault",
    [
        {"observed": (Bullet(text="made up", citations=("§999",)),)},
        {"reflected": (Reflection(observation=Bullet(text="x", citations=("§1",)), merges=(0, 500)),)},
    ],
)
def test_a_log_that_is_unsound_is_not_written(fault: dict[str, Any]) -> None:
    def broken(source: SummarizerInput, *, budget_tokens: int) -> Summary:
        return extractive(source, budget_tokens=budget_tokens).model_copy(update={"observed": (), **fault})

    broken.observes = True  # type: ignore[attr-defined]
    session = opened()
    envelopes = talk(session, builder(broken), 30)
    assert (log_events(session), session.reports()) == ([], [])
    assert any(finding.kind == "compaction_refused" for one in envelopes for finding in one.findings)


# -- the session's log ------------------------------------------------------------------------------------------------


def test_every_past_envelope_rebuilds_and_a_fresh_reader_has_the_same_log() -> None:
    store = open_store("memory:", keys=KEYS)
    session, built = opened(store=store), builder(Observer())
    envelopes = talk(session, built, 40)
    built.observe(session)
    envelopes += talk(session, built, 3, first=40)
    assert envelopes[-1].dynamic.observations is not None
    for envelope in envelopes[::5]:
        again = rebuild(store, envelope.address)
        assert (again.address, again.render("anthropic")) == (envelope.address, envelope.render("anthropic"))
    fresh = store.session(session.id)
    fresh.refresh()
    assert (fresh.state.observations, fresh.state.observed_to) == (
        session.state.observations,
        session.state.observed_to,
    )


def test_a_fork_and_a_followed_branch_go_on_with_the_log_as_it_was() -> None:
    session, built = opened(), builder(Observer(merges=False), Budgets(dynamic_tokens=8_000))
    talk(session, built, 6)
    built.observe(session)
    stood = session.state.observations
    fork = session.fork()
    talk(fork, built, 3, first=6)
    built.observe(fork)
    assert fork.state.observations[: len(stood)] == stood
    assert len(fork.state.observations) == len(stood) + 6
    assert session.state.observations == stood
    history = [entry.message.wire for entry in session.entries()]
    branch = session.follow([*history[:4], {"role": "user", "content": "Something else."}])
    assert len(branch.state.observations) <= len(stood)
    assert all(Ref.parse(ref).ordinal <= len(branch) for one in branch.state.observations for ref in one.citations)


def test_whoever_is_forgotten_leaves_the_log_its_checkpoints_and_what_was_merged() -> None:
    store = open_store("memory:", keys=KEYS)
    session, built = opened(store=store), builder(Observer())
    for number in range(50):
        turn(session, number, who="ann" if number % 2 else "bob")
        built.build(session)
        session.append({"role": "assistant", "content": "Noted."})
    assert any(event.merged for event in log_events(session))
    forget(store, principal="ann", who="ops", why="asked", when="2026-02-01T00:00:00+00:00")
    bodies = "".join(row.body for row in session.journal.read(session.key, 0))
    assert not re.search(r"OPS-\d*[13579]\b", bodies)
    assert re.search(r"OPS-\d*[02468]\b", bodies)
    again = builder(Observer()).build(store.session("s"))
    assert not re.search(r"OPS-\d*[13579]\b", again.section("dynamic").text)
    assert [cited(row).citations for row in rows(again)]


# -- made ahead, and by the shipped one -------------------------------------------------------------------------------


def test_beside_the_session_it_lands_with_its_compaction_and_what_came_late_is_observed_the_next_time() -> None:
    session, observer = opened(), Observer(merges=False)
    ahead = SummaryAhead(observer)
    built = builder(extractive, ahead=ahead)
    for number in range(40):
        turn(session, number)
        built.build(session)
        if number != 12:
            assert ahead.wait(10)
        session.append({"role": "assistant", "content": "Noted, it is in the plan. " * 6})
    counts = [event.report.observations for event in session.reports()]
    assert sum(count.appended for count in counts if count) >= 10
    assert session.state.observed_to >= session.state.compacted_to - 20


def test_the_extractive_log_is_dated_cited_and_says_what_its_bullets_leave_out() -> None:
    session, built = opened(), builder(ObservationLog())
    envelope = talk(session, built, 40)[-1]
    lines = [cited(row) for row in rows(envelope)]
    assert len(lines) >= 5
    assert all(re.match(r"(! )?(\(assistant\) )?2026-01-\d\d: ", line.text) and line.citations for line in lines)
    counter = Counter(load_tokenizer("o200k_base"))
    log = envelope.dynamic.observations
    assert log is not None
    assert log.tokens == counter.framed(log.text) <= 500


def test_ids_of_messages_sent_again_and_a_log_do_not_meet() -> None:
    """A batch that is appended again is known, and what was observed of it stays observed."""
    session, built = opened(), builder(Observer(merges=False), Budgets(dynamic_tokens=8_000))
    batch = [NewMessage(message={"role": role, "content": f"{role} {n}"}, id=f"{role}{n}")
             for n in range(4) for role in ("user", "assistant")]  # fmt: skip
    session.extend(batch)
    assert built.observe(session)[0] == 8
    session.extend(batch)
    assert built.observe(session)[0] == 0
    assert replace(session.state.copy(), session="s").observed_to == 8


@pytest.mark.parametrize("standing", [None, (), (Bullet(text="b", citations=("§2",), trust="assistant"),)])
def test_its_record_holds_the_whole_event(standing: tuple[Bullet, ...] | None) -> None:
    merged = ((Bullet(text="c", citations=("§1",)), Bullet(text="d", citations=("§3",))),) if standing else ()
    event = ObservationsAppended(
        appended=(Bullet(text="a", citations=("§4", "§5.1"), kind="decision", value=1.5, trust="tool_external"),),
        upto=5, standing=standing, merged=merged,
    )  # fmt: skip
    assert from_record(to_record(event)) == event


# -- a full log, and what a summarizer may do to it -----------------------------------------------------------------

COUNTER = Counter(load_tokenizer("o200k_base"))
LINES = tuple(
    Bullet(text=f"Order OPS-{n} costs {n} euros.", citations=(f"§{n + 1}",), value=float(n)) for n in range(12)
)
ASKED = SummarizerInput(
    messages=(),
    unobserved=(SourceMessage(ref="§20", message=Message.from_wire({"role": "user", "content": "And now?"})),),
    observations=LINES,
    observations_tokens=400,
)


def noted(summary: Summary, source: SummarizerInput = ASKED) -> ObservationsAppended:
    state = opened().state
    state.observations = source.observations
    found = observed(state, summary, source, COUNTER)
    assert found is not None
    return found


def test_a_line_that_is_larger_than_half_the_log_leaves_the_others_alone() -> None:
    huge = Bullet(text="word " * 600, citations=("§20",), value=0.0)
    event = noted(Summary(bullets=(), observed=(huge,)))
    assert (event.appended, event.standing) == ((), None)


def test_a_full_log_is_cut_to_half_the_least_valuable_first_whatever_its_length() -> None:
    many = tuple(Bullet(text=f"Order OPS-{n} costs euros.", citations=("§20",), value=5.0) for n in range(20))
    event = noted(Summary(bullets=(), observed=many))
    assert event.standing is not None
    assert [one.value for one in event.standing] == sorted(one.value for one in LINES)[
        len(LINES) - len(event.standing) :
    ]
    state = opened().state
    text = observations_text(state.nonce, (*event.standing, *event.appended))
    assert COUNTER.framed(text) <= ASKED.observations_tokens


def test_a_summarizer_observes_no_more_than_some_lines_a_message() -> None:
    flood = tuple(Bullet(text=f"n{n}", citations=("§20",)) for n in range(5_000))
    event = noted(Summary(bullets=(), observed=flood), replace(ASKED, observations_tokens=100_000))
    assert len(event.appended) == MOST_A_MESSAGE


def test_an_empty_line_stands_for_nothing() -> None:
    blank = Reflection(observation=Bullet(text="  ", citations=("§1",)), merges=(0, 1))
    assert "empty line" in fault_of_log(Summary(bullets=(), observed=(), reflected=(blank,)), ASKED)


def test_a_summary_that_was_begun_on_another_log_is_not_used() -> None:
    session = opened()
    before = _Base.of(session)
    session.state.observations = LINES
    cut = _Base.of(session)
    session.state.observations = LINES[6:]
    assert len({before, cut, _Base.of(session)}) == 3


def test_a_smaller_builder_cuts_the_log_and_says_so() -> None:
    session = opened()
    large = EnvelopeBuilder("gpt-4o", budgets=Budgets(dynamic_tokens=8_000), summarizer=Observer(merges=False))
    for number in range(60):
        session.append(
            {"role": ("user", "assistant")[number % 2], "content": f"Order OPS-{number} costs {number} euros."}
        )
    large.observe(session)
    stood = len(session.state.observations)
    small = EnvelopeBuilder("gpt-4o", budgets=Budgets(dynamic_tokens=900), summarizer=Observer(merges=False))
    (found,) = [one for one in small.build(session).findings if one.kind == "observations_trimmed"]
    assert f"of {stood} lines left it" in found.text
    assert 0 < len(session.state.observations) < stood
