"""The kind of a sentence, and its worth for keeping (0-100, comparable over a whole session).

`extraction` and `bullets` rank sentences by it. Order of worth: safety rules and constraints > updated values and
decisions, identifiers > preferences, numbers, errors, open items > facts > chatter. A fact's worth is the hand-set cue
score of durable turns (first person, event and time words, names, digits, length, questions). A sentence of an
assistant is worth less than the same one of a user, because it is mostly an echo or advice.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal, NamedTuple

from ctxsteward.language.values import DATE_WORDS, DISTINCTIVE, NUMBER_WORDS, Value, spelled_number, typed_values
from ctxsteward.language.word_uses import pairs_of, words_of
from ctxsteward.language.words import CONTRASTS, STOP, SentenceSpan, bigrams, lists, stem
from ctxsteward.schemas.summary import LossKind, WordUse

from .cues import CHINESE, ENGLISH, LONGEST, CuePhrase, Stand, deeds, follows, follows_chinese, moods

FLOOR = 14.0
"""A sentence below this worth is chatter and gets no bullet."""

_WORD = re.compile(r"[A-Za-z][A-Za-z'-]*[A-Za-z]|[A-Za-z]")
_LISTS = lists("cues")
_ZH_FALSE = _LISTS.pattern("zh_false")
_TOLD = frozenset("it he she they i i've i'd we've have has had he's it's she's".split())  # noqa: SIM905
"""After these words "never" belongs to a narrative ("it never ends") and gives no rule."""
_IDLE: dict[str, tuple[str, ...]] = {
    word: tuple(following.split("; ")) for word, following in (row.split(" | ") for row in _LISTS.rows("idle"))
}
"""Cue word → following words with which it guesses, cheers or chats ("that must have been fun") and gives no rule."""
_UNCANCELLED = frozenset(("chatter", "goal", "todo", "over", "again"))
_POLITE = _LISTS.phrases("polite")
"""Openings of questions that request an action."""
_FIRST_PERSON = frozenset(_LISTS.words("first_person"))


@dataclass(frozen=True, slots=True, kw_only=True)
class SentenceReading:
    """Kind, worth, values and other findings about one sentence."""

    text: str
    kind: LossKind
    worth: float
    """Worth, 0-100."""
    values: tuple[Value, ...]
    subject: frozenset[str]
    """Content words: English stems, Chinese bigrams."""
    names: frozenset[str]
    """Capitalized words inside the sentence, in lower case."""
    updates: int
    """Strength of the strongest update cue, 0-3."""
    revokes: bool
    rule: float
    """Strength of the rule cues, 0 and up; 3 is a rule beyond doubt."""
    stands: Stand = ""
    """Whether the sentence sets a goal or a task, or reports its end."""
    deeds: frozenset[str] = frozenset()
    """Roots of the deeds that it reports as done."""
    marks: tuple[Value, ...] = ()
    """Offsets of its cues (as values without content), so that shortening keeps their clauses."""

    @property
    def norms(self) -> frozenset[str]:
        """Normalized forms of its values."""
        return frozenset(value.norm for value in self.values)


class SentenceParts(NamedTuple):
    """Values, names and content words of a sentence, as in `SentenceReading`."""

    values: tuple[Value, ...]
    names: frozenset[str]
    subject: frozenset[str]


def _idles(words: list[tuple[int, str]], index: int) -> bool:
    following = " ".join(word for _, word in words[index + 1 : index + 3]) + " "
    return any(following.startswith(f"{phrase} ") for phrase in _IDLE[words[index][1]])


def read_sentence(text: str, role: str) -> SentenceReading:
    """Classify one sentence said by `role` (``user``, ``assistant``, ``tool`` …)."""
    low = text.lower().replace("’", "'") if "’" in text else text.lower()
    if len(low) != len(text):
        low = text
    words = [(match.start(), match.group()) for match in _WORD.finditer(low)]
    cues = [
        (start, cue)
        for index, (start, word) in enumerate(words)
        for cue in ENGLISH.get(word, ())
        if (not cue.rest or follows(words, index, cue))
        and (not cue.at_start or _starts(low, start))
        and (word != "never" or cue.rest or not index or words[index - 1][1] not in _TOLD)
        and not (cue.kind in ("rule", "bound") and word in _IDLE and _idles(words, index))
    ]
    ascii_only = text.isascii()
    if not ascii_only:
        cues.extend(_chinese_cues(low))
    if role == "user" and len(text) <= LONGEST:
        cues.extend(moods(text, low))
    values, names, subject = _parts(text, words, ascii_only)
    return _judged(text, low, role, cues, values, names, subject, bool(words))


def read_parts(text: str) -> SentenceParts:
    """Return the values, names and content words that `read_sentence` finds, in half its time and without worth."""
    low = text.lower().replace("’", "'") if "’" in text else text.lower()
    if len(low) != len(text):
        low = text
    return _parts(text, [(match.start(), match.group()) for match in _WORD.finditer(low)], text.isascii())


def _parts(text: str, words: list[tuple[int, str]], ascii_only: bool) -> SentenceParts:
    values = typed_values(text)
    spelled = tuple(
        value
        for index, (_, word) in enumerate(words)
        if (word in NUMBER_WORDS or word in DATE_WORDS or "-" in word)
        and (value := _spelled(words, index, text, values)) is not None
    )
    values = tuple(sorted(values + spelled, key=lambda value: value.start)) if spelled else values
    return SentenceParts(values, *_content(text, words, values, ascii_only))


def _spelled(words: list[tuple[int, str]], index: int, text: str, values: tuple[Value, ...]) -> Value | None:
    value = spelled_number(words, index, text)
    if value is None or any(other.start < value.stop and value.start < other.stop for other in values):
        return None
    return value


def _starts(low: str, start: int) -> bool:
    before = low[max(0, start - 12) : start].rstrip(" \"'“(*_-")
    return (
        not before
        or before[-1] in ",:;.!—–，。：；！…"
        or before.endswith((" and", " so", "so", "please", "but", "then"))
    )


def _chinese_cues(low: str) -> list[tuple[int, CuePhrase]]:
    masked = _ZH_FALSE.sub(lambda match: " " * len(match.group()), low)
    return [
        (index, cue)
        for index, char in enumerate(masked)
        if char in CHINESE
        for cue in CHINESE[char]
        if follows_chinese(masked, index, cue)
    ] + [
        (match.start(), _CHATTER)
        for match in (_ZH_FALSE.finditer(low) if masked != low else ())
        if "知道" in match.group()
    ]


_CHATTER = CuePhrase("chatter", 2, "不知道", (), False)


def _content(
    text: str, words: list[tuple[int, str]], values: tuple[Value, ...], ascii_only: bool
) -> tuple[frozenset[str], frozenset[str]]:
    names: set[str] = set()
    subject: set[str] = set()
    spans = [(value.start, value.stop) for value in values if value.kind != "name"]
    for index, (start, word) in enumerate(words):
        if word in STOP or (spans and any(a <= start < b for a, b in spans)):
            continue
        if word in CONTRASTS:
            subject.add(word)
        elif len(word) > 1:
            subject.add(stem(word))
        if (index and text[start].isupper() and text[start - 2 : start] not in (". ", "! ", "? ", ": ")) or (
            not ascii_only and _beside_chinese(text, start, len(word))
        ):
            names.add(word.removesuffix("'s"))
    if not ascii_only:
        subject |= bigrams(_without(text, spans))
    return frozenset(names), frozenset(subject)


def _without(text: str, spans: list[tuple[int, int]]) -> str:
    for start, stop in spans:
        text = text[:start] + " " * (stop - start) + text[stop:]
    return text


def _beside_chinese(text: str, start: int, length: int) -> bool:
    before, after = text[start - 1 : start], text[start + length : start + length + 1]
    return before > "\u3400" or after > "\u3400"


def _judged(
    text: str,
    low: str,
    role: str,
    cues: list[tuple[int, CuePhrase]],
    values: tuple[Value, ...],
    names: frozenset[str],
    subject: frozenset[str],
    has_words: bool,
) -> SentenceReading:
    weight: dict[str, float] = {}
    cancelled = {start for start, cue in cues if cue.kind == "chatter"}
    for start, cue in cues:
        if start in cancelled and cue.kind not in _UNCANCELLED:  # "never mind" gives no "never"
            continue
        top = weight.get(cue.kind, 0.0)
        weight[cue.kind] = max(top, cue.weight) + (0.5 if top and cue.weight > 1 else 0.0)
    if low.rstrip(".! ").endswith((" it is", " it'll be")) and "decision" not in weight:
        weight["decision"] = 3.0
    rule = max(0.0, weight.get("rule", 0.0) - (0.5 if "chatter" in weight else 0.0))
    kind, worth = _strongest(role, weight, rule, values, names)
    fact = _fact_worth(text, low, role, weight, values, names, subject, has_words)
    if fact > worth:
        kind, worth = "fact", fact
    question = text.rstrip("\"'”’ ").endswith(("?", "？"))
    stands = _stands(weight)
    if question and (role == "assistant" or weight.get("todo", 0) < 3 or not low.startswith(_POLITE)):
        kind, worth = _asked(role, kind, worth, rule, values)
        stands = ""
    if worth >= FLOOR:
        worth += min(2, len(values)) - min(12.0, 0.12 * max(0.0, _token_guess(text) - 16))
    return SentenceReading(
        text=text,
        kind=kind,
        worth=worth,
        values=values,
        subject=subject,
        names=names,
        updates=0 if question else int(weight.get("update", 0)),
        revokes=weight.get("revoke", 0) >= 3 and not question,
        rule=rule,
        stands=stands,
        deeds=frozenset() if question else deeds(low),
        marks=tuple(
            Value("number", "", "", at, at + 1) for at, cue in cues if cue.kind != "chatter" and cue.weight > 1
        ),
    )


def _stands(weight: dict[str, float]) -> Stand:
    if weight.get("again", 0) >= 3:
        return "open"
    if weight.get("over", 0) >= 3 or weight.get("revoke", 0) >= 2:
        return "over"
    return "open" if max(weight.get("goal", 0), weight.get("todo", 0)) >= 3 else ""


def _strongest(
    role: str, weight: dict[str, float], rule: float, values: tuple[Value, ...], names: frozenset[str]
) -> tuple[LossKind, float]:
    own = role != "assistant"
    options: list[tuple[float, LossKind]] = [(0.0, "fact")]
    if rule >= 2:
        options.append(((92 if rule >= 3 else 84 if rule >= 2.5 else 77) * (1.0 if own else 0.7), "constraint"))
    counted = [value for value in values if value.kind not in DISTINCTIVE and value.kind != "name"]
    if counted and weight.get("bound", 0) >= 2:
        options.append((80 if own else 46, "constraint"))
    if weight.get("update", 0) >= 3:
        options.append(
            (
                (86 if own else 74) if values or names else (72 if own else 30),
                "number" if counted else "decision",
            )
        )
    if weight.get("revoke", 0) >= 3 and own:
        options.append((80, "decision"))
    if weight.get("decision", 0) >= 3:
        options.append((81 if own else 64 if values or names else 36, "decision"))
    elif weight.get("decision", 0) >= 2 and (weight.get("over", 0) < 3 or values):
        options.append((75, "decision"))
    for value in values:
        if value.kind in DISTINCTIVE:
            kind: LossKind = "url" if value.kind == "url" else "path" if value.kind == "path" else "identifier"
            options.append(((76 if kind == "identifier" else 70) - (0 if own else 6), kind))
    if "label" in weight and (values or names):
        options.append((77 if own else 71, "identifier"))
    if counted:
        bare = all(value.norm in ("1", "2") or (value.kind == "number" and len(value.norm) < 3) for value in counted)
        options.append(((52 if bare else 64) * (1.0 if own else 0.6), "number"))
    if weight.get("preference", 0) >= 2:
        options.append((63 if own else 20, "preference"))
    if weight.get("error", 0) >= 3:
        options.append((58 if own else 50, "error"))
    if own and _stands(weight) == "open" and (wish := max(weight.get("goal", 0), weight.get("todo", 0))) >= 3:
        options.append((83 if wish == weight.get("goal", 0) else 79, "open_item"))
    if weight.get("open", 0) >= 2 and own:
        options.append((50, "open_item"))
    worth, kind = max(options, key=lambda option: option[0])
    return kind, worth


def _asked(role: str, kind: LossKind, worth: float, rule: float, values: tuple[Value, ...]) -> tuple[LossKind, float]:
    if role == "assistant":
        return "open_item", min(worth, 30.0 if values else 10.0)
    if any(value.kind in DISTINCTIVE for value in values):
        return kind, min(worth, 68.0)
    if kind == "constraint" and rule >= 3:
        return kind, min(worth, 80.0)
    return "open_item", min(worth, 50.0 if values else 34.0)


def _fact_worth(
    text: str,
    low: str,
    role: str,
    weight: dict[str, float],
    values: tuple[Value, ...],
    names: frozenset[str],
    subject: frozenset[str],
    has_words: bool,
) -> float:
    """Return the cue score of durable turns, on a scale of about 8 to 45."""
    size = len(subject) if has_words else len(subject) // 2
    if size < 3 and not values and not names:
        return 0.0
    score = 0.25 * min(4, len(names)) + 0.5 * math.log(max(3, size)) + 0.4 * bool(values) + 0.9 * ("event" in weight)
    head = low[:16]
    if any(word in _FIRST_PERSON for word in head.split(" ")[:3]) or " my " in low or "我" in text:
        score += 0.35
    if "chatter" in weight:
        score -= 0.9
    if role == "assistant":
        return max(0.0, 5 + 6.5 * score)
    return max(0.0, 8 + 11 * score + (14 if names and "chatter" not in weight else 0))


def _token_guess(text: str) -> float:
    """Estimate the tokens of a text: a quarter of its ASCII characters, or .7 of the characters of other texts."""
    return len(text) / 4.2 if text.isascii() else len(text) * 0.7


# -- a piece of a text ---------------------------------------------------------------------------------------------

_PASTED = re.compile(r"^```[^\n]*\n.*?(?:^```|\Z)|^\|[^\n]*", re.DOTALL | re.MULTILINE)
PASTED_WORTH = 45.0
"""Most worth of a line of pasted code, logs or a table: it is material, and its reference leads to all of it."""


def read_piece(text: str, piece: SentenceSpan, role: str) -> SentenceReading:
    """Read one piece of a text. In pasted code or a table nothing counts as a wish, a value or an update."""
    reading = known_reading(text[piece.start : piece.stop], role)
    pasted = reading.worth > 0 and any(start <= piece.start < stop for start, stop in _pasted(text))
    return as_pasted(reading) if pasted else reading


def as_pasted(reading: SentenceReading) -> SentenceReading:
    """Return the reading of a sentence inside pasted code or a table."""
    none: frozenset[str] = frozenset()
    worth = min(PASTED_WORTH, reading.worth)
    return replace(
        reading, worth=worth, values=(), names=none, subject=none, stands="", deeds=none, updates=0, revokes=False
    )


@lru_cache(maxsize=256)
def _pasted(text: str) -> tuple[tuple[int, int], ...]:
    """Return the spans of code blocks and tables."""
    if "```" not in text and "|" not in text:
        return ()
    return tuple(match.span() for match in _PASTED.finditer(text))


@lru_cache(maxsize=4096)
def known_reading(text: str, role: str) -> SentenceReading:
    """Return `read_sentence(text, role)`, cached because the same texts recur at every compaction."""
    return read_sentence(text, role)


Settling = Literal["", "open", "over", "done"]
"""Whether a statement sets a goal or a task (open), reports its end (over), or only reports a deed (done)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedSentence:
    """A sentence with its place in the session."""

    reading: SentenceReading
    refs: tuple[str, ...]
    order: int
    """Ordinal of the newest original that contains it."""
    role: str
    place: Literal["source", "standing", "visible"]
    index: int
    """Position in its own sequence: message, standing bullet or visible message."""
    among: int = 1
    """Number of sentences in its text."""
    is_first: bool = True
    """Whether it is the first sentence of its text."""
    value: float = 0.0
    """Worth of a standing bullet when it was made."""

    @property
    def words(self) -> int:
        """Number of its content words."""
        return len(self.reading.subject)

    @property
    def settling(self) -> Settling:
        """Whether it wants something, or reports that something is over or was done."""
        return self.reading.stands or ("done" if self.reading.deeds else "")


