"""The meta slice in requests: placed as it was fitted, cut by whole records of least value, gone when forgotten."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from ctxsteward.envelope import Budgets, EnvelopeBuilder, Profile, Session, Store, open_store, rebuild
from ctxsteward.envelope.layout.composition import lay_head
from ctxsteward.envelope.layout.meta_section import META_STABLE_COMPACTIONS
from ctxsteward.envelope.testing import CharTokenizer, FirstLine
from ctxsteward.envelope.tokens.budgets import Scale
from ctxsteward.envelope.tokens.tokenizer import Counter, load_tokenizer
from ctxsteward.schemas.profile import MetaRecord
from ctxsteward.store.erasure.forget import forget
from ctxsteward.store.journal.events import SessionHead
from ctxsteward.store.maintenance.fsck import fsck
from ctxsteward.store.profiles.text import line_writer, meta_text

from ...examples import examples
from ..erasure.scenes import STORES, contents_of, hits
from .desk import GONE, TOLD, ask, builder, counted_store, kinds, opened

O200K = Counter(load_tokenizer("o200k_base"))
CL100K = Counter(load_tokenizer("cl100k_base"))
CHARS = Counter(CharTokenizer())
CANARY = "CANARYmeta5561"


def slice_of(*records: MetaRecord) -> Profile:
    return Profile.from_document(Profile.from_text("Be calm.", name="support").model_copy(update={"meta": records}))


def record(id: str, text: str, *, approved: bool = False, source: str = "s-7§1") -> MetaRecord:
    return MetaRecord(id=id, text=text, sources=(source,), approved=approved)


def shown_text(profile: Profile) -> str:
    """Of all of a profile's records, as a prompt has them."""
    return meta_text(profile, line_writer(profile.meta))


def meta_ids(profile: Profile, counter: Counter, meta_tokens: int, compactions: int = 0) -> tuple[list[str], list[str]]:
    """Ids shown, and ids that a finding says were left out."""
    head = SessionHead(profile=profile.model_dump(mode="json"))
    laid = lay_head(head, Scale(Budgets(meta_tokens=meta_tokens, system_tokens=500)), counter, compactions)
    rows = laid.section("meta")[0].text.splitlines() if laid.section("meta") else []
    out = [
        finding.text.partition(": ")[2].split(", ")
        for finding in laid.findings
        if finding.kind == "meta_records_left_out"
    ]
    return [row.rpartition(" [")[2][:-1] for row in rows if row.startswith("- ")], out[0] if out else []


# -- whole records, by value ---------------------------------------------------------------------------------------

CHINESE = slice_of(
    *(record(f"r-{n}", "请始终用简体中文回答，并在答案的末尾列出来源编号" + "甲乙丙丁戊己庚辛"[n]) for n in range(5))
)
"""Fitted in o200k; the older encoding takes half as many again for the same words."""


def test_a_slice_that_was_fitted_is_placed_as_it_was() -> None:
    tokens = O200K.framed(shown_text(CHINESE))
    assert meta_ids(CHINESE, O200K, tokens) == ([f"r-{n}" for n in range(5)], [])


def test_under_another_tokenizer_the_least_valuable_whole_records_go() -> None:
    tokens = O200K.framed(shown_text(CHINESE))
    assert CL100K.framed(shown_text(CHINESE)) > tokens
    shown, out = meta_ids(CHINESE, CL100K, tokens)
    assert shown == [f"r-{n}" for n in range(len(shown))]
    assert out == [f"r-{n}" for n in range(4, len(shown) - 1, -1)]
    assert 0 < len(shown) < 5


@settings(max_examples=examples(80))
@given(
    st.lists(st.tuples(st.integers(8, 120), st.booleans()), min_size=1, max_size=8),
    st.integers(1, 900),
    st.integers(0, 9),
)
def test_what_stays_is_the_most_valuable_in_its_order_and_fits(
    sizes: list[tuple[int, bool]], budget: int, compactions: int
) -> None:
    """Stored in order of value; what a person approved goes last."""
    records = [record(f"r-{n}", "x" * size, approved=approved) for n, (size, approved) in enumerate(sizes)]
    shown, out = meta_ids(slice_of(*records), CHARS, budget, compactions)
    order = [one.id for one in records if one.approved] + [one.id for one in records if not one.approved]
    assert shown == order[: len(shown)]
    assert out == order[len(shown) :][::-1]
    limit = int(budget * Budgets().compact_at_fraction) if compactions > META_STABLE_COMPACTIONS else budget
    kept = slice_of(*(one for one in records if one.id in shown))
    assert not shown or CHARS.framed(shown_text(kept)) <= limit
    if out:
        before = slice_of(*(one for one in records if one.id in (*shown, out[-1])))
        assert CHARS.framed(shown_text(before)) > limit, "not one more than must"


