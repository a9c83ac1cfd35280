"""Alignment: which unit that was sent is which unit that was expected, and what happened to its wording.

Equal units are matched in order (longest runs first); what is left of both is compared within each gap: the same unit
elsewhere has *moved*; the same letters, or a text that is like enough, has *changed*; letters that were only cut up or
joined differently are *recast*; the rest is *removed* or *added*. Indexes count from 0.

`change_of` classes an expected text against the one that was sent instead:

    re_encoded     the same letters: Unicode form, white space, invisible characters, escapes, JSON layout, mojibake
    truncated      a piece at the start, at the end or (a longer one) within is gone, with or without a mark of omission
    injected_text  everything expected is there, in order, and something was put between, before or after
    altered_text   anything else

White space and Unicode forms are compared by folding both texts (NFKC without white space and invisible characters);
encodings by undoing the usual ones. Pure; linear in the length of the texts.
Source: Unicode Standard Annex #15 (normalization forms); the state design (auditor).
"""

from __future__ import annotations

import html
import json
import re
import unicodedata
import urllib.parse
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import Literal

from ..render.units import CUT, JOINT, Unit
from ..telemetry.spans import common_beginning

Change = Literal["re_encoded", "truncated", "injected_text", "altered_text"]

MIN_CUT_CHARS = 32
"""A shorter piece that is missing from within a text is an alteration (a lost "not"), a longer one a cut."""
MIN_INJECTED_CHARS = 12
MIN_INJECTED_WORDS = 2
"""Less than both of these put into a text is an alteration (an added "not" or digit), more an injection."""
MIN_LIKE_CHARS = 16
"""A shorter text that stands within another one proves nothing."""
MAX_MARK_CHARS = 60
"""A mark of omission ("[… 312 more characters]") is at most this long."""

_UNSEEN = re.compile(
    r"[\s\x00-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202f"
    r"\u205f-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001d173-\U0001d17a\U000e0000-\U000e0fff]+"
)
_TYPOGRAPHY = str.maketrans({"‘": "'", "’": "'", "‚": "'", "“": '"', "”": '"', "„": '"', "–": "-", "—": "-", "−": "-"})
_ESCAPE = re.compile(
    r"\\(?:u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|u\{([0-9a-fA-F]{1,6})\}"
    r"|U([0-9a-fA-F]{8})|x([0-9a-fA-F]{2})|([nrtbf\"'/\\]))"
)
_CONTROLS = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f"}
_OMISSION = re.compile(r"\.\.|…|\[|\(|truncat|omitted|elided|snip|cut|more", re.IGNORECASE)


def change_of(expected: str, sent: str) -> Change:
    """Which class the difference of two different texts is of."""
    if is_re_encoded(expected, sent):
        return "re_encoded"
    start = common_prefix(expected, sent)
    end = common_suffix(expected, sent, start)
    gone, come = expected[start : len(expected) - end], sent[start : len(sent) - end]
    if not come:
        at_edge = start == 0 or end == 0 or expected.startswith(sent) or expected.endswith(sent)
        return "truncated" if at_edge or len(gone) >= MIN_CUT_CHARS else "altered_text"
    if not gone:
        return "injected_text" if _is_a_remark(come) else "altered_text"
    if len(come) <= MAX_MARK_CHARS and len(gone) > len(come) and _OMISSION.search(come):
        return "truncated"
    return _by_words(gone.split(), come.split())


def _is_a_remark(text: str) -> bool:
    return len(text.strip()) >= MIN_INJECTED_CHARS or len(text.split()) > MIN_INJECTED_WORDS


def _by_words(gone: list[str], come: list[str]) -> Change:
    """Of the middle that differs: words only added, only taken away, or both."""
    if len(come) > len(gone) and _is_within(gone, come) and _is_a_remark(" ".join(Counter(come) - Counter(gone))):
        return "injected_text"
    if len(gone) > len(come) and _is_within(come, gone):
        lost = sum(len(word) + 1 for word in (Counter(gone) - Counter(come)).elements())
        return "truncated" if lost >= MIN_CUT_CHARS else "altered_text"
    return "altered_text"


def _is_within(few: list[str], many: list[str]) -> bool:
    """Whether these words stand in that order among those."""
    rest = iter(many)
    return all(word in rest for word in few)