LEAST_WORDS = 3
"""Content words from which a sentence without cue, value or name is weighed; a shorter one is a greeting or a nod."""
SHORT_MESSAGE_SENTENCES = 3
CROWD_WORTH = 12.0
"""Points that an assistant's sentence loses for each factor e of sentences in its message above
`SHORT_MESSAGE_SENTENCES`."""
BULLET_OVERHEAD_TOKENS = 5
"""Tokens of a bullet's marker and reference, as the builder renders them."""
MOST_WORTH = 99.0
SHORT_STATEMENT_TOKENS = 27
RARE_MESSAGES = 3
"""Most messages that contain a rare word."""
MOST_SHARED = 3


class NeedFeatures(NamedTuple):
    """What the fitted worth of a user's sentence looks at (`need_features`), or the weights of the same."""

    new_pairs: float
    """Logarithm of the pairs of words that no other message has, per token."""
    length: float
    """Squared distance of the logarithm of its tokens from that of 20: nods, and sentences that take much room."""
    later_sentence: float
    """Logarithm of the number of sentences, for all but the first sentence of a message."""
    question: float
    open_wish: float
    """A short sentence that sets a goal or a task."""
    rule: float
    """Whether it reads as a rule or a limit and asks nothing."""
    shared_words: float
    """Number of its rare words that an older message has: it may be the newest about their thing."""


