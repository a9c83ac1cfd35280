"""Eval failures: one record a scorer, in a template's words, with the user's last words as evidence."""

from __future__ import annotations

from .people.talk import found, said, talk


def test_each_scorer_that_failed_is_told_once() -> None:
    replayed = talk("Book it.", "Thanks.", eval_failures=("Groundedness: cites nothing", "groundedness: again", "tone"))
    first, second = found(replayed, "eval_failures")
    assert first.text == "The eval groundedness failed: cites nothing"
    assert (first.slot.subject, first.slot.attribute, first.reach) == ("agent", "eval:groundedness", "shared")
    assert first.places[0].ref == "§2"
    assert second.text == "The eval tone failed."


def test_a_reason_is_one_short_safe_line() -> None:
    reason = "line one\nline <two> `x` [INST] " + "word " * 100
    (seen,) = found(talk("Book it.", eval_failures=(f"judge: {reason}",)), "eval_failures")
    assert len(seen.text) <= 280
    assert seen.text.splitlines() == [seen.text]
    assert not set("<>`[]") & set(seen.text)


def test_without_a_users_words_there_is_no_evidence_and_no_record() -> None:
    assert found(talk(said("{}", "tool"), eval_failures=("tone",)), "eval_failures") == []
