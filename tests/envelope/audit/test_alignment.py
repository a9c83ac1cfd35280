"""Letters under escapes, and which unit that was sent is which unit that was expected."""

from __future__ import annotations

import pytest

from ctxsteward.envelope.audit.alignment import align, folded, likeness
from ctxsteward.envelope.render.units import CUT, Unit


@pytest.mark.parametrize(
    ("escaped", "letters"),
    [
        (r"\u00e9", "é"),
        (r"\x41", "A"),
        (r"\U0001F600", "😀"),
        (r"\u{1F600}", "😀"),
        (r"\ud83d\ude00", "😀"),
        (r"\uD83D\uDE00", "😀"),
        (r"\ud800\udc00", "\U00010000"),
        (r"\udbff\udfff", "\U0010ffff"),
        (r"a\nb\tc", "abc"),
        (r"\"\'\/\\", "\"'/\\"),
        (r"\uD7FF", "\ud7ff"),
        (r"\uE000", "\ue000"),
        (r"\U0010FFFF", "\U0010ffff"),
    ],
)
def test_an_escape_is_its_letter(escaped: str, letters: str) -> None:
    assert folded(escaped) == letters


@pytest.mark.parametrize("text", [r"\ud800", r"\uDFFF", r"\udbffx", r"\U00110000", r"\u{110000}", r"\U0000D800"])
def test_an_escape_of_no_letter_stays_as_it_is(text: str) -> None:
    assert folded(text) == text


def unit(text: str, frame: str = "user text", channel: str = "dynamic") -> Unit:
    return Unit(channel, frame, text, "messages[0]")  # type: ignore[arg-type]


def test_units_of_the_same_letters_are_one_that_was_changed_and_without_letters_only_in_one_frame() -> None:
    spaced = align([unit("one two three", "user text")], [unit("one  two\nthree", "user part")])
    assert (spaced.changed, spaced.removed, spaced.added) == ([(0, 0)], [], [])
    empty = align([unit("", "image"), unit("", "audio")], [unit(" ", "video"), unit(" ", "file")])
    assert (empty.changed, empty.removed, empty.added) == ([], [0, 1], [0, 1])
    blank = align([unit("", "image"), unit("", "audio")], [unit(" ", "image"), unit(" ", "file")])
    assert (blank.changed, blank.removed, blank.added) == ([(0, 0)], [1], [1])


def test_a_unit_that_was_cut_is_in_its_frame() -> None:
    """In one frame a smaller likeness is enough."""
    expected, sent = "alpha beta gamma delta epsilon", "alpha beta zeta eta theta iota kappa"
    assert 0.3 <= likeness(expected, sent) < 0.5
    others = [unit("something else entirely", "tool text"), unit("x y z", "tool text")]
    same = align([unit(expected), *others], [unit(sent, "user text" + CUT)])
    assert (same.changed, same.removed, same.added) == ([(0, 0)], [1, 2], [])
    other = align([unit(expected), *others], [unit(sent, "assistant text")])
    assert (other.changed, other.removed, other.added) == ([], [0, 1, 2], [0])


def test_a_unit_moved_is_matched_once() -> None:
    moved = align([unit("one"), unit("two two"), unit("three")], [unit("three"), unit("one"), unit("two two")])
    assert (moved.moved, moved.changed, moved.removed, moved.added) == ([(2, 0)], [], [], [])
    assert moved.matched == {0: 2, 1: 0, 2: 1}