def likeness(expected: str, sent: str) -> float:
    """How likely `sent` came from `expected`, from 0 to 1; 1 where one contains the other."""
    short, long = sorted((expected, sent), key=len)
    if long.startswith(short) or long.endswith(short) or (len(short) >= MIN_LIKE_CHARS and short in long):
        return 1.0
    start = common_prefix(expected, sent)
    frame = (start + common_suffix(expected, sent, start)) / max(len(expected), len(sent))
    mine, others = Counter(expected.split()), Counter(sent.split())
    shared = sum((mine & others).values()) / max(1, min(mine.total(), others.total()))
    return max(frame, shared * 0.99)


def common_prefix(one: str, other: str) -> int:
    """Characters that both begin with."""
    return len(common_beginning(one, other))


def common_suffix(one: str, other: str, start: int = 0) -> int:
    """Characters that both end with, not counting the first `start` of either."""
    return common_prefix(one[start:][::-1], other[start:][::-1])


# -- encodings ---------------------------------------------------------------------------------------------------


def is_re_encoded(expected: str, sent: str) -> bool:
    """Whether both say the same letters in different bytes."""
    if folded(expected) == folded(sent) or _same_json(expected, sent):
        return True
    return any(sent == made for made in _encodings(expected)) or any(expected == made for made in _encodings(sent))


def folded(text: str) -> str:
    """The letters of a text: one Unicode form, no white space, nothing invisible, one kind of quotes, no escapes.

    >>> folded("cafe\\u0301 au\\u00a0lait") == folded("caf\\u00e9 au lait")
    True
    """
    if "\\" in text:
        text = _ESCAPE.sub(_unescaped, text)
    if "&" in text:
        text = html.unescape(text)
    if text.isascii():
        return _UNSEEN.sub("", text)
    return _UNSEEN.sub("", unicodedata.normalize("NFKC", text).translate(_TYPOGRAPHY))


def _unescaped(found: re.Match[str]) -> str:
    high, low, *codes, control = found.groups()
    if control:
        return _CONTROLS.get(control, control)
    if high:
        return chr(0x10000 + ((int(high, 16) - 0xD800) << 10) + int(low, 16) - 0xDC00)
    number = int(next(filter(None, codes)), 16)
    return found[0] if number > 0x10FFFF or 0xD800 <= number <= 0xDFFF else chr(number)


def _same_json(expected: str, sent: str) -> bool:
    if expected.lstrip()[:1] not in ("{", "[") or sent.lstrip()[:1] not in ("{", "["):
        return False
    try:
        one, other = json.loads(expected), json.loads(sent)
    except (ValueError, RecursionError):
        return False
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def _encodings(text: str) -> Iterator[str]:
    """The same text as other layers of a program like to write it."""
    for ascii_only in (True, False):
        quoted = json.dumps(text, ensure_ascii=ascii_only)
        yield quoted
        yield quoted[1:-1]
    yield html.escape(text)
    yield html.escape(text, quote=False)
    if " " in text or "%" in text:
        yield urllib.parse.quote(text, errors="replace")
        yield urllib.parse.quote(text, safe="", errors="replace")
        yield urllib.parse.quote_plus(text, errors="replace")
    if text.isascii():
        return
    for errors in ("replace", "ignore", "backslashreplace", "xmlcharrefreplace"):
        yield text.encode("ascii", errors).decode("ascii")
    data = text.encode("utf-8", "replace")
    for charset in ("latin-1", "cp1252"):
        yield data.decode(charset, "replace")
        yield data.decode(charset, "ignore")
    yield data.decode("ascii", "replace")
    yield unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()


MAX_REPEATS = 20
"""A unit that stands there more often is matched by its number: equal neighbours cost the square of their count."""
LIKE_ENOUGH = 0.5
LIKE_ENOUGH_IN_FRAME = 0.3
"""Texts of one role and type are taken for each other sooner."""
REACH = 12
"""How far apart within a gap two texts are still compared."""


@dataclass(slots=True)
class Alignment:
    """What became of each unit; pairs are (expected, sent)."""

    matched: dict[int, int] = field(default_factory=dict)
    """From sent to expected, also of those that moved or changed."""
    moved: list[tuple[int, int]] = field(default_factory=list)
    changed: list[tuple[int, int]] = field(default_factory=list)
    recast: list[tuple[list[int], list[int]]] = field(default_factory=list)
    removed: list[int] = field(default_factory=list)
    added: list[int] = field(default_factory=list)


