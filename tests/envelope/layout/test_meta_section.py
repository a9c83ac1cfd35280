"""What meta was left without has a report, once; whoever chooses the records, they stay whole, and rebuild."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from ctxsteward.envelope import Budgets, EnvelopeBuilder, Profile, Store, open_store, rebuild
from ctxsteward.envelope.layout.meta_section import MetaLayout, by_value, lay_meta
from ctxsteward.envelope.recall.model_tools import resolve_reference
from ctxsteward.envelope.testing import CharTokenizer, FirstLine
from ctxsteward.envelope.tokens.tokenizer import Counter
from ctxsteward.schemas import BudgetExceeded, Bullet, InputError, ReferenceNotFound, SummarizerInput, Summary
from ctxsteward.schemas.errors import InvalidReference
from ctxsteward.schemas.profile import MetaRecord, ProfileEntry
from ctxsteward.store.maintenance.fsck import fsck

RECORDS = tuple(
    MetaRecord(id=f"r-{n}", text=f"Insight number {n} of the desk.", sources=(f"s-{n}§1",)) for n in range(1, 5)
)
PROFILE = Profile.from_document(Profile.from_text("Be calm.", name="support").model_copy(update={"meta": RECORDS}))
BUDGETS = Budgets(system_tokens=500, meta_tokens=50, dynamic_tokens=2_000)


def builder(**more: Any) -> EnvelopeBuilder:
    return EnvelopeBuilder(tokenizer="o200k_base", budgets=BUDGETS, now=lambda: "2026-11-20T02:00:00Z", **more)


def asked(store: Store, id: str = "s") -> Any:
    session = store.session(id, profile=PROFILE)
    session.append({"role": "user", "content": "Hello."}, id="first")
    return session


def last_two(source: SummarizerInput, *, budget_tokens: int) -> Summary:
    """Keeps the last two records; its own words do not matter."""
    refs = [item.ref for item in source.messages[-2:]]
    return Summary(bullets=tuple(Bullet(text="anything", citations=(ref,)) for ref in refs))


def test_what_meta_was_left_without_is_reported_once() -> None:
    store = open_store("memory:")
    session = asked(store)
    envelope = builder().build(session)
    (report,) = envelope.reports
    assert report.section == "meta"
    assert [loss.ref for loss in report.losses] == ["meta:r-4", "meta:r-3"]
    assert report.kept_refs == ("meta:r-1", "meta:r-2")
    assert report.post_tokens == envelope.section("meta").tokens <= 50 < report.pre_tokens
    assert (report.policy, report.created_at, len(report.source_addresses)) == ("value", "2026-11-20T02:00:00Z", 2)
    assert all(str(number) in report.losses[0].text for number in (50, report.pre_tokens))
    session.append({"role": "user", "content": "Again."})
    assert builder().build(session).reports == ()
    assert builder().build(store.session("s")).reports == ()
    assert store.session("s").meta_reports() == [report] == [store.report(report.id)]
    assert [each.report for each in store.session("s").reports()] == [report]


def test_another_budget_is_another_report() -> None:
    session = asked(open_store("memory:", now=lambda: "2026-11-21T02:00:00Z"))
    builder().build(session)
    less = EnvelopeBuilder(tokenizer="o200k_base", budgets=BUDGETS.model_copy(update={"meta_tokens": 40}))
    (report,) = less.build(session).reports
    assert (report.kept_refs, report.created_at) == (("meta:r-1",), "2026-11-21T02:00:00Z")
    assert len(session.meta_reports()) == 2
    assert builder().build(session).reports == ()


def test_what_is_left_out_resolves_and_holds_no_text_in_the_report() -> None:
    session = asked(open_store("memory:"))
    (report,) = builder().build(session).reports
    assert "Insight" not in report.model_dump_json()
    assert session.resolve(report.losses[0].ref).text == "r-4: Insight number 4 of the desk. [s-4§1]"
    with pytest.raises(ReferenceNotFound, match="no such record"):
        session.resolve("meta:r-9")


CLAIMS = tuple(
    MetaRecord(id=id, text=text, sources=("hana-2§5",))
    for id, text in (
        ("04bb7be2114d5810", "Use no emojis."),
        ("04bb70e2114d5810", "Prices are in euro."),
        ("1234a0e2114d5810", "Weights are in kg."),
        ("cafe00e2114d5810", "Answer in German."),
        ("cafe", "Answer in prose."),
        ("opening-hours", "Open from nine to five."),
    )
)


def held(records: tuple[MetaRecord, ...] = CLAIMS) -> Any:
    session = open_store("memory:").session("s", profile=PROFILE.model_copy(update={"meta": records}))
    session.extend({"role": "user", "content": f"Message {number}."} for number in range(1, 4))
    return session


@pytest.mark.parametrize("write", ["{}", "meta:{}", " [{}] ", "meta:[{}]"])
def test_what_a_prompt_calls_a_record_resolves_for_the_application_and_for_the_model(write: str) -> None:
    session = held()
    lines = EnvelopeBuilder(tokenizer="o200k_base").build(session).section("meta").text.splitlines()[1:]
    references = [line.rpartition(" [")[2][:-1] for line in lines]
    assert references == ["04bb7b", "04bb70", "1234a", "cafe0", "cafe", "opening-hours"]
    for reference, record in zip(references, CLAIMS, strict=True):
        told = f"{record.id}: {record.text} [hana-2§5]"
        assert session.resolve(write.format(reference)).text == told
        assert resolve_reference(session, write.format(reference)) == told
        assert session.resolve(f"meta:{record.id}").text == told


@pytest.mark.parametrize(
    ("ref", "error", "says"),
    [
        ("04bb", InvalidReference, "2 records begin so; write meta:04bb7be2114d5810 or meta:04bb70e2114d5810"),
        ("meta:04bb7", InvalidReference, "2 records begin so"),
        ("meta:04b", ReferenceNotFound, "no such record"),
        ("meta:beef", ReferenceNotFound, "no such record"),
        ("meta:open", ReferenceNotFound, "no such record"),
        ("beef", InvalidReference, "write §128, 128, §128.2, tool:3 or meta:ID"),
        ("[04b]", InvalidReference, "is not a reference"),
        ("[]", InvalidReference, "is not a reference"),
        ("[2]", InvalidReference, "is not a reference"),
        ("1234", ReferenceNotFound, "it holds §1 to §3"),
    ],
)
def test_a_reference_to_no_record_or_to_several_says_so(ref: str, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        held().resolve(ref)
    assert resolve_reference(held(), ref).startswith("error: ")
    with pytest.raises((InvalidReference, ReferenceNotFound)):
        held(()).resolve(ref)


def test_a_record_that_is_left_out_changes_the_reference_of_none() -> None:
    session = held(CLAIMS[:2])
    budgets = BUDGETS.model_copy(update={"meta_tokens": 27})
    cut = EnvelopeBuilder(tokenizer="o200k_base", budgets=budgets).build(session)
    assert cut.section("meta").text.splitlines()[1:] == ["- Use no emojis. [04bb7b]"]


def test_a_store_with_reports_of_meta_is_whole_and_rebuilds(tmp_path: Path) -> None:
    with open_store(f"file:{tmp_path}") as store:
        envelope = builder().build(asked(store))
        again = rebuild(store, envelope.address)
        assert (again.address, again.reports) == (envelope.address, envelope.reports)
        with pytest.raises(InputError, match="address of a report"):
            rebuild(store, envelope.reports[0].id)
        assert fsck(store, read_data=True).damage == ()


def test_a_summarizer_of_meta_chooses_whole_records() -> None:
    store = open_store("memory:")
    envelope = builder(summarizer={"meta": last_two}).build(asked(store))
    assert envelope.section("meta").text.count("Insight") == 2
    assert envelope.reports[0].kept_refs == ("meta:r-3", "meta:r-4")
    assert envelope.reports[0].policy == "summarizer last_two"
    assert rebuild(store, envelope.address).address == envelope.address


def everything(source: SummarizerInput, *, budget_tokens: int) -> Summary:
    return Summary(bullets=tuple(Bullet(text="x", citations=(item.ref,)) for item in source.messages))


def test_a_summarizer_that_keeps_too_much_is_cut_by_value() -> None:
    (report,) = builder(summarizer={"meta": everything}).build(asked(open_store("memory:"))).reports
    assert report.kept_refs == ("meta:r-1", "meta:r-2")


def raising(source: SummarizerInput, *, budget_tokens: int) -> Summary:
    raise RuntimeError("no model today")


def inventing(source: SummarizerInput, *, budget_tokens: int) -> Summary:
    return Summary(bullets=(Bullet(text="x", citations=("§99",)),))


@pytest.mark.parametrize("failing", [raising, inventing, lambda source, *, budget_tokens: None])
def test_a_summarizer_of_meta_that_fails_leaves_the_choice_to_value(failing: Any) -> None:
    store = open_store("memory:")
    envelope = builder(summarizer={"meta": failing}).build(asked(store))
    assert envelope.reports[0].kept_refs == ("meta:r-1", "meta:r-2")
    assert [one.kind for one in envelope.findings if "meta_" in one.kind and one.kind != "meta_source_unresolved"] == [
        "meta_records_left_out",
        "meta_summarizer_refused",
    ]
    assert rebuild(store, envelope.address).address == envelope.address


def laid(meta_tokens: int, compactions: int = 0) -> MetaLayout:
    counter = Counter(CharTokenizer())
    return lay_meta(PROFILE, Budgets(meta_tokens=meta_tokens), counter, compactions, by_value)


ALL_TOKENS = laid(100_000)[0][0].tokens


@pytest.mark.parametrize(
    ("meta_tokens", "compactions", "kept"),
    [
        pytest.param(ALL_TOKENS, 0, 4, id="it just fits"),
        pytest.param(ALL_TOKENS - 1, 0, 3, id="a token too much"),
        pytest.param(ALL_TOKENS, 4, 4, id="over the trigger, and the prefix has changed four times"),
        pytest.param(ALL_TOKENS, 5, 3, id="the fifth time it shrinks"),
        pytest.param(math.ceil(ALL_TOKENS / 0.8), 5, 4, id="at the trigger"),
    ],
)
def test_meta_shrinks_over_its_budget_and_over_its_trigger_behind_the_fourth_compaction(
    meta_tokens: int, compactions: int, kept: int
) -> None:
    (fragment,), findings, cut = laid(meta_tokens, compactions)
    assert fragment.text.count("Insight") == kept
    assert (cut is None, findings == ()) == (kept == 4, kept == 4)


def test_of_what_is_cut_as_much_stays_as_just_fits() -> None:
    _, _, cut = laid(ALL_TOKENS - 1)
    assert cut is not None
    again = laid(cut.post_tokens)[2]
    assert again is not None
    assert (again.kept, again.post_tokens, again.limit_tokens) == (cut.kept, cut.post_tokens, cut.post_tokens)


@pytest.mark.parametrize(
    ("summarizer", "says"),
    [
        ({"static": FirstLine()}, r"summarizer\['static'\]: only dynamic and meta are ever shortened"),
        ({"dynamic": 3}, r"summarizer\['dynamic'\] is int; give the name"),
        ({"meta": "nobody"}, "no summarizer named 'nobody' is installed"),
        (None, r"summarizer\['dynamic'\] is NoneType"),
    ],
)
def test_what_is_no_summarizer_of_a_section(summarizer: Any, says: str) -> None:
    with pytest.raises(InputError, match=says):
        builder(summarizer=summarizer)


@pytest.mark.parametrize("section", ["system", "static"])
def test_a_head_section_that_does_not_fit_is_reported_beside_the_error(section: str) -> None:
    """It is never shortened; the report says by how much it is over, and stands with the session's others."""
    entry = ProfileEntry(id="long", text="Answer each question in full, in order, and with its source. " * 9)
    profile = Profile(name="desk", **{"policies" if section == "system" else "rails": (entry,)})
    store = open_store("memory:", now=lambda: "2026-11-21T02:00:00Z")
    session = store.session("s", profile=profile)
    session.append({"role": "user", "content": "Hello."})
    small = EnvelopeBuilder(tokenizer="o200k_base", budgets=Budgets(**{f"{section}_tokens": 60}))
    for _ in range(2):
        with pytest.raises(BudgetExceeded) as caught:
            small.build(session)

    report = store.report(str(caught.value.report_id))
    assert [each.report for each in session.reports()] == [report]
    assert (report.section, report.pre_tokens, report.losses) == (section, report.post_tokens, ())
    assert report.pre_tokens == caught.value.tokens > 60
    assert report.policy == "over, not shortened (budget 60)"
    assert report.created_at == "2026-11-21T02:00:00Z"