class NeedWeights(NamedTuple):
    """Weights in points of worth."""

    base: float
    of: NeedFeatures


@lru_cache(maxsize=1)
def need_weights() -> NeedWeights:
    """Return the weights of ``need_weights.json``; ``python -m benchmarks.need_weights`` fits such weights."""
    from importlib.resources import files

    document = json.loads(files(__package__).joinpath("need_weights.json").read_text(encoding="utf-8"))
    return NeedWeights(document["base"], NeedFeatures(**document["weights"]))


def asks(text: str) -> bool:
    """Return whether a sentence ends with a question mark, quotation marks and parentheses aside."""
    return text.rstrip("\"'”’ )").endswith(("?", "？"))


def rare_words(statement: PlacedSentence, uses: Callable[[str], WordUse]) -> dict[str, int]:
    """Return the words of a sentence that few messages of users have, with the ordinal of the first such message."""
    found = {word: uses(word) for word in words_of(statement.reading.text)}
    return {word: use.first for word, use in found.items() if 0 < use.messages <= RARE_MESSAGES}


def need_features(statement: PlacedSentence, uses: Callable[[str], WordUse]) -> NeedFeatures:
    """Return the features of a user's sentence; `uses` counts words and pairs in all messages of users so far."""
    text = statement.reading.text
    tokens = _token_guess(text) + BULLET_OVERHEAD_TOKENS
    is_question = asks(text)
    new_pairs = sum(uses(pair).messages <= 1 for pair in pairs_of(text))
    shared = sum(first < statement.order for first in rare_words(statement, uses).values())
    return NeedFeatures(
        new_pairs=math.log(0.03 + new_pairs / tokens),
        length=(math.log(tokens) - math.log(20)) ** 2,
        later_sentence=0.0 if statement.is_first else math.log(statement.among),
        question=float(is_question),
        open_wish=float(
            statement.reading.stands == "open" and tokens <= SHORT_STATEMENT_TOKENS + BULLET_OVERHEAD_TOKENS
        ),
        rule=float(statement.reading.kind == "constraint" and not is_question),
        shared_words=float(min(MOST_SHARED, shared)),
    )


def standing_worth(statement: PlacedSentence, uses: Callable[[str], WordUse]) -> float:
    """Return the worth of a sentence among all of its session, 0-100.

    A user's sentence has the fitted worth: how likely a later turn needs it, for the room that it takes. The only lists
    of words in it are those of rules, goals and tasks. A line of pasted code and an assistant's sentence have the worth
    of their cues, less in a long message.
    """
    reading = statement.reading
    if statement.place == "standing":
        return statement.value
    if not reading.worth and len(reading.subject) < LEAST_WORDS:
        return 0.0
    if statement.role != "user" or not reading.subject:  # a line of pasted code has no subject
        return max(0.0, reading.worth - CROWD_WORTH * math.log(max(1.0, statement.among / SHORT_MESSAGE_SENTENCES)))
    base, weights = need_weights()
    features = need_features(statement, uses)
    worth = base + math.fsum(weight * feature for weight, feature in zip(weights, features, strict=True))
    return min(MOST_WORTH, max(FLOOR, worth))
