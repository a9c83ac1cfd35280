"""Summaries made beside the session: what lands, what does not, and that a build never notices."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from ctxsteward.envelope import Budgets, Envelope, EnvelopeBuilder, Session, Store, SummaryAhead, open_store
from ctxsteward.schemas import Bullet, InputError, SummarizerInput, Summary
from ctxsteward.schemas.message import Wire
from ctxsteward.schemas.publish import validate
from ctxsteward.schemas.summary import SummaryOrigin
from ctxsteward.store.erasure.forget import forget
from ctxsteward.store.journal.events import WindowCompacted, from_record, to_record
from ctxsteward.store.journal.port import ForgottenSubject

SECONDS = 20.0
WHY: dict[str, Any] = {"who": "dpo", "why": "asked", "when": "2026-01-01T00:00:00Z"}
ORIGIN = SummaryOrigin(model="fake", template="t 1 0", grounded=1)


class MarkedSummarizer:
    """Bullets that begin with AHEAD; it waits at a gate, and remembers what it was given."""

    def __init__(self, fails: Exception | None = None) -> None:
        self.gate = threading.Event()
        self.gate.set()
        self.began = threading.Event()
        self.given: list[SummarizerInput] = []
        self.prefixes: list[Wire | None] = []
        self.accounts: list[dict[str, str]] = []
        self._fails = fails

    def charged(self, **accounts: str) -> MarkedSummarizer:
        self.accounts.append(accounts)
        return self

    def __call__(self, source: SummarizerInput, *, budget_tokens: int, prefix: Wire | None = None) -> Summary:
        self.given.append(source)
        self.prefixes.append(prefix)
        self.began.set()
        assert self.gate.wait(SECONDS)
        if self._fails is not None:
            raise self._fails
        rows = [item for item in source.messages if item.message.role == "user"]
        bullets = (Bullet(text=f"AHEAD {item.message.text[:24]}", citations=(item.ref,)) for item in rows)
        return Summary(bullets=tuple(bullets), origin=ORIGIN)


def builder(ahead: Any, **given: Any) -> EnvelopeBuilder:
    return EnvelopeBuilder(model="gpt-4o", budgets=Budgets(dynamic_tokens=4_000), ahead=ahead, **given)


def opened(store: Store | None = None, id: str = "s") -> Session:
    return (store or open_store("memory:")).session(id, system="x")


def talk(
    session: Session,
    building: EnvelopeBuilder,
    ahead: SummaryAhead | None,
    until: Callable[[], bool] = bool,
    *,
    name: str = "OPS",
    turns: int = 60,
    wait: bool = True,
) -> Iterator[Envelope]:
    """Turns until that is so; each envelope."""
    for number in range(turns):
        text = f"Order {name}-{number} costs {number} euros. " + "Some more talk about it. " * 40
        session.append({"role": "user", "content": text})
        yield building.build(session)
        session.append({"role": "assistant", "content": "Noted. " * 30})
        if ahead is not None and wait:
            assert ahead.wait(SECONDS)
        if until():
            return


def compacted(session: Session) -> Callable[[], bool]:
    return lambda: session.state.compactions > 0


def kinds(envelopes: list[Envelope]) -> set[str]:
    return {finding.kind for envelope in envelopes for finding in envelope.findings}


def texts(session: Session) -> str:
    return "\n".join(bullet.text for bullet in session.state.bullets)


# -- what lands --------------------------------------------------------------------------------------------


def test_every_compaction_of_a_session_takes_the_summary_that_was_made_before_it() -> None:
    summarizer = MarkedSummarizer()
    ahead, session = SummaryAhead(summarizer), opened()
    envelopes = list(talk(session, builder(ahead), ahead, turns=36))
    reports = [event.report for event in session.reports()]

    assert len(reports) > 3
    assert {report.policy for report in reports} == {"deep-oldest-first/1 summary made ahead"}
    assert all(report.origin == ORIGIN for report in reports)
    assert not kinds(envelopes) & {"summary_not_ready", "summary_fell_back"}
    assert {"tenant": "default", "session": "s"} in summarizer.accounts
    assert "AHEAD Order OPS-" in texts(session)


def test_while_a_compaction_waits_no_summary_is_begun() -> None:
    """The budget is full after half of the turns, and the session cannot bear the price of a compaction yet."""
    summarizer = MarkedSummarizer()
    ahead, session = SummaryAhead(summarizer), open_store("memory:").session("s", system="You plan trips. " * 400)
    budgets = Budgets(dynamic_tokens=4_000, waiting_tokens=60_000)
    building = EnvelopeBuilder("gpt-5.6", budgets=budgets, ahead=ahead)
    begun, sizes = list[int](), list[int]()
    for envelope in talk(session, building, ahead, compacted(session), turns=150):
        sizes.append(envelope.section("dynamic").tokens)
        begun.append(len(summarizer.given))
    (report,) = [event.report for event in session.reports()]

    assert 4_000 < sizes[begun.index(1)] < sizes[-2]
    assert report.policy == "deep-oldest-first/1 summary made ahead"
    covered = {item.ref for item in summarizer.given[0].messages}
    assert 2 * len(covered) > len(report.source_addresses)


def test_what_came_since_leaves_with_it_so_that_as_much_is_freed_as_without_a_model() -> None:
    """A prepared choice may be of a few groups alone while much more has to leave now."""
    tokens = []
    for has_ahead in (True, False):
        ahead = SummaryAhead(MarkedSummarizer()) if has_ahead else None
        session = opened()
        building = builder(ahead)
        list(talk(session, building, ahead, lambda s=session: len(s) >= 15))
        while len(session) < 60:
            session.append({"role": "user", "content": f"{len(session)} " + "long words again " * 60})
            session.append({"role": "assistant", "content": "ok " * 300})
        session.append({"role": "user", "content": "and now?"})
        tokens.append(building.build(session).sections["dynamic"].tokens)
        assert session.state.compactions == 1
        refs = {entry for event in session.reports() for entry in event.report.source_addresses}
        assert len(refs) > 20
        assert ("AHEAD" in texts(session)) == has_ahead
    assert tokens[0] <= tokens[1] * 1.3


def test_a_preview_looks_at_a_summary_and_leaves_it_there() -> None:
    ahead, session = SummaryAhead(MarkedSummarizer()), opened()
    building = builder(ahead)
    list(talk(session, building, ahead, lambda: bool(ahead._jobs)))
    for _ in range(3):
        assert building.preview(session, "word " * 3_000).sections["dynamic"].tokens
    assert not session.state.compactions
    envelopes = list(talk(session, building, ahead, compacted(session)))

    assert "AHEAD" in texts(session)
    assert not kinds(envelopes) & {"summary_not_ready", "summary_fell_back"}


def test_a_conflict_does_not_lose_it() -> None:
    ahead, store = SummaryAhead(MarkedSummarizer()), open_store("memory:")
    session, other = opened(store), opened(store)
    building = builder(ahead)
    list(talk(session, building, ahead, lambda: bool(ahead._jobs)))
    commit, conflicts = session.commit, []

    def first_of_all(event: Any) -> None:
        if isinstance(event, WindowCompacted) and not conflicts:
            conflicts.append(event)
            other.append({"role": "user", "content": "me first"})
        commit(event)

    session.commit = first_of_all  # type: ignore[method-assign]
    envelopes = list(talk(session, building, ahead, compacted(session)))

    assert len(conflicts) == 1
    assert "AHEAD" in texts(session)
    assert not kinds(envelopes) & {"summary_not_ready", "summary_fell_back"}
    assert not ahead._jobs


def test_the_prefix_is_the_beginning_of_the_request_that_the_caller_sends_byte_for_byte() -> None:
    summarizer = MarkedSummarizer()
    ahead, session = SummaryAhead(summarizer, provider="openai-chat"), opened()
    envelopes = list(talk(session, builder(ahead), ahead, lambda: bool(summarizer.prefixes)))
    prefix = summarizer.prefixes[0]

    assert json.dumps(prefix) == json.dumps(envelopes[-1].render("openai-chat"))
    following = [*prefix["messages"], {"role": "user", "content": "shorten"}]  # type: ignore[index]
    assert json.dumps(following).startswith(json.dumps(envelopes[-1].render("openai-chat")["messages"])[:-1])


# -- what does not -----------------------------------------------------------------------------------------


def test_two_stores_with_one_id_never_share_a_summary() -> None:
    ahead = SummaryAhead(MarkedSummarizer())
    building, one, other = builder(ahead), opened(), opened()
    list(talk(one, building, ahead, lambda: bool(ahead._jobs), name="SECRET"))
    list(talk(other, building, ahead, compacted(other)))

    assert "SECRET" not in texts(other)
    assert "AHEAD Order OPS-" in texts(other)


def test_two_stores_whose_logs_drew_the_same_nonce_do_not_either() -> None:
    ahead = SummaryAhead(MarkedSummarizer())
    building, one, other = builder(ahead), opened(), opened()
    other.state.nonce = one.state.nonce
    list(talk(one, building, ahead, lambda: bool(ahead._jobs), name="SECRET"))
    other.state.nonce = one.state.nonce
    envelopes = list(talk(other, building, ahead, compacted(other)))

    assert "SECRET" not in texts(other)
    assert "summary_fell_back" in kinds(envelopes)


def test_a_summary_of_another_base_is_given_up() -> None:
    ahead, session = SummaryAhead(MarkedSummarizer()), opened()
    list(talk(session, builder(ahead), ahead, lambda: bool(ahead._jobs)))
    plain = builder(None)
    list(talk(session, plain, None, compacted(session), name="LATER"))
    assert "AHEAD" not in texts(session)
    before = session.state.compactions
    envelopes = list(talk(session, builder(ahead), ahead, lambda: session.state.compactions > before))

    assert not kinds(envelopes) & {"summary_fell_back"}
    assert "LATER-0" not in {text[6:20] for text in texts(session).splitlines() if text.startswith("AHEAD")}


def test_what_was_pinned_meanwhile_stays_and_a_finding_says_so() -> None:
    ahead, session = SummaryAhead(MarkedSummarizer()), opened()
    building = builder(ahead)
    list(talk(session, building, ahead, lambda: bool(ahead._jobs)))
    session.pin("§3")
    envelopes = list(talk(session, building, ahead, compacted(session)))

    assert "summary_fell_back" in kinds(envelopes)
    assert "AHEAD" not in texts(session)
    assert any(3 in group.ordinals for group in session.state.groups)


def test_one_that_is_late_holds_nobody_up() -> None:
    summarizer = MarkedSummarizer()
    summarizer.gate.clear()
    ahead, session = SummaryAhead(summarizer), opened()
    envelopes = list(talk(session, builder(ahead), ahead, turns=40, wait=False))
    summarizer.gate.set()

    assert len(session.reports()) > 3
    assert all(event.report.origin is None for event in session.reports())
    assert "summary_not_ready" in kinds(envelopes)
    assert len(envelopes) == 40


def test_a_jump_that_no_summary_was_begun_for_is_told() -> None:
    ahead, session = SummaryAhead(MarkedSummarizer()), opened()
    for number in range(40):
        session.append({"role": "user", "content": f"{number} " + "long words again " * 60})
        session.append({"role": "assistant", "content": "ok"})
    session.append({"role": "user", "content": "and now?"})
    envelope = builder(ahead).build(session)

    assert session.state.compactions == 1
    assert "summary_not_ready" in kinds([envelope])


class BrokenCharge(MarkedSummarizer):
    def charged(self, **accounts: str) -> MarkedSummarizer:
        raise ValueError("my passport is X1234567")


class OtherCharge(MarkedSummarizer):
    def charged(self, amount: int) -> MarkedSummarizer:  # type: ignore[override]
        return self


BROKEN: dict[str, Callable[[], Any]] = {
    "it raises": lambda: MarkedSummarizer(RuntimeError("my passport is X1234567")),
    "it exits": lambda: MarkedSummarizer(SystemExit("my passport is X1234567")),  # type: ignore[arg-type]
    "charged raises": BrokenCharge,
    "charged is another method": OtherCharge,
    "it gives no summary": lambda: lambda source, *, budget_tokens, prefix=None: {"bullets": []},
    "a summary that is none": lambda: (
        lambda source, *, budget_tokens, prefix=None: Summary.model_construct(bullets=(object(),), superseded=None)
    ),
    "it cites what it was not shown": lambda: (
        lambda source, *, budget_tokens, prefix=None: Summary(bullets=(Bullet(text="x", citations=("§999",)),))
    ),
    "nothing of the model holds": lambda: (
        lambda source, *, budget_tokens, prefix=None: Summary(
            bullets=(), origin=ORIGIN.model_copy(update={"grounded": 0, "refused": {"words": 3}})
        )
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_whatever_is_wrong_with_it_every_build_and_compaction_is_as_without(case: str) -> None:
    ahead, session = SummaryAhead(BROKEN[case]()), opened()
    plain_session = opened()
    envelopes = list(talk(session, builder(ahead), ahead, turns=16))
    plain = list(talk(plain_session, builder(None), None, turns=16))

    assert "summary_fell_back" in kinds(envelopes)
    assert "compaction_refused" not in kinds(envelopes)
    assert [e.sections["dynamic"].tokens for e in envelopes] == [e.sections["dynamic"].tokens for e in plain]
    assert "X1234567" not in str([envelope.findings for envelope in envelopes])


def test_threads_that_cannot_be_started_any_more_raise_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(self: threading.Thread) -> None:
        raise RuntimeError("can't create new thread at interpreter shutdown")

    ahead, session = SummaryAhead(MarkedSummarizer()), opened()
    monkeypatch.setattr(threading.Thread, "start", refused)
    envelopes = list(talk(session, builder(ahead), None, turns=30))
    assert session.state.compactions
    assert "summary_not_ready" in kinds(envelopes)


def test_an_unknown_provider_is_refused_before_the_first_build() -> None:
    with pytest.raises(InputError, match=r"ahead: unknown provider 'nope'; one of: openai-chat"):
        builder(SummaryAhead(MarkedSummarizer(), provider="nope"))


# -- erasure -----------------------------------------------------------------------------------------------


def stores(tmp_path: Path) -> list[Store]:
    return [open_store("memory:"), open_store(f"file:{tmp_path / 'store'}")]


def test_what_is_erased_while_it_is_summarized_is_not_kept_and_does_not_land(tmp_path: Path) -> None:
    for store in stores(tmp_path):
        summarizer = MarkedSummarizer()
        summarizer.gate.clear()
        ahead, session = SummaryAhead(summarizer), opened(store)
        building = builder(ahead)
        session.append({"role": "user", "content": "My number is ANN-555. " * 20}, principal="ann")
        list(talk(session, building, ahead, lambda a=ahead: bool(a._jobs), wait=False))
        (job,) = ahead._jobs.values()
        assert summarizer.began.wait(SECONDS)
        forget(store, principal="ann", **WHY)
        assert ahead._jobs == {}
        summarizer.gate.set()
        with pytest.raises(Exception, match=r"^$") as raised:
            job.future.result(SECONDS)
        assert type(raised.value).__name__ == "_Erased"
        list(talk(session, building, ahead, compacted(session)))

        assert "ANN-555" not in texts(session)
        store.close()


EARLIER = [
    ("no answer of the model", "no answer of the model"),
    ("spending stopped (HTTP 402)", "spending stopped (HTTP 402)"),
    ("no answer of the model (HTTP 503): upstream said ANN-555", "no answer of the model (HTTP 503)"),
    ("answer not usable: it is not one JSON object and nothing else", "answer not usable"),
    ("3 of 15 parts were not asked for: too long", "parts left out"),
    ("not reflected: no answer of the model", "not reflected"),
    ("InputError: there is nothing to hand over", "another fault"),
    ("she said ANN-555", "another fault"),
    ("[erased]", "[erased]"),
]


@pytest.mark.parametrize(("written", "read"), EARLIER)
def test_why_a_summary_fell_back_is_of_a_closed_set_and_earlier_words_are_read_as_their_kind(
    written: str, read: str
) -> None:
    session = opened()

    def tells(source: SummarizerInput, *, budget_tokens: int) -> Summary:
        told = ORIGIN.model_copy(update={"fell_back": ("spending stopped",)})
        return Summary(bullets=(Bullet(text="x", citations=(source.messages[0].ref,)),), origin=told)

    list(talk(session, builder(None, summarizer=tells), None, compacted(session)))
    (event,) = session.reports()
    record = to_record(event)
    earlier = record._replace(body=record.body.replace('"spending stopped"', json.dumps(written)))
    again = from_record(earlier)

    assert isinstance(again, WindowCompacted)
    assert again.report.origin == ORIGIN.model_copy(update={"fell_back": (read,)})
    validate("compression_report", again.report.model_dump(mode="json"))
    report = event.report.model_dump(mode="json")
    report["origin"]["fell_back"] = ["she said so"]
    with pytest.raises(InputError):
        validate("compression_report", report)


def test_why_a_summary_fell_back_goes_with_a_principal_s_words() -> None:
    store = open_store("memory:")
    session = opened(store)
    session.append({"role": "user", "content": "My number is ANN-555. " * 20}, principal="ann")
    told = ORIGIN.model_copy(update={"fell_back": ("no answer of the model",)})

    def tells(source: SummarizerInput, *, budget_tokens: int) -> Summary:
        return Summary(bullets=(Bullet(text="x", citations=(source.messages[0].ref,)),), origin=told)

    list(talk(session, builder(None, summarizer=tells), None, compacted(session)))
    forget(store, principal="ann", **WHY)
    (report, *_) = opened(store).reports()
    assert report.report.origin == ORIGIN.model_copy(update={"fell_back": ("[erased]",)})


def test_a_session_that_was_forgotten_before_its_turn_is_not_sent(tmp_path: Path) -> None:
    for store in stores(tmp_path):
        summarizer = MarkedSummarizer()
        summarizer.gate.clear()
        ahead = SummaryAhead(summarizer, workers=1)
        building, one, two = builder(ahead), opened(store, "one"), opened(store, "two")
        list(talk(one, building, ahead, lambda a=ahead: len(a._jobs) == 1, wait=False))
        list(talk(two, building, ahead, lambda a=ahead: len(a._jobs) == 2, name="SECRET", wait=False))
        forget(store, session="two", **WHY)
        summarizer.gate.set()
        assert ahead.wait(SECONDS)

        assert len(summarizer.given) == 1
        assert "SECRET" not in str(summarizer.given)
        store.close()


def test_a_finished_summary_of_a_forgotten_session_goes_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_store("memory:")
    ahead = SummaryAhead(MarkedSummarizer())
    building = builder(ahead)
    for id in ("one", "two"):
        session = opened(store, id)
        list(talk(session, building, ahead, lambda s=session: any(key == s.key for key, _ in ahead._jobs)))
    other = open_store("memory:")
    list(talk(opened(other, "one"), building, ahead, lambda: len(ahead._jobs) == 3))
    forget(other, session="one", **WHY)
    assert sorted(key.session for key, _ in ahead._jobs) == ["one", "two"]
    forget(store, session="one", **WHY)
    assert [key.session for key, _ in ahead._jobs] == ["two"]

    # as another process would
    store.journal.forget("default", ForgottenSubject("two", None, **WHY))
    monkeypatch.setattr("ctxsteward.envelope.compaction.ahead.SWEEP_SECONDS", 0.0)
    list(talk(opened(store, "three"), building, ahead, turns=1))
    assert not ahead._jobs


# -- processes ---------------------------------------------------------------------------------------------


def test_a_child_has_no_summaries_of_its_parent_and_its_lock_is_free() -> None:
    ahead, session = SummaryAhead(MarkedSummarizer()), opened()
    building = builder(ahead)
    list(talk(session, building, ahead, lambda: bool(ahead._jobs)))
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with ahead._lock:
            held.set()
            done.wait(SECONDS)

    holder = threading.Thread(target=hold)
    holder.start()
    assert held.wait(SECONDS)
    child = os.fork()
    if child == 0:  # pragma: no cover
        with suppress(BaseException):
            is_empty = not ahead._jobs
            list(talk(session, building, ahead, lambda: session.state.compactions > 1, turns=30))
            os._exit(0 if is_empty and "AHEAD" in texts(session) else 1)
        os._exit(2)
    done.set()
    holder.join(SECONDS)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert ahead._jobs
    ahead.close()
    assert not ahead._jobs


def test_its_threads_hold_no_process() -> None:
    summarizer = MarkedSummarizer()
    summarizer.gate.clear()
    ahead, session = SummaryAhead(summarizer), opened()
    list(talk(session, builder(ahead), ahead, lambda: bool(summarizer.given), wait=False))
    working = [thread for thread in threading.enumerate() if thread.name == "ctxsteward-summaries"]

    assert working
    assert all(thread.daemon for thread in working)
    summarizer.gate.set()
    assert ahead.wait(SECONDS)
