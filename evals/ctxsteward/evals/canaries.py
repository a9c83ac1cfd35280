"""Canaries: values planted in long conversations, and whether a window still shows them.

A scenario is a conversation of OpenAI chat dicts (small talk, questions, tool calls and results) with 25 to 40 canaries
planted in natural sentences at all positions, or one of the conversations written by hand (`stories`). A canary's
`value` must be found in the window after compaction; a `stale` value must not be shown unless the newer one is. Values
are searched in normalized text (`normalize`, `shows`). Same seed, same scenario.

The comparison with other libraries (`peers`) measures on these scenarios. The suites take `normalize` and `shows` for
their own checks, and `compression` plants the same kinds of values in conversations of its own.
"""

from __future__ import annotations

import json
import random
import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, cast, get_args

from ctxsteward.schemas.message import Wire

from .phrasings import Language, StoryText, Texts, canary_phrasings, story_texts

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


@dataclass(frozen=True, slots=True, kw_only=True)
class CanaryScenario:
    """A conversation and the values planted in it."""

    name: str
    messages: tuple[Wire, ...]
    canaries: tuple[TypedCanary, ...]


def normalize(text: str) -> str:
    """Normalize a text for searches: NFKC, lower case, no thousands separators, no white space.

    White space between two digits stays (as one space), so that two numbers never become one.

    >>> normalize("Ｐort 5,432  ok, 15 \\n 25")
    'port5432ok,15 25'
    """
    text = unicodedata.normalize("NFKC", text).casefold()
    text = re.sub(r"(?<=\d),(?=\d{3}(?!\d))", "", text)
    return re.sub(r"\s+", "", re.sub(r"(?<=\d)\s+(?=\d)", "\0", text)).replace("\0", " ")


def found_in(scenario: CanaryScenario, window_text: str) -> list[TypedCanary]:
    """Return the canaries that a window shows."""
    window = normalize(window_text)
    return [canary for canary in scenario.canaries if shows(window, canary.value)]


def stale_in(scenario: CanaryScenario, window_text: str) -> list[TypedCanary]:
    """Return the canaries whose old value a window shows without the new one."""
    window = normalize(window_text)
    return [
        canary
        for canary in scenario.canaries
        if any(shows(window, old) for old in canary.stale) and not shows(window, canary.value)
    ]


def shows(window: str, value: str) -> bool:
    """Return whether a value stands in a normalized text outside longer numbers."""
    wanted = normalize(value)
    for match in re.finditer(re.escape(wanted), window):
        before, after = window[match.start() - 1 : match.start()], window[match.end() : match.end() + 1]
        digits = (wanted[:1].isdigit() and before.isdigit()) or (wanted[-1:].isdigit() and after.isdigit())
        if not digits:
            return True
    return False


def scenario(
    seed: int, language: Language, turns: int = 120, split: Half = "dev", canaries: int = 32
) -> CanaryScenario:
    """Build a conversation of `turns` turns with about `canaries` planted values."""
    rng = random.Random(f"canaries {seed} {language} {split}")
    texts = canary_phrasings(language)
    phrasings = texts.dev if split == "dev" else texts.held_out
    planted = list(planted_values(rng, phrasings, texts.slots, turns, canaries))
    at: dict[int, list[tuple[int, str]]] = {}
    for index, (_, sentences, _) in enumerate(planted):
        for turn, sentence in sentences:
            at.setdefault(turn, []).append((index, sentence))
    messages: list[Wire] = []
    ordinals: dict[int, list[int]] = {}
    for turn in range(turns):
        news = at.get(turn, [])
        lead = rng.choice(texts.leads) if news else ""
        tail = rng.choice(texts.tails) if news else ""
        text = lead + (" ".join if language == "en" else "".join)(s for _, s in news) + tail
        messages.append({"role": "user", "content": text or filled(rng.choice(texts.user_filler), rng, texts.slots)})
        for index, _ in news:
            ordinals.setdefault(index, []).append(len(messages))
        if rng.random() < 0.25:
            messages.extend(tool_traffic(rng, turn))
        reply = rng.choice(texts.replies) if news and rng.random() < 0.7 else rng.choice(texts.assistant_filler)
        messages.append({"role": "assistant", "content": filled(reply, rng, texts.slots)})
    canaries_planted = tuple(
        TypedCanary(kind=kind, value=values[-1], stale=tuple(values[:-1]), ordinals=tuple(ordinals[index]))
        for index, (kind, _, values) in enumerate(planted)
    )
    return CanaryScenario(name=f"{language}-{split}-{seed}", messages=tuple(messages), canaries=canaries_planted)


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
        values = [_MARKED.findall(part)[0] for part in parts]
        sentences = [_MARKED.sub(r"\1", part) for part in parts]
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


def tool_traffic(rng: random.Random, turn: int) -> list[Wire]:
    """Make a tool call and its result: a search, a lookup or a log."""
    call_id = f"call_{turn}_{rng.randrange(16**6):06x}"
    name, arguments, result = rng.choice((_search, _lookup, _log))(rng)
    call = {"id": call_id, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call_id, "content": result},
    ]


def _search(rng: random.Random) -> tuple[str, dict[str, object], str]:
    snippet = "a passage about the topic at hand"
    rows = [
        {"title": f"Page {rng.randint(1, 999)}", "score": round(rng.random(), 3), "snippet": snippet}
        for _ in range(rng.randint(3, 8))
    ]
    return "search_pages", {"query": "background reading", "limit": len(rows)}, json.dumps(rows)


def _lookup(rng: random.Random) -> tuple[str, dict[str, object], str]:
    key = rng.randint(10**6, 10**7)
    status, items = rng.choice(("open", "closed", "pending")), rng.randint(1, 9)
    record = {"record_id": f"R{key}", "status": status, "items": items, "updated": "2024-05-03"}
    return "get_record", {"record": key}, json.dumps(record)


def _log(rng: random.Random) -> tuple[str, dict[str, object], str]:
    lines = [
        f"12:{rng.randint(10, 59)}:00 INFO worker {rng.randint(1, 8)} done in {rng.randint(5, 900)} ms"
        for _ in range(rng.randint(4, 14))
    ]
    if rng.random() < 0.3:
        lines.insert(len(lines) // 2, f"12:31:07 ERROR worker {rng.randint(1, 8)} lost its connection")
    return "tail_log", {"lines": len(lines)}, "\n".join(lines)


# -- conversations written by hand -----------------------------------------------------------------------------


def stories() -> tuple[CanaryScenario, ...]:
    """Return the conversations written by hand, with the generator's small talk after each turn."""
    return tuple(map(_story, story_texts()))


def _story(story: StoryText) -> CanaryScenario:
    texts = canary_phrasings(story.language)
    rng = random.Random(story.name)
    messages: list[Wire] = []
    places: dict[str, list[int]] = {value: [] for _, value, _ in story.values}
    for role, text in story.lines:
        messages.append({"role": role, "content": text})
        for value in places:
            if role == "user" and value in text:
                places[value].append(len(messages))
        if role == "assistant":
            for _ in range(story.chatter):
                messages.append({"role": "user", "content": filled(rng.choice(texts.user_filler), rng, texts.slots)})
                reply = filled(rng.choice(texts.assistant_filler), rng, texts.slots)
                messages.append({"role": "assistant", "content": reply})
    canaries = tuple(
        TypedCanary(kind=cast(CanaryKind, kind), value=value, stale=stale, ordinals=tuple(places[value]))
        for kind, value, stale in story.values
    )
    return CanaryScenario(name=story.name, messages=tuple(messages), canaries=canaries)
