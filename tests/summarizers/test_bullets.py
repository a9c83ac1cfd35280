"""Candidates for bullets: what says the same is one, and cites whoever said it."""

from __future__ import annotations

from typing import Any

import pytest

from ctxsteward.schemas import Message, SummarizerInput
from ctxsteward.schemas.summary import SourceMessage
from ctxsteward.summarizers import extractive
from ctxsteward.summarizers.bullets import MAX_CITATIONS, BulletCandidate, merged

PORT = frozenset(("8443",))
WORDS = frozenset(("staging", "port", "proxy", "listens", "behind"))


def candidate(ref: str, worth: float, **more: Any) -> BulletCandidate:
    given = {"text": "Staging is on 8443.", "kind": "number", "values": PORT, "subject": WORDS} | more
    return BulletCandidate(refs=tuple(ref.split()), order=int(ref[1]), worth=worth, **given)


@pytest.mark.parametrize(
    ("other", "refs"),
    [
        pytest.param({}, [("§2", "§7")], id="the same"),
        pytest.param({"text": "On 8443."}, [("§2", "§7")], id="other words, the same values"),
        pytest.param({"subject": frozenset((*sorted(WORDS)[:3], "x", "y"))}, [("§2", "§7")], id="three of five words"),
        pytest.param({"subject": frozenset((*sorted(WORDS)[:2], "x", "y", "z"))}, [("§7",), ("§2",)], id="two of five"),
        pytest.param({"subject": frozenset()}, [("§2", "§7")], id="no words at all"),
        pytest.param({"values": frozenset(("22",))}, [("§7",), ("§2",)], id="another value"),
        pytest.param({"replaces": True}, [("§7",), ("§2",)], id="one makes something stale"),
    ],
)
def test_what_says_the_same_is_one_candidate_that_cites_both(
    other: dict[str, Any], refs: list[tuple[str, ...]]
) -> None:
    assert [one.refs for one in merged([candidate("§2", 50, **other), candidate("§7", 60)])] == refs


def test_without_values_it_is_the_text_that_counts() -> None:
    said = [
        candidate(f"§{n}", 50 - n, values=frozenset(), text=text)
        for n, text in enumerate(("Ship it.", "SHIP it.", "No."))
    ]
    assert [one.refs for one in merged(said)] == [("§0", "§1"), ("§2",)]


def test_the_better_text_stays_and_cites_so_many_at_most() -> None:
    said = [candidate(f"§{n}", 50 + n, text=f"On 8443, said {n}.") for n in range(1, 6)]
    (one,) = merged(said)
    assert (one.text, one.refs) == ("On 8443, said 5.", ("§3", "§4", "§5"))
    assert len(one.refs) == MAX_CITATIONS
    (again,) = merged([candidate("§3", 50), candidate("§3", 40)])
    assert again.refs == ("§3",)


def test_a_fact_that_two_have_said_is_a_bullet_that_cites_both() -> None:
    texts = ("The ticket is OPS-4411.", "Lovely weather today.", "Right, the ticket is OPS-4411.")
    messages = tuple(
        SourceMessage(ref=f"§{n}", message=Message.from_wire({"role": "user", "content": text}))
        for n, text in enumerate(texts, 1)
    )
    bullets = extractive(SummarizerInput(messages=messages), budget_tokens=400).bullets
    assert [bullet.citations for bullet in bullets if "OPS-4411" in bullet.text] == [("§1", "§3")]