def align(expected: Sequence[Unit], sent: Sequence[Unit]) -> Alignment:
    """Find out what became of every unit."""
    alignment = Alignment()
    gaps = _gaps(expected, sent, alignment)
    elsewhere: dict[Hashable, list[int]] = defaultdict(list)
    for _, added in gaps:
        for index in added:
            elsewhere[sent[index].key].append(index)
    taken: set[int] = set()
    for removed, _ in gaps:
        for index in list(removed):
            if elsewhere[expected[index].key]:
                other = elsewhere[expected[index].key].pop(0)
                removed.remove(index)
                taken.add(other)
                alignment.moved.append((index, other))
                alignment.matched[other] = index
    for removed, added in gaps:
        for channel in dict.fromkeys((*(expected[i].channel for i in removed), *(sent[i].channel for i in added))):
            mine = [index for index in removed if expected[index].channel == channel]
            theirs = [index for index in added if sent[index].channel == channel and index not in taken]
            _fill(expected, sent, mine, theirs, alignment)
    alignment.removed.sort()
    alignment.added.sort()
    return alignment


def _gaps(expected: Sequence[Unit], sent: Sequence[Unit], made: Alignment) -> list[tuple[list[int], list[int]]]:
    one, other = _numbered(expected), _numbered(sent)
    gaps: list[tuple[list[int], list[int]]] = []
    for tag, start, stop, from_, to in SequenceMatcher(None, one, other, autojunk=False).get_opcodes():
        if tag == "equal":
            made.matched.update(zip(range(from_, to), range(start, stop), strict=True))
        else:
            gaps.append((list(range(start, stop)), list(range(from_, to))))
    return gaps


def _numbered(units: Sequence[Unit]) -> list[Hashable]:
    repeats = Counter(unit.key for unit in units)
    seen: Counter[Hashable] = Counter()
    keys: list[Hashable] = []
    for unit in units:
        seen[unit.key] += 1
        keys.append(unit.key if repeats[unit.key] <= MAX_REPEATS else (unit.key, seen[unit.key]))
    return keys


def _fill(
    expected: Sequence[Unit], sent: Sequence[Unit], removed: list[int], added: list[int], alignment: Alignment
) -> None:
    """Pair what is left of one gap and channel."""
    if removed and added:
        letters = {index: folded(sent[index].text) for index in added}
        for index in list(removed):
            mine = folded(expected[index].text)
            same = [other for other in added if letters[other] == mine]
            if same and (mine or expected[index].frame == sent[same[0]].frame):
                _pair(index, same[0], removed, added, alignment)
        if _is_recast([expected[index] for index in removed], [sent[index] for index in added]):
            alignment.recast.append((list(removed), list(added)))
            alignment.matched.update(dict.fromkeys(added, removed[0]))
            return
        for index in list(removed):
            best = _most_like(expected, sent, index, removed, added)
            if best is not None:
                _pair(index, best, removed, added, alignment)
        if [expected[index].frame for index in removed] == [sent[index].frame for index in added]:
            for index, other in list(zip(removed, added, strict=True)):
                _pair(index, other, removed, added, alignment)
    alignment.removed += removed
    alignment.added += added


def _is_recast(removed: Sequence[Unit], added: Sequence[Unit]) -> bool:
    """Whether these are the same pieces cut up or joined differently; of a head that is one text, also cut short."""
    if not removed or not added or len(removed) == len(added) == 1:
        return False
    expected, came = joined(removed), joined(added)
    if removed[0].channel == "head" and len(removed) != len(added):
        return change_of(expected, came) != "altered_text"
    return bool(folded(expected)) and is_re_encoded(expected, came)


def joined(units: Iterable[Unit]) -> str:
    """The texts of neighbours as one."""
    return JOINT.join(unit.text for unit in units)


def _pair(index: int, other: int, removed: list[int], added: list[int], made: Alignment) -> None:
    removed.remove(index)
    added.remove(other)
    made.changed.append((index, other))
    made.matched[other] = index


def _most_like(
    expected: Sequence[Unit], sent: Sequence[Unit], index: int, removed: list[int], added: list[int]
) -> int | None:
    """The unit in this gap that most likely came from this one."""
    wanted, at = expected[index], removed.index(index)
    best, best_score = None, 0.0
    for other in added[max(0, at - REACH) : at + REACH]:
        candidate = sent[other]
        same_frame = wanted.frame == candidate.frame.removesuffix(CUT)
        if not same_frame and not (wanted.text and candidate.text):
            continue
        score = likeness(wanted.text, candidate.text)
        if score >= (LIKE_ENOUGH_IN_FRAME if same_frame else LIKE_ENOUGH) and score + same_frame > best_score:
            best, best_score = other, score + same_frame
    return best
