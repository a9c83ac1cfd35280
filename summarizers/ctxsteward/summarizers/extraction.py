"""The extractive summarizer: no model, typed salience, verbatim quotes, a citation on every bullet; and `Reader`.

Four steps: read the originals into statements (`salience`), drop statements that newer ones replace (`updates`), turn
the rest and the tool outputs into candidates with quoted text, and take the best that fit (`bullets`). A bullet's
`value` (0-100) compares over the whole session, so the builder may drop the smallest of all standing and new bullets.
The same input gives the same bullets; valid messages never raise.

Caps: the first `HEAD_CHARS` and the last `TAIL_CHARS` characters of a text are read. One call reads at most
`LOOK_CHARS` (or 16 per token of the budget) characters of text and `MAX_TOOL_OUTPUTS` tool outputs. In a larger backlog
users' texts are read before assistants', and short ones before long ones. Unread text still resolves by its reference;
the builder accounts for losses.

`Reader` (for recall, by the entry point ``ctxsteward.replacing``) finds the messages of a conversation that replace
earlier ones, because an earlier message that is shown again needs the later ones next to it. A message may make several
statements, each replaced by another message, and these again by later ones; each is followed to its newest. Every
message is read once, up to `READ_CHARS` of its own text; tool results are not read. The rules are those of `updates`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple

from ctxsteward.language.passages import passage_spans
from ctxsteward.language.values import DISTINCTIVE, normalize
from ctxsteward.language.word_uses import WordUses
from ctxsteward.language.words import SentenceSpan, rules_digest, sentences
from ctxsteward.schemas import Bullet, SummarizerInput, Summary, TextPart
from ctxsteward.schemas.summary import LastRawTurn, SourceMessage, Utterance, WordUse

from .bullets import (
    ELLIPSIS,
    HEAD_CHARS,
    TAIL_CHARS,
    BulletCandidate,
    condensed,
    fitted,
    merged,
    ordinal,
    quote,
    tool_bullets,
    tool_outputs,
    without_opening,
)
from .salience import (
    FLOOR,
    PASTED_WORTH,
    SHORT_MESSAGE_SENTENCES,
    PlacedSentence,
    SentenceReading,
    Settling,
    as_pasted,
    asks,
    known_reading,
    rare_words,
    read_piece,
    standing_worth,
)
from .updates import UpdateMatch, UpdateTracker, columns, replaced

NEWER_WORTH = 1.0
"""Worth of a newer statement above the older one that it replaces, so that the older one leaves first."""
MOST_LIFT = 4.0
"""Most points that a statement gains because an older one shares a rare word."""
RULE_CHARS = 200
SENTENCE_CHARS = 110
USER_CHARS = 400
"""A user's sentence is shown whole up to this length or about a fifth of all bullets, whichever is less."""
CONTEXT_CHARS = 60
SETTLED_WORTH = 75.0
"""Least worth of the report that something is done; it may leave once nothing shows the task as open."""


