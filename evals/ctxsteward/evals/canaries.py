"""Canaries: values of seven kinds for conversations, and whether a text shows a value.

`planted_values` draws sentences that state a value; `compression` plants them in its conversations. Values are searched
in normalized text (`normalize`, `shows`), never inside a longer number.
"""

from __future__ import annotations

import random
import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from .phrasings import Texts

Half = Literal["dev", "held_out"]
CanaryKind = Literal["safety_rule", "constraint", "decision", "identifier", "number", "updated_value", "near_duplicate"]
KINDS: tuple[CanaryKind, ...] = get_args(CanaryKind)

_MARKED = re.compile(r"⟦(.+?)⟧")
_SLOT = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class TypedCanary:
    """A planted value."""

    kind: CanaryKind
    value: str
    ordinals: tuple[int, ...]
    """1-based places of the messages that state it; the last one is the newest."""
    stale: tuple[str, ...] = ()
    """Outdated values."""


def read_marks(text: str) -> tuple[str, tuple[str, ...]]:
    """Return a text without its marks, and the marked parts.

    >>> read_marks("⟦Oslo⟧ moves to ⟦week 9⟧.")
    ('Oslo moves to week 9.', ('Oslo', 'week 9'))
    """
    return _MARKED.sub(r"\1", text), tuple(_MARKED.findall(text))


def normalize(text: str) -> str:
    """Normalize a text for searches: NFKC, lower case, no thousands separators, no white space.

    White space between two digits stays (as one space), so that two numbers never become one.

    >>> normalize("Ｐort 5,432  ok, 15 \\n 25")
    'port5432ok,15 25'
    """
    text = unicodedata.normalize("NFKC", text).casefold()
    text = re.sub(r"(?<=\d),(?=\d{3}(?!\d))", "", text)
    return re.sub(r"\s+", "", re.sub(r"(?<=\d)\s+(?=\d)", "\0", text)).replace("\0", " ")


def shows(window: str, value: str) -> bool:
    """Return whether a value stands in a normalized text outside longer numbers."""
    wanted = normalize(value)
    for match in re.finditer(re.escape(wanted), window):
        before, after = window[match.start() - 1 : match.start()], window[match.end() : match.end() + 1]
        digits = (wanted[:1].isdigit() and before.isdigit()) or (wanted[-1:].isdigit() and after.isdigit())
        if not digits:
            return True
    return False


Planted = tuple[CanaryKind, list[tuple[int, str]], list[str]]


def planted_values(
    rng: random.Random,
    phrasings: Mapping[str, Texts],
    slots: Mapping[str, Texts],
    turns: int,
    count: int,
) -> Iterator[Planted]:
    """Yield values of all kinds in rotation, spread over all turns; each phrasing is used before any repeats."""
    decks: dict[CanaryKind, list[str]] = {kind: [] for kind in KINDS}
    places = [int((i + rng.random()) * (turns - 4) / count) + 1 for i in range(count)]
    rng.shuffle(places)
    made = 0
    while made < count:
        kind = KINDS[made % len(KINDS)]
        if not decks[kind]:
            decks[kind] = rng.sample(phrasings[kind], len(phrasings[kind]))
        parts = [part.strip() for part in filled(decks[kind].pop(), rng, slots).split("||")]
        read = [read_marks(part) for part in parts]
        sentences, values = [plain for plain, _ in read], [marked[0] for _, marked in read]
        place = places[made]
        if kind == "updated_value":
            later = min(turns - 2, place + rng.randint(3, max(4, turns // 2)))
            yield kind, [(place, sentences[0]), (later, sentences[1])], values
        else:
            for offset, (sentence, value) in enumerate(zip(sentences, values, strict=True)):
                yield kind, [(min(turns - 2, place + 2 * offset), sentence)], [value]
        made += 1


def filled(template: str, rng: random.Random, slots: Mapping[str, Texts]) -> str:
    """Fill the ``{slots}`` of a phrasing; a slot and its second (``{person2}``) differ."""
    chosen: dict[str, str] = {}

    def fill(match: re.Match[str]) -> str:
        slot = match[1]
        if slot not in chosen:
            taken = {chosen[other] for other in chosen if other.rstrip("2") == slot.rstrip("2")}
            for _ in range(20):
                chosen[slot] = _slot(slot, rng, slots)
                if chosen[slot] not in taken:
                    break
        return chosen[slot]

    return _SLOT.sub(fill, template)


RANGES = {
    "n1": (3, 9),
    "m1": (3, 9),
    "n2": (11, 49),
    "n3": (120, 480),
    "m3": (510, 980),
    "n4": (1200, 4900),
    "m4": (5100, 9900),
    "port": (3000, 9999),
}
"""Numeric slots and their ranges."""


def _slot(slot: str, rng: random.Random, slots: Mapping[str, Texts]) -> str:
    if slot in slots or slot.rstrip("2") in slots:
        return rng.choice(slots.get(slot) or slots[slot.rstrip("2")])
    name = slot.rstrip("2") if slot[:-1].isalpha() and len(slot) > 3 else slot
    if name in RANGES:
        return str(rng.randint(*RANGES[name]))
    match name:
        case "m2":
            return str(rng.randint(51, 59) if rng.random() < 0.5 else rng.randint(50, 58))
        case "money":
            return f"${rng.randint(2, 98) * 50:,}"
        case "ticket":
            return f"{rng.choice(('OPS', 'INC', 'CORE', 'PAY'))}-{rng.randint(100, 9999)}"
        case "order":
            return f"{rng.choice('WQRT')}{rng.randint(1000000, 9999999)}"
        case "code":
            return "".join(rng.choice("ABCDEFGHJKLMNPQRSTUVWXYZ") for _ in range(3)) + str(rng.randint(100, 999))
        case "flight":
            return f"{rng.choice(('LH', 'KL', 'CA', 'MU', 'HAT'))}{rng.randint(100, 999)}"
        case "hash":
            return f"{rng.randrange(16**9):09x}a4"
        case "email":
            desk, house = rng.choice(("desk", "claims", "m.olsen", "front")), rng.choice(("halden", "orchid", "calder"))
            return f"{desk}{rng.randint(1, 99)}@{house}.example"
        case "phone":
            return f"+49 30 {rng.randint(1000, 9999)} {rng.randint(1000, 9999)}"
        case "path":
            top, folder = rng.choice(("data", "etc", "exports")), rng.choice(("ledger", "falcon", "nightly"))
            return f"/srv/{top}/{folder}-{rng.randint(1, 99)}/settings.yaml"
        case "url":
            return f"https://wiki.example.org/{rng.choice(('runbooks', 'guides'))}/{rng.randint(100, 999)}"
        case _:
            raise KeyError(slot)
