"""The citations suite: red over forged, missing or wrong references and altered quotes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ctxsteward.envelope import Budgets, EnvelopeBuilder, Session
from ctxsteward.envelope.layout.composition import DynamicLayout
from ctxsteward.envelope.layout.fragments import DerivedText, Fragment
from ctxsteward.envelope.testing import FirstLine, memory_store
from ctxsteward.evals.suites import citation_checks as citing
from ctxsteward.evals.suites.citation_checks import outputs_of
from ctxsteward.evals.suites.citations import make
from ctxsteward.evals.suites.kit.suite import Score, drawn
from ctxsteward.schemas import Bullet, CompressionReport, Loss, Ref
from ctxsteward.schemas.message import Wire


def test_scenarios_have_outputs_of_many_kinds() -> None:
    made = [make(draw) for draw in drawn("citations", "docs", 9)]
    assert {one.tags["dialect"] for one in made} == {"openai", "anthropic"}
    texts = [output.text for one in made for output in outputs_of(one.messages)]
    assert min(map(len, texts)) == 0
    assert max(map(len, texts)) > 2_000
    assert len(set(texts)) < len(texts), "some are said twice"
    assert any(output.place.part > 1 for one in made for output in outputs_of(one.messages))
    asked = {ask.question for draw in drawn("citations", "ci", 9) for ask in make(draw).asks}
    assert asked.isdisjoint(ask.question for one in made for ask in one.asks), "the splits share no phrasing"


# -- summarizers that go wrong ----------------------------------------------------------------------------------


def test_bullets_that_quote_another_message_than_they_cite_are_found() -> None:
    said = [said_by("user", "The port is 5432."), said_by("assistant", "Noted: “it is sealed”.")]
    right, wrong = Bullet(text="The port is 5432.", citations=("§1",)), Bullet(text="it is sealed", citations=("§1",))
    assert values(citing.bullets_quote((right, wrong), said, "here", verbatim=True)) == [1, 0]


# -- each figure can fail ---------------------------------------------------------------------------------------


def said_by(role: str, text: str) -> Wire:
    return {"role": role, "content": text}


def values(scores: Iterable[Score]) -> list[float]:
    return [score.value for score in scores]


def conversation(*texts: str) -> tuple[Session, list[Wire]]:
    session, said = memory_store().session("s"), []
    for number, text in enumerate(texts):
        said.append(said_by(("user", "assistant")[number % 2], text))
        session.append(said[-1], ts="2026-03-01T09:00:00Z")
    return session, said


def test_a_reference_that_gives_other_bytes_is_found() -> None:
    session, said = conversation("one", "two")
    altered = [said[0], said_by("assistant", "Two")]
    refs = (Ref(1), Ref(2), Ref(3))
    assert values(citing.resolves("citations_resolve", refs, session, said, "here")) == [1, 1, 0]
    assert values(citing.resolves("citations_resolve", refs, session, altered, "here")) == [1, 0, 0]


def test_an_output_under_another_number_is_found_every_way_it_is_named() -> None:
    session = memory_store().session("s")
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    wires = [said_by("user", "go"), {"role": "assistant", "content": None, "tool_calls": [call]}]
    session.extend([*wires, {"role": "tool", "tool_call_id": "c", "content": "it is 7"}])
    assert values(citing.output_again(1, "it is 7", Ref(3, 1), session, "here")) == [1, 1, 1, 1]
    assert values(citing.output_again(1, "it is 8", Ref(3, 1), session, "here")) == [0, 0, 0, 0]
    assert values(citing.output_again(2, "it is 7", Ref(3, 1), session, "here")) == [0, 0, 1, 0]


def test_a_long_original_is_read_piece_by_piece() -> None:
    session, said = conversation("long " * 900, "short")
    assert citing.read(session, "§1") == said[0]["content"]
    assert citing.range_again(1, 2, session, said, "here").value == 1
    assert citing.range_again(1, 2, session, [said[1], said[0]], "here").value == 0


def test_losses_with_another_span_are_found() -> None:
    said = [said_by("user", "The port is 5432, and stays.")]

    def scores(*losses: Loss) -> list[float]:
        report = CompressionReport(
            id="a",
            section="dynamic",
            pre_tokens=9,
            post_tokens=1,
            losses=losses,
            kept_refs=(),
            policy="p",
            source_addresses=(),
            artifact="a",
            created_at=None,
        )
        return values(citing.losses_quote(report, said, "here", verbatim=True))

    assert scores(Loss(kind="number", text="5432", ref="§1", span=(12, 16))) == [1]
    assert scores(Loss(kind="number", text="5432", ref="§1", span=(11, 15))) == [0]
    assert scores(Loss(kind="fact", text="The port is 5432", ref="§1")) == [1]
    assert scores(Loss(kind="fact", text="The port is 9999", ref="§1")) == [0]


def test_windows_that_show_something_else_are_found() -> None:
    session, said = conversation(*(f"message {n} about the valve, " + "word " * 40 for n in range(40)))
    builder = EnvelopeBuilder(tokenizer="o200k_base", budgets=Budgets(dynamic_tokens=1_500), summarizer=FirstLine())
    session.append(said_by("user", "what about the valve?"), ts="2026-03-02T09:00:00Z")
    said.append(said_by("user", "what about the valve?"))
    envelope = builder.build(session)
    assert envelope.reports
    days = ["2026-03-01"] * 40 + ["2026-03-02"]

    def green(**layout: object) -> bool:
        changed = replace(envelope, dynamic=replace(envelope.dynamic, **layout))  # type: ignore[arg-type]
        found: list[Score] = [
            *citing.bullets_cited(changed, session, "here"),
            *citing.recalled_quote(changed, said, session, "here"),
            *citing.days_again(changed, days, session, said, "here"),
        ]
        return all(score.value == 1 for score in found)

    assert citing.range_again(40, 41, session, said, "here").value == 1
    assert citing.range_again(40, 42, session, said, "here").value == 0
    layout: DynamicLayout = envelope.dynamic
    assert layout.bullets is not None
    assert layout.context is not None
    assert green()
    assert not green(bullets=rewritten(layout.bullets, " §", " $"))
    assert not green(bullets=None)
    assert not green(context=rewritten(layout.context, "about the valve", "about the pump"))
    assert not green(context=rewritten(layout.context, "2026-03-01 §1-", "2026-03-01 §2-"))
    lost = citing.lost_in(envelope.reports)
    assert citing.accounted(envelope, session, lost, "here").value == 1
    session.append(said_by("assistant", "neither shown nor cited"))
    assert citing.accounted(envelope, session, lost, "here").value == 0


def rewritten(fragment: Fragment, old: str, new: str) -> Fragment:
    assert old in fragment.text
    return Fragment(
        fragment.kind, (DerivedText(fragment.text.replace(old, new)),), 0, b"", fragment.name, fragment.refs
    )