def test_over_its_trigger_it_is_left_alone_until_the_prefix_breaks_anyway() -> None:
    profile = slice_of(record("r-1", "x" * 100), record("r-2", "y" * 100))
    tokens = CHARS.framed(shown_text(profile))
    budget = int(tokens / 0.9)
    assert meta_ids(profile, CHARS, budget, META_STABLE_COMPACTIONS)[0] == ["r-1", "r-2"]
    assert meta_ids(profile, CHARS, budget, META_STABLE_COMPACTIONS + 1) == (["r-1"], ["r-2"])
    assert meta_ids(profile, CHARS, tokens - 1)[0] == ["r-1"], "over its budget: at once"


# -- forgotten -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["memory", "file", "drained"])
def test_a_withdrawn_record_leaves_the_heads_of_all_sessions(tmp_path: Path, kind: str) -> None:
    made = EnvelopeBuilder(tokenizer="o200k_base", summarizer=FirstLine())
    with STORES[kind](tmp_path) as (store, root):
        ask(store.session("s-7", tenant="acme"), f"always say {CANARY}")
        profile = slice_of(record("r-1", f"Always say {CANARY} first"), record("r-2", "Cites the page", source="s-9§1"))
        versions = store.profiles("support", tenant="acme")
        versions.commit(profile, **TOLD)
        pinned = store.profiles("support", tenant="acme").newest().profile
        session = ask(store.session("s-1", tenant="acme", profile=pinned), "hello")
        fork = session.fork(id="s-1b")
        address = made.build(session).address
        assert CANARY in made.build(session).section("meta").text
        assert forget(store, tenant="acme", session="s-7", **GONE).recommendations == 1

        for one in (
            session,
            fork,
            store.session(
                "s-1",
                tenant="acme",
                profile=store.profiles("support", tenant="acme").newest().profile,
            ),
        ):
            envelope = made.build(one)
            assert "Cites the page" in envelope.section("meta").text
            assert CANARY not in envelope.section("meta").text
            assert [finding.kind for finding in envelope.findings] == []
        again = rebuild(store, address, tenant="acme")
        assert (CANARY in again.section("meta").text, again.findings[-1].kind) == (False, "rebuilt_differs")
        assert store.flush(10.0)
        assert hits(contents_of(store, root), (CANARY,)) == {}
        assert fsck(store, read_data=True).damage == ()


def held(session: Session, profile: Profile) -> Session:
    session.repin(profile)
    return session


WAYS: dict[str, Callable[[Store, Profile], Session]] = {
    "a new session": lambda store, profile: store.session("s-new", tenant="acme", profile=profile),
    "a session without one": lambda store, profile: store.session("s-bare", tenant="acme", profile=profile),
    "a session moved to it": lambda store, profile: held(store.session("s-bare", tenant="acme"), profile),
}
"""How a profile that somebody holds in memory gets into a log."""


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", ["memory", "file", "drained"])
def test_a_profile_read_before_a_record_was_withdrawn_does_not_bring_it_back(
    tmp_path: Path, kind: str, way: str
) -> None:
    made = EnvelopeBuilder(tokenizer="o200k_base", summarizer=FirstLine())
    with STORES[kind](tmp_path) as (store, root):
        ask(store.session("s-7", tenant="acme"), f"always say {CANARY}")
        store.session("s-bare", tenant="acme")
        profile = slice_of(record("r-1", f"Always say {CANARY} first"), record("r-2", "Cites the page", source="s-9§1"))
        store.profiles("support", tenant="acme").commit(profile, **TOLD)
        read = store.profiles("support", tenant="acme").newest().profile
        if kind == "file":  # somebody else's handle
            with open_store(store.uri) as other:
                assert forget(other, tenant="acme", principal="ann", **GONE).recommendations == 1
        else:
            assert forget(store, tenant="acme", principal="ann", **GONE).recommendations == 1

        envelope = made.build(ask(WAYS[way](store, read), "hello"))
        assert "Cites the page" in envelope.section("meta").text
        assert CANARY not in envelope.section("meta").text
        assert [finding.kind for finding in envelope.findings] == ["meta_record_withdrawn"]
        assert store.flush(10.0)
        assert hits(contents_of(store, root), (CANARY,)) == {}


def test_where_the_store_does_not_answer_the_profile_stands_with_a_finding() -> None:
    store, requests = counted_store()
    opened(store, "s-0")
    requests.dead = True
    envelope = builder().build(ask(opened(store, "s-1", profile=slice_of(record("r-1", "Cites the page")))))
    assert "Cites the page" in envelope.section("meta").text
    assert kinds(envelope)[0] == "withdrawals_unknown"


def test_a_session_that_stands_asks_nothing_of_its_profile() -> None:
    store, requests = counted_store()
    profile = slice_of(record("r-1", "Cites the page"))
    opened(store, profile=profile)
    before = len(requests.asked)
    opened(store, profile=profile)
    assert requests.asked[before:] == []