def extractive(source: SummarizerInput, *, budget_tokens: int) -> Summary:
    """Summarize the messages that leave the window into cited, verbatim bullets of at most `budget_tokens`.

    >>> from ctxsteward.schemas import Message
    >>> said = {"role": "user", "content": "Hi there! Refunds above $500 need Dana's sign-off. Lovely day."}
    >>> source = SummarizerInput(messages=(SourceMessage(ref="§1", message=Message.from_wire(said)),))
    >>> [(b.text, b.citations, b.kind) for b in extractive(source, budget_tokens=80).bullets]
    [("Refunds above $500 need Dana's sign-off.", ('§1',), 'constraint')]
    """
    standing = standing_statements(source.standing)
    found = worth_reading(texts(source.messages), budget_tokens)
    statements = source_statements(found)
    visible = visible_statements(source.visible)
    everything = sorted((*standing, *statements, *visible), key=lambda statement: statement.order)
    stale = replaced(everything)
    superseded = _superseded(everything, stale)
    kept = [statement for statement in standing if statement.index not in superseded]
    longest_chars = max(SENTENCE_CHARS, min(USER_CHARS, budget_tokens * 3 // 4))
    candidates = _from_statements(everything, stale, source.uses or _uses_at_hand(source), longest_chars)
    candidates += (
        bullet for output in tool_outputs(source.messages, source.visible) for bullet in tool_bullets(output)
    )
    bullets = fitted(merged(candidates), [statement.reading for statement in kept], source, budget_tokens)
    return Summary(bullets=bullets, superseded=superseded, last_raw_turn=last_raw_turn(source))


def structured(source: SummarizerInput, *, budget_tokens: int) -> Summary:
    """Summarize an agent's run extractively, with each bullet in a section of a handoff."""
    summary = extractive(source, budget_tokens=budget_tokens)
    return summary.model_copy(update={"bullets": in_sections(summary.bullets, source.messages)})


def in_sections(bullets: Iterable[Bullet], messages: Sequence[SourceMessage]) -> tuple[Bullet, ...]:
    """Set each bullet's section: the one it names, else that of its kind, if its speakers may say so.

    Intent is the user's: it excludes bullets that cite no user's message, and includes what the user leaves open. A
    bullet from tools alone is no decision and not pending.
    """
    speakers = {item.ref: "tool" if item.message.tool_results else item.message.role for item in messages}
    placed: list[Bullet] = []
    for bullet in bullets:
        said_by = {speakers.get(ref.partition(".")[0], "tool") for ref in bullet.citations}
        section = bullet.place
        if section == "pending" and bullet.section is None and "user" in said_by:
            section = "intent"
        if (section == "intent" and "user" not in said_by) or (
            section in ("decisions", "pending") and said_by.isdisjoint(("user", "assistant"))
        ):
            section = "technical"
        placed.append(bullet.model_copy(update={"section": section}))
    return tuple(placed)


def _superseded(everything: Sequence[PlacedSentence], stale: dict[int, UpdateMatch]) -> tuple[int, ...]:
    """Return the indexes of standing bullets whose distinctive values are all stale or in the newer statement."""
    gone: list[int] = []
    for index, match in stale.items():
        old, newer = everything[index], everything[match.newer]
        if old.place != "standing":
            continue
        rest = (
            {value.norm for value in old.reading.values if value.kind in DISTINCTIVE}
            - match.stale
            - newer.reading.norms
        )
        if not rest:
            gone.append(old.index)
    return tuple(sorted(gone))


def _uses_at_hand(source: SummarizerInput) -> WordUses:
    """Count the words of users in the messages at hand, if nothing is known of the rest of the session."""
    uses = WordUses()
    for text in sorted(texts((*source.messages, *source.visible)), key=lambda text: text.order):
        if text.role == "user":
            uses.read(text.text, text.order)
    return uses


def _from_statements(
    everything: Sequence[PlacedSentence],
    stale: dict[int, UpdateMatch],
    uses: Callable[[str], WordUse],
    longest_chars: int,
) -> list[BulletCandidate]:
    worths = [standing_worth(statement, uses) for statement in everything]
    least = _lifted(everything, worths, uses)
    replacing = {match.newer for match in stale.values()}
    for old, match in stale.items():
        newer = everything[match.newer]
        if newer.role == "user" or newer.among <= SHORT_MESSAGE_SENTENCES:
            # else it is one of many sentences of an assistant, which repeats an older one's words by chance
            least_worth = _least_worth(everything[old], newer, worths[old])
            least[match.newer] = max(least.get(match.newer, 0.0), least_worth)
    candidates: list[BulletCandidate] = []
    previous: PlacedSentence | None = None
    for index, statement in enumerate(everything):
        if statement.place == "source":
            worth = max(worths[index], least.get(index, 0.0))
            candidate = _candidate(statement, worth, previous, stale.get(index), index in replacing, longest_chars)
            if candidate is not None:
                if candidates and _shown_within(candidates[-1], candidate):
                    candidate = _joined(candidates.pop(), candidate)
                candidates.append(candidate)
        previous = statement
    return candidates


def _lifted(
    everything: Sequence[PlacedSentence], worths: Sequence[float], uses: Callable[[str], WordUse]
) -> dict[int, float]:
    """Return the least worth of users' statements that share a rare word with an older one at hand.

    Such a statement may be the newest about that thing, and the old one must not stand alone. It gains `MOST_LIFT` at
    most, so that no series of like lines outdoes everything else.
    """
    worth_at: dict[tuple[int, str], float] = {}
    least: dict[int, float] = {}
    for index, statement in enumerate(everything):
        if statement.role != "user" or statement.place == "visible":
            continue
        words = rare_words(statement, uses)
        for word in words:
            place = statement.order, word
            worth_at[place] = max(worth_at.get(place, 0.0), worths[index])
        text, subject = statement.reading.text, statement.reading.subject
        if statement.place == "source" and statement.is_first and subject and not asks(text):
            older = [
                worth_at[at]
                for word, first in words.items()
                if first < statement.order and (at := (first, word)) in worth_at
            ]
            if older:
                least[index] = min(max(older) + NEWER_WORTH, worths[index] + MOST_LIFT)
    return least


def _least_worth(old: PlacedSentence, newer: PlacedSentence, old_worth: float) -> float:
    """Return the least worth of a statement that replaces another: the present state counts more than the old one.

    If the older one stays in the window, so does the newer. An assistant's passing mention with another number each
    time gains no worth from it.
    """
    reading = newer.reading
    if old.reading.stands and reading.stands != "open" and not reading.values and old.place != "visible":
        return SETTLED_WORTH
    if newer.role == "assistant" and reading.updates < 3 and reading.stands != "over":
        return old_worth
    return old_worth + NEWER_WORTH


def _shown_within(previous: BulletCandidate, candidate: BulletCandidate) -> bool:
    """Return whether a candidate contains the whole candidate before it as its context."""
    return (
        set(previous.refs) <= set(candidate.refs)
        and previous.text != candidate.text
        and previous.text in candidate.text
    )


def _joined(previous: BulletCandidate, candidate: BulletCandidate) -> BulletCandidate:
    stronger = max(previous, candidate, key=lambda c: c.worth)
    is_rule = "constraint" in (previous.kind, candidate.kind)
    return replace(
        candidate,
        kind="constraint" if is_rule else stronger.kind,
        worth=stronger.worth,
        values=previous.values | candidate.values,
        subject=previous.subject | candidate.subject,
        replaces=previous.replaces or candidate.replaces,
    )


def _candidate(
    statement: PlacedSentence,
    worth: float,
    previous: PlacedSentence | None,
    match: UpdateMatch | None,
    replaces: bool,
    longest_chars: int,
) -> BulletCandidate | None:
    reading = statement.reading
    if worth < FLOOR:
        return None
    text = reading.text
    keep = [*reading.values, *reading.marks]
    if match is not None:
        rest = [value for value in reading.values if value.norm not in match.stale and value.kind in DISTINCTIVE]
        if not rest or not match.stale:
            return None
        text = condensed(text, rest, 1)
        if any(norm in normalize(text) for norm in match.stale):
            return None
        worth = min(worth, 70.0)
    limit = RULE_CHARS if reading.rule >= 3 else SENTENCE_CHARS
    limit = max(limit, longest_chars) if statement.role == "user" else limit
    text = quote(without_opening(condensed(text, keep, limit if text.isascii() else limit * 5 // 9)))
    refs = statement.refs
    if len(reading.subject) <= 1 and not reading.names and worth >= 50 and previous is not None:
        text, refs = _with_context(text, statement, previous)
    if not any(char.isalnum() for char in text):
        return None
    return BulletCandidate(
        text=text,
        refs=refs,
        order=statement.order,
        kind=reading.kind,
        worth=worth + min(0.5, statement.order * 1e-4),
        values=reading.norms,
        subject=reading.subject,
        replaces=replaces,
        is_users=statement.role == "user",
    )


def _with_context(text: str, statement: PlacedSentence, previous: PlacedSentence) -> tuple[str, tuple[str, ...]]:
    """Put the previous sentence (the question it answers) before a text that says nothing alone, as "45 days."."""
    if statement.order - previous.order > 1 or previous.place == "standing":
        return text, statement.refs
    before = previous.reading.text
    if previous.refs != statement.refs and not before.endswith(("?", "？")):
        return text, statement.refs
    before = quote(condensed(before, [], CONTEXT_CHARS)) if len(before) <= 3 * CONTEXT_CHARS else ""
    if not before or before in text:
        return text, statement.refs
    refs = statement.refs if previous.refs == statement.refs else (*previous.refs, *statement.refs)
    return f"{before}{ELLIPSIS}{text}", refs


def last_raw_turn(source: SummarizerInput) -> LastRawTurn:
    """Return the newest user text and the newest assistant text among all messages, byte for byte."""
    latest: dict[str, tuple[int, SourceMessage]] = {}
    for index, item in enumerate((*source.messages, *source.visible)):
        role = item.message.role
        if role in ("user", "assistant") and any(isinstance(p, TextPart) and p.text for p in item.message.parts):
            order = ordinal(item.ref, index + 1)
            if role not in latest or order >= latest[role][0]:
                latest[role] = (order, item)
    said = {role: Utterance(ref=item.ref, text=item.message.text) for role, (_, item) in latest.items()}
    return LastRawTurn(user=said.get("user"), assistant=said.get("assistant"))


LOOK_CHARS = 24_000
LOOK_CHARS_A_TOKEN = 16
"""Characters read for each token of a larger budget."""
VISIBLE_CHARS = 4_000
"""Characters of one visible message that are read; visible messages only supersede."""


class StatementText(NamedTuple):
    """One text part to read."""

    text: str
    role: str
    ref: str
    order: int
    position: int


def texts(messages: Sequence[SourceMessage]) -> list[StatementText]:
    """Return the text parts of messages in their own role, without thinking, images and tool results."""
    return [
        StatementText(part.text, item.message.role, item.ref, ordinal(item.ref, index + 1), index)
        for index, item in enumerate(messages)
        for part in item.message.parts
        if isinstance(part, TextPart) and part.text and not part.text.isspace()
    ]


def worth_reading(found: list[StatementText], budget_tokens: int = 0) -> list[StatementText]:
    """Return all texts if they fit the reading limit of this budget, else the users' and the shortest, in order."""
    room = max(LOOK_CHARS, LOOK_CHARS_A_TOKEN * budget_tokens)
    if sum([min(len(text.text), HEAD_CHARS + TAIL_CHARS) for text in found]) <= room:
        return found
    ranked = sorted(range(len(found)), key=lambda i: (found[i].role == "assistant", len(found[i].text), -i))
    chosen: list[int] = []
    for i in ranked:
        room -= min(len(found[i].text), HEAD_CHARS + TAIL_CHARS)
        if room < 0:
            break
        chosen.append(i)
    return [found[i] for i in sorted(chosen)]


def pieces(text: str) -> Iterator[SentenceSpan]:
    """Yield the sentences of the head and the tail of a text."""
    if len(text) <= HEAD_CHARS + TAIL_CHARS:
        yield from whole_sentences(text)
    else:
        yield from whole_sentences(text, 0, HEAD_CHARS)
        yield from whole_sentences(text, len(text) - TAIL_CHARS)


def whole_sentences(text: str, start: int = 0, stop: int | None = None) -> Iterator[SentenceSpan]:
    """Yield sentences. Short ones joined by a semicolon stay one, because one half may be the topic of the other.

    >>> said = "The old plan for Oslo is void; we go in week 9. Fine."
    >>> [said[piece.start : piece.stop] for piece in whole_sentences(said)]
    ['The old plan for Oslo is void; we go in week 9.', 'Fine.']
    """
    before: SentenceSpan | None = None
    for piece in sentences(text, start, stop):
        if before is not None and text[before.stop - 1] in ";；" and piece.stop - before.start <= SENTENCE_CHARS:
            before = SentenceSpan(before.start, piece.stop)
            continue
        if before is not None:
            yield before
        before = piece
    if before is not None:
        yield before


def source_statements(found: Iterable[StatementText]) -> list[PlacedSentence]:
    """Read texts that leave the window. A repeated text is read once and cites its newest place."""
    newest = {text.text: text for text in found}
    statements: list[PlacedSentence] = []
    for text in sorted(newest.values(), key=lambda text: text.order):
        spans = list(pieces(text.text))
        for span in spans:
            reading = read_piece(text.text, span, text.role)
            if _says_something(reading):
                statements.append(_placed(reading, text, "source", len(spans), is_first=span is spans[0]))
    return statements


def _placed(
    reading: SentenceReading,
    text: StatementText,
    place: Literal["source", "visible"],
    among: int = 1,
    *,
    is_first: bool = True,
) -> PlacedSentence:
    return PlacedSentence(
        reading=reading,
        refs=(text.ref,),
        order=text.order,
        role=text.role,
        place=place,
        index=text.position,
        among=among,
        is_first=is_first,
    )


def _says_something(reading: SentenceReading) -> bool:
    """Return whether a sentence has worth, or may settle another."""
    return reading.worth > 0 or bool(reading.stands or reading.deeds)


def visible_statements(messages: Sequence[SourceMessage]) -> list[PlacedSentence]:
    """Read the texts that stay. They supersede and are superseded, and need no bullet."""
    return [
        _placed(reading, text, "visible")
        for text in worth_reading(texts(messages))
        for piece in whole_sentences(text.text, 0, min(len(text.text), VISIBLE_CHARS))
        if _says_something(reading := read_piece(text.text, piece, text.role))
    ]


def standing_statements(bullets: Sequence[Bullet]) -> list[PlacedSentence]:
    """Read standing bullets, with the order of their newest citation and their worth from when they were made."""
    return [
        PlacedSentence(
            reading=_standing(bullet),
            refs=bullet.citations,
            order=max(ordinal(ref, index + 1) for ref in bullet.citations),
            role="user",
            place="standing",
            index=index,
            value=bullet.value,
        )
        for index, bullet in enumerate(bullets)
    ]


def _standing(bullet: Bullet) -> SentenceReading:
    reading = known_reading(bullet.text, "user")
    return reading if reading.worth <= bullet.value else replace(reading, worth=bullet.value)


READ_CHARS = 2_000


class KeptSentence(NamedTuple):
    """A sentence that may be replaced, in a fifth of its reading's bytes. `reading` reads it again."""

    text: str
    role: str
    ref: str
    order: int
    words: int
    settling: Settling
    is_pasted: bool

    @property
    def reading(self) -> SentenceReading:
        """Read the sentence, or take its cached reading."""
        reading = known_reading(self.text, self.role)
        return as_pasted(reading) if self.is_pasted else reading


def _kept(statement: PlacedSentence) -> KeptSentence:
    reading = statement.reading
    is_pasted = reading.worth <= PASTED_WORTH and reading != known_reading(reading.text, statement.role)
    ref, order = statement.refs[0], statement.order
    return KeptSentence(reading.text, statement.role, ref, order, statement.words, statement.settling, is_pasted)


class Reader:
    """Reader of one conversation: a `ctxsteward.schemas.summary.ReplacementReader` with a state to store.

    >>> from ctxsteward.schemas import Message
    >>> said = "My budget is 90,000 yen. The train leaves at 14:30.", "Change of plan: my budget is 120,000 yen."
    >>> reader = Reader()
    >>> for n, text in enumerate((*said, "The train leaves at 16:45 instead."), 1):
    ...     reader.read(SourceMessage(ref=f"§{n}", message=Message.from_wire({"role": "user", "content": text})))
    >>> reader.replaced_by("§1"), reader.replaced_by("§2")
    (('§2', '§3'), ())
    >>> again = Reader()
    >>> again.resume(reader.state()), again.replaced_by("§1")
    (True, ('§2', '§3'))
    """

    def __init__(self) -> None:
        self._updates: UpdateTracker[KeptSentence] = UpdateTracker(keep=_kept)
        self._refs: dict[int, str] = {}
        """Position → reference of statements that replace another."""
        self._stale: dict[str, list[int]] = {}
        """Reference → replaced statements of that message or passage."""

    def read(self, message: SourceMessage) -> None:
        """Read the next message, in ordinal order."""
        has_results = bool(message.message.tool_results)  # read once, because the property scans all parts
        for text in texts((message,)):
            spans = [] if has_results else passage_spans(text.text)
            for statement in source_statements((text._replace(text=text.text[:READ_CHARS]),)):
                position, ref = self._updates.count, message.ref
                if len(spans) > 1:
                    at = max(0, text.text.find(statement.reading.text))
                    ref = f"{ref}.{sum(span.start <= at for span in spans)}"
                    statement = replace(statement, refs=(ref,))
                for old, sentence in self._updates.add(statement).items():
                    self._refs[position] = ref
                    for whose in {sentence.ref, sentence.ref.partition(".")[0]}:  # the passage and its message
                        self._stale.setdefault(whose, []).append(old)

    def replaced_by(self, ref: str) -> tuple[str, ...]:
        """Return the messages with the newest form of this message's statements, in reading order."""
        newest = sorted({self._newest(stale) for stale in self._stale.get(ref, ())})
        found = (self._refs[position] for position in newest)
        whole = ref.partition(".")[0]
        return tuple(dict.fromkeys(other for other in found if other.partition(".")[0] != whole))

    def _newest(self, position: int) -> int:
        stale = self._updates.stale
        path = []
        while (match := stale.get(position)) is not None:
            path.append(position)
            position = match.newer
        for passed in path[:-1]:  # shortens the path, so that a long chain is walked once
            stale[passed] = stale[passed]._replace(newer=position)
        return position

    def state(self) -> list[Any]:
        """Return the state for `resume`: lists, numbers and texts."""
        return [_rules(), *columns(self._refs, self._stale), self._updates.state()]

    def resume(self, state: list[Any]) -> bool:
        """Restore a state. Return False, with nothing changed, if other rules made it."""
        rules, *tables, tracked = state
        if rules != _rules():
            return False
        self._refs, self._stale = (dict(zip(*table, strict=True)) for table in tables)
        self._updates.resume(tracked, KeptSentence._make)
        return True


def _rules() -> str:
    return rules_digest("ctxsteward.language", __package__)
