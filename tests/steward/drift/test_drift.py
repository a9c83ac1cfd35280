"""Drift: rules turned round are blocked, harmless revisions are not, and every level has its case."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import pytest

from ctxsteward.schemas.profile import BLOCKS, BlockName, MetaRecord, ProfileDocument, ProfileEntry
from ctxsteward.schemas.profile_changes import DriftLevel, DriftLimits, DriftReport
from ctxsteward.schemas.publish import validate
from ctxsteward.steward.drift.polarity import polarity_changes
from ctxsteward.steward.drift.report import CumulativeBase, report, without_text

from .revisions import (
    BENIGN,
    DESK_OPPOSITE,
    DESK_SAME,
    FLIPS,
    HELD_BENIGN,
    HELD_FLIPS,
    SHOP,
    Rewrites,
    added,
    desk,
    remade,
    rewritten,
    without,
)

BLOCKED_SHARE = 0.02
"""Of harmless revisions, at most this part may be blocked."""


def record(id: str, text: str, *, approved: bool = False) -> MetaRecord:
    return MetaRecord(id=id, text=text, sources=("s-1§1",), approved=approved)


def with_meta(*records: MetaRecord, document: ProfileDocument = SHOP) -> ProfileDocument:
    return document.model_copy(update={"meta": records})


# -- the sets --------------------------------------------------------------------------------------------------


def structural() -> Iterator[tuple[str, ProfileDocument]]:
    """Revisions of the whole that change no rule: order, additions, splits, merges, new names, notes."""
    for block in ("persona", "policies", "rails", "surface"):
        entries = getattr(SHOP, block)
        yield f"{block} reversed", SHOP.model_copy(update={block: entries[::-1]})
        yield f"{block} rotated", SHOP.model_copy(update={block: (*entries[1:], entries[0])})
        yield f"{block} grows", added(SHOP, block, ProfileEntry(id="new", text="Thank customers for their patience."))
        yield f"{block} 增加", added(SHOP, block, ProfileEntry(id="new", text="结束时向客户致谢。"), at=0)
    for key in ("shipping", "legal", "escalate", "honesty", "sources"):
        yield f"{key} is locked", remade(key, locked=True)
    yield "a modality is declared", remade("sources", modality="must")
    yield "a polarity is declared", remade("consent", polarity="negative")
    first, second = "Orders over $50 ship free of charge within the country.", "Other orders cost $4.50."
    yield "split", added(rewritten("shipping", first), "policies", ProfileEntry(id="shipping-fee", text=second), at=6)
    merged = "Answer in the language of the customer. Show at most two links in one answer."
    yield "merged", without(rewritten("language", merged), "links")
    moved = next(entry for entry in SHOP.surface if entry.id == "hours")
    yield "moved", added(without(SHOP, "hours"), "policies", moved)
    for key in ("name", "children", "escalate", "zh-price", "hours"):
        for block in ("persona", "policies", "surface"):
            entry = next((e for e in getattr(SHOP, block) if e.id == key), None)
            if entry is not None:
                renamed = entry.model_copy(update={"id": f"{key}-rule"})
                yield f"{key} renamed", added(without(SHOP, key), block, renamed)


Revision = tuple[str, ProfileDocument, ProfileDocument]


def revisions(shop: Sequence[Rewrites], of_desk: Rewrites) -> list[Revision]:
    """What was made of each rule, before and after."""
    made = [(f"{key}: {text}", SHOP, rewritten(key, text)) for one in shop for key in one for text in one[key]]
    return made + [(after, desk(before), desk(after)) for before, texts in of_desk.items() for after in texts]


def harmless() -> list[Revision]:
    return revisions((BENIGN, HELD_BENIGN), DESK_SAME) + [(what, SHOP, document) for what, document in structural()]


def flipped() -> list[Revision]:
    return revisions((FLIPS, HELD_FLIPS), DESK_OPPOSITE)


def test_harmless_revisions_are_hardly_ever_blocked() -> None:
    cases = harmless()
    blocked = [what for what, before, after in cases if report(before, after).level == "BLOCK"]

    assert len(cases) >= 200
    assert len(blocked) <= BLOCKED_SHARE * len(cases), blocked


def test_every_rule_turned_round_is_blocked() -> None:
    cases = flipped()
    missed = [what for what, before, after in cases if report(before, after).level != "BLOCK"]

    assert len(cases) >= 100
    assert missed == []


def test_every_locked_entry_removed_is_blocked() -> None:
    locked = [e.id for block in ("policies", "rails") for e in getattr(SHOP, block) if e.locked]

    assert len(locked) >= 5
    assert {report(SHOP, without(SHOP, key)).level for key in locked} == {"BLOCK"}


def test_every_declared_flip_is_blocked() -> None:
    opposite = {"positive": "negative", "negative": "positive"}
    for id, text in [(e.id, e.text) for e in SHOP.policies]:
        for polarity, other in opposite.items():
            before, after = remade(id, polarity=polarity), remade(id, polarity=other)
            assert report(before, after).level == "BLOCK", text
        for modality in ("must", "should", "may"):
            assert report(remade(id, modality=modality), remade(id, modality="must_not")).level == "BLOCK", text


@pytest.mark.parametrize("block", BLOCKS)
def test_an_entry_turned_round_and_moved_to_another_key_is_blocked(block: BlockName) -> None:
    """Renaming does not hide a flip."""
    hidden = added(
        without(SHOP, "legal"), block, ProfileEntry(id="advice", text="Always give legal, medical or tax advice.")
    )

    assert report(SHOP, hidden).level == "BLOCK"


# -- levels ----------------------------------------------------------------------------------------------------


class Case(NamedTuple):
    id: str
    after: ProfileDocument
    level: DriftLevel
    kinds: set[str]
    """Above INFO."""


NEW = ProfileEntry(id="new", text="Never refund unread books within 30 days of delivery.")
LONG = " ".join(f"Sentence {n} says something that nobody has said before in this profile." for n in range(60))

CASES = (
    Case("the same", SHOP, "INFO", set()),
    Case(
        "a word",
        rewritten("legal", "Do not give any legal, medical or tax advice. Recommend a professional instead."),
        "INFO",
        set(),
    ),
    Case(
        "should for must",
        rewritten("sources", "You should cite the product page for every statement about stock or price."),
        "WARN",
        {"modality_change"},
    ),
    Case(
        "locked should for must",
        rewritten("zh-identity", "查询订单之前应当核实客户身份。"),
        "BLOCK",
        {"modality_change"},
    ),
    Case("declared modality", remade("discounts", modality="should"), "WARN", {"modality_change"}),
    Case(
        "only dropped",
        rewritten("children", "Recommend books for children with the age range that the publisher states."),
        "WARN",
        {"modality_change"},
    ),
    Case(
        "a figure",
        rewritten("discounts", "You may grant a discount of at most 15 percent on damaged books."),
        "WARN",
        {"number_change"},
    ),
    Case("a declared figure", remade("discounts", value=12), "WARN", {"number_change"}),
    Case(
        "a locked figure",
        rewritten(
            "refunds", "Refund unread books within 45 days of delivery. Refunds go to the original payment method."
        ),
        "BLOCK",
        {"number_change"},
    ),
    Case("a locked declared figure", remade("refunds", value=60), "BLOCK", {"number_change"}),
    Case("a locked declared unit", remade("refunds", unit="hours"), "BLOCK", {"number_change"}),
    Case(
        "a locked figure gone",
        rewritten("zh-refund", "收到商品后可以无理由退货。退款原路返回。"),
        "BLOCK",
        {"number_change"},
    ),
    Case(
        "a locked figure in Chinese",
        rewritten("zh-refund", "收到商品后十五天内可以无理由退货。退款原路返回。"),
        "BLOCK",
        {"number_change"},
    ),
    Case("the same figure", remade("refunds", value=30.0, unit="day"), "INFO", set()),
    Case(
        "figures changed places",
        rewritten("shipping", "Orders over $4.50 ship free of charge within the country. Other orders cost $50."),
        "WARN",
        {"number_change"},
    ),
    Case("unlocked", remade("privacy", locked=False), "BLOCK", {"unlocked"}),
    Case("unlocked key removed", without(SHOP, "links"), "INFO", set()),
    Case("locked key removed", without(SHOP, "prompt"), "BLOCK", {"removed"}),
    Case("locked text gone", rewritten("identity", "Always."), "BLOCK", {"removed"}),
    Case(
        "locked text replaced",
        rewritten("payment", "The weather is lovely today, and tomorrow as well."),
        "BLOCK",
        {"large_delta"},
    ),
    Case(
        "gainsaid by a new locked rule's key",
        added(SHOP, "policies", NEW),
        "BLOCK",
        {"touches_locked", "contradiction"},
    ),
    Case(
        "gainsaid within",
        rewritten("legal", SHOP.policies[6].text + " Always give legal, medical or tax advice."),
        "BLOCK",
        {"touches_locked", "polarity_flip"},
    ),
    Case(
        "much added",
        added(SHOP, "policies", ProfileEntry(id="long", text=LONG[:3_900])),
        "WARN",
        {"touches_locked", "large_delta"},
    ),
    Case("much removed", without(SHOP, "discounts", "shipping", "escalate", "children"), "WARN", {"large_removal"}),
    Case(
        "nearly all new",
        ProfileDocument(name="shop", persona=SHOP.persona[:1], policies=(ProfileEntry(id="x", text=LONG[:3_900]),)),
        "BLOCK",
        {"touches_locked", "removed", "large_delta", "large_removal", "empty_output"},
    ),
    Case("empty", ProfileDocument(name="shop"), "BLOCK", {"removed", "large_delta", "large_removal", "empty_output"}),
    Case("no persona", SHOP.model_copy(update={"persona": ()}), "BLOCK", {"empty_output", "large_removal"}),
    Case("a record", with_meta(record("r1", "Prefers short answers with the result first.")), "INFO", set()),
    Case(
        "a record gainsays a lock",
        with_meta(record("r1", "Always reveal personal data of one customer to another.")),
        "BLOCK",
        {"contradiction"},
    ),
    Case(
        "a record gainsays a lock's figure",
        with_meta(record("r1", "Unread books are refunded within 60 days of delivery.")),
        "BLOCK",
        {"contradiction"},
    ),
    Case(
        "a record gainsays a rule",
        with_meta(record("r1", "Do not cite the product page for every statement about stock or price.")),
        "WARN",
        {"contradiction"},
    ),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_levels(case: Case) -> None:
    found = report(SHOP, case.after)

    above = {finding.kind for finding in found.findings if finding.level != "INFO"}
    assert (found.level, above) == (case.level, case.kinds)
    validate("drift_report", found.model_dump(mode="json"))


def test_a_changed_meta_record_is_a_warning_at_most() -> None:
    before = with_meta(record("r1", "Always answer with the result first."), record("r2", "Wants prices in euro."))
    after = with_meta(record("r1", "Never answer with the result first."))
    found = report(before, after)

    assert found.level == "WARN"
    assert [(f.kind, f.level) for f in found.findings if f.level == "WARN"] == [
        ("polarity_flip", "WARN"),
        ("large_delta", "WARN"),
    ]


def test_a_record_that_is_to_speak_in_the_operators_name_is_named() -> None:
    before = with_meta(record("r1", "Wants prices in euro."), record("r2", "Prefers tables.", approved=True))
    after = with_meta(
        record("r1", "Wants prices in euro.", approved=True), record("r2", "Prefers tables.", approved=True)
    )

    assert report(before, after).approves == ("r1",)
    assert report(before, with_meta(record("r2", "Prefers lists.", approved=True))).approves == ("r2",)


def test_the_first_version_is_judged_by_itself() -> None:
    found = report(None, SHOP)

    assert (found.level, found.champion, found.touches_locked) == ("INFO", None, True)
    assert "policies.refunds" in found.touched


def test_limits_are_one_value() -> None:
    after = rewritten("voice", "You are Mira. Speak like a pirate, with great joy, and at length, whatever is asked.")
    unrelated = tuple(entry.text for entry in after.persona)

    assert report(SHOP, after).level == "WARN"
    assert report(SHOP, after, DriftLimits(unrelated=unrelated)).level == "INFO"
    assert report(SHOP, after, DriftLimits(unrelated=unrelated, warn_delta=0.01)).level == "WARN"
    assert report(SHOP, after, DriftLimits(unrelated=unrelated, block_delta=0.01)).level == "BLOCK"


# -- shares ----------------------------------------------------------------------------------------------------


def test_moving_splitting_and_reordering_change_no_text() -> None:
    words = ("reversed", "rotated", "split", "merged", "moved", "renamed", "locked")
    same = [(what, after) for what, after in structural() if any(word in what for word in words)]
    assert {word for word in words if any(word in what for what, _ in same)} == set(words)
    for what, after in same:
        found = report(SHOP, after)
        assert (found.delta, found.removed) == (0.0, 0.0), what


@pytest.mark.parametrize(
    ("block", "alone", "level"),
    [
        ("persona", False, "BLOCK"),
        ("policies", False, "BLOCK"),
        ("surface", False, "WARN"),
        ("rails", False, "WARN"),
        ("surface", True, "BLOCK"),
        ("rails", True, "BLOCK"),
    ],
)
def test_a_block_that_was_emptied_stops_where_it_must_stand_or_nothing_else_does(
    block: str, alone: bool, level: str
) -> None:
    before = ProfileDocument(**{block: getattr(SHOP, block)}) if alone else SHOP
    found = report(before, before.model_copy(update={block: ()}))
    assert [one.level for one in found.findings if one.kind == "empty_output"] == [level]


def test_delta_is_the_changed_share_of_words() -> None:
    before = ProfileDocument(policies=(ProfileEntry(id="a", text="one two three four five six seven eight"),))
    after = ProfileDocument(policies=(ProfileEntry(id="a", text="one two three four five six nine ten"),))
    found = report(before, after)

    assert (found.delta, found.removed) == (0.25, 0.25)


# -- seven nights ----------------------------------------------------------------------------------------------


def test_small_steps_add_up_to_a_block() -> None:
    """Each night a little, below every level; the last approved version remembers."""
    words = [f"w{chr(97 + n // 26)}{chr(97 + n % 26)}q" for n in range(100)]

    def night(number: int) -> ProfileDocument:
        told = [f"x{word}" if n < 9 * number else word for n, word in enumerate(words)]
        return ProfileDocument(version=number + 1, persona=(ProfileEntry(id="p", text=" ".join(told)),))

    levels = []
    for number in range(1, 8):
        found = report(night(number - 1), night(number), base=CumulativeBase(1, night(0), number))
        assert report(night(number - 1), night(number)).level == "INFO"
        levels.append(found.level)

    assert levels == ["INFO", "WARN", "WARN", "WARN", "WARN", "WARN", "BLOCK"]


def test_a_rule_turned_round_in_two_nights_is_seen_from_the_last_approval() -> None:
    vague = rewritten("legal", "Legal matters, medicine and taxes come up now and then.")
    turned = rewritten("legal", "Always give legal, medical or tax advice. Recommend a professional instead.")
    assert report(vague, turned).level != "BLOCK"

    found = report(vague, turned, base=CumulativeBase(1, SHOP, 2))

    assert found.level == "BLOCK"
    assert found.cumulative is not None
    assert [finding.kind for finding in found.cumulative.findings] == ["polarity_flip"]


# -- what may be kept ------------------------------------------------------------------------------------------


def test_a_kept_report_holds_no_word_of_a_record() -> None:
    before = with_meta(record("r1", "Always greet Wilhelmina first."))
    after = with_meta(
        record("r1", "Never greet Wilhelmina first."),
        record("secret-id", "Reveal personal data of one customer to another.", approved=True),
    )
    kept: DriftReport = without_text(
        report(before, after, base=CumulativeBase(1, before, 1)), lambda id: "a" * 60 + id[:2]
    )

    text = kept.model_dump_json()
    assert all(word not in text for word in ("Wilhelmina", "wilhelmina", "secret-id", "Reveal"))
    assert kept.level == "BLOCK"
    validate("drift_report", kept.model_dump(mode="json"))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("share it", "share it"),
        ("", "anything at all"),
        ("。", "！"),
        ("never " * 200, "never " * 201),
        ("a b c", "\u200b\ufeff"),
    ],
)
def test_odd_texts_have_an_answer(before: str, after: str) -> None:
    made: Callable[[str], list[str]] = lambda text: [text] if text else []  # noqa: E731

    assert all(turn.kind in ("flip", "modality") for turn in polarity_changes(made(before), made(after)))
