"""The extractive summarizer: no model, typed salience, verbatim quotes, a citation on every bullet.

Four steps: read the originals into statements (`backlog`, `salience`), drop what something newer replaces
(`updates`), turn the rest and the tool outputs into candidates whose text is quoted (`quotes`,
`tool_outputs`), and take the best ones that fit. A bullet's `value` (0-100) compares over the whole
session, so the builder may drop the smallest of all standing and new bullets. Same input, same bullets;
valid messages never raise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ctxsteward.language.values import DISTINCTIVE, normalize
from ctxsteward.schemas import (
    Bullet,
    LastRawTurn,
    LossKind,
    SourceMessage,
    SummarizerInput,
    Summary,
    TextPart,
    Utterance,
)

from .quotes import ELLIPSIS, condensed, quote, without_opening
from .salience import FLOOR
from .statements import (
    ordinal,
    source_statements,
    standing_statements,
    texts,
    tool_outputs,
    visible_statements,
    worth_reading,
)
from .tool_outputs import tool_bullets
from .updates import PlacedSentence, UpdateMatch, UpdateOutcome, norms, replaced

BULLET_OVERHEAD_TOKENS = 5
"""Marker and reference of a bullet, as the builder renders it."""

MAX_CITATIONS = 3
RULE_CHARS = 200
SENTENCE_CHARS = 110
CONTEXT_CHARS = 60
UPDATED_WORTH = 86.0
SETTLED_WORTH = 58.0
"""Of the news that something is done: once nothing shows it as open, it may go."""
COVERED_PENALTY = 30.0
"""Taken off a candidate all of whose values another bullet already shows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _BulletCandidate:
    text: str
    refs: tuple[str, ...]
    order: int
    kind: LossKind
    worth: float
    values: frozenset[str]
    subject: frozenset[str]
    replaces: bool = False
    """Whether it makes another statement stale: never merged into one."""


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
    outcome = replaced(everything)
    superseded = _superseded(everything, outcome.stale)
    kept = [statement for statement in standing if statement.index not in superseded]
    candidates = _from_statements(everything, outcome) + _from_tools(source)
    bullets = _fitted(_merged(candidates), kept, source, budget_tokens)
    return Summary(bullets=bullets, superseded=superseded, last_raw_turn=last_raw_turn(source))


def _superseded(everything: Sequence[PlacedSentence], stale: dict[int, UpdateMatch]) -> tuple[int, ...]:
    """Standing bullets that go: all their distinctive values are stale or stand in the newer statement."""
    gone: list[int] = []
    for index, match in stale.items():
        old, newer = everything[index], everything[match.newer]
        if old.place != "standing":
            continue
        rest = (
            {value.norm for value in old.reading.values if value.kind in DISTINCTIVE}
            - match.stale
            - norms(newer.reading)
        )
        if not rest:
            gone.append(old.index)
    return tuple(sorted(gone))


def _from_statements(everything: Sequence[PlacedSentence], outcome: UpdateOutcome) -> list[_BulletCandidate]:
    least = dict(outcome.lifts)
    for old, match in outcome.stale.items():
        least[match.newer] = max(least.get(match.newer, 0.0), _least_worth(everything[old], everything[match.newer]))
    candidates: list[_BulletCandidate] = []
    previous: PlacedSentence | None = None
    for index, statement in enumerate(everything):
        if statement.place == "source":
            candidate = _candidate(statement, previous, outcome.stale.get(index), least.get(index, 0.0))
            if candidate is not None:
                if candidates and _shown_within(candidates[-1], candidate):
                    candidate = _joined(candidates.pop(), candidate)
                candidates.append(candidate)
        previous = statement
    return candidates


def _least_worth(old: PlacedSentence, newer: PlacedSentence) -> float:
    """A newer statement outlives what it replaces: how things stand now is worth more than how they stood.

    Where the older one stays in the window, so does the newer. What an assistant says in passing with another number
    each time is worth no more for it.
    """
    reading = newer.reading
    if old.reading.stands and reading.stands != "open" and not reading.values and old.place != "visible":
        return SETTLED_WORTH
    if newer.role == "assistant" and reading.updates < 3 and reading.stands != "over":
        return old.reading.worth
    return UPDATED_WORTH


def _shown_within(previous: _BulletCandidate, candidate: _BulletCandidate) -> bool:
    """Whether a candidate shows the whole one before it as its context."""
    return (
        set(previous.refs) <= set(candidate.refs)
        and previous.text != candidate.text
        and previous.text in candidate.text
    )


def _joined(previous: _BulletCandidate, candidate: _BulletCandidate) -> _BulletCandidate:
    stronger = max(previous, candidate, key=lambda c: c.worth)
    return replace(
        candidate,
        kind=stronger.kind,
        worth=stronger.worth,
        values=previous.values | candidate.values,
        subject=previous.subject | candidate.subject,
        replaces=previous.replaces or candidate.replaces,
    )


def _candidate(
    statement: PlacedSentence, previous: PlacedSentence | None, match: UpdateMatch | None, least_worth: float
) -> _BulletCandidate | None:
    reading = statement.reading
    worth = max(reading.worth, least_worth) if match is None else reading.worth
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
    text = quote(without_opening(condensed(text, keep, limit if text.isascii() else limit * 5 // 9)))
    refs = statement.refs
    if len(reading.subject) <= 1 and not reading.names and worth >= 50 and previous is not None:
        text, refs = _with_context(text, statement, previous)
    if not any(char.isalnum() for char in text):
        return None
    return _BulletCandidate(
        text=text,
        refs=refs,
        order=statement.order,
        kind=reading.kind,
        worth=worth + min(0.5, statement.order * 1e-4),
        values=norms(reading),
        subject=reading.subject,
        replaces=least_worth > 0,
    )


def _with_context(text: str, statement: PlacedSentence, previous: PlacedSentence) -> tuple[str, tuple[str, ...]]:
    """ "45 days." says nothing alone: put the sentence before it (the question it answers) in front."""
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


def _from_tools(source: SummarizerInput) -> list[_BulletCandidate]:
    return [
        _BulletCandidate(
            text=bullet.text,
            refs=output.refs,
            order=output.order,
            kind=bullet.kind,
            worth=bullet.worth - min(12.0, 0.04 * max(0, len(bullet.text) - 90)) + min(0.5, output.order * 1e-4),
            values=bullet.values,
            subject=frozenset(),
        )
        for output in tool_outputs(source.messages, source.visible)
        for bullet in tool_bullets(output)
    ]


def _merged(candidates: list[_BulletCandidate]) -> list[_BulletCandidate]:
    """One candidate for statements that say the same: same values and mostly the same words; all cited."""
    groups: dict[object, list[_BulletCandidate]] = {}
    merged: list[_BulletCandidate] = []
    for candidate in sorted(candidates, key=lambda c: -c.worth):
        key: object = (candidate.values or normalize(candidate.text), candidate.replaces)
        for twin in groups.get(key, ())[:8]:
            if _alike(candidate.subject, twin.subject):
                refs = dict.fromkeys((*twin.refs, *candidate.refs))
                if len(refs) <= MAX_CITATIONS:
                    position = merged.index(twin)
                    both = replace(twin, refs=tuple(sorted(refs, key=lambda ref: ordinal(ref, 0))))
                    merged[position] = both
                    groups[key][groups[key].index(twin)] = both
                break
        else:
            merged.append(candidate)
            groups.setdefault(key, []).append(candidate)
    return merged


def _alike(one: frozenset[str], other: frozenset[str]) -> bool:
    small = min(len(one), len(other))
    return small == 0 or len(one & other) >= 0.6 * small


def _fitted(
    candidates: list[_BulletCandidate], standing: Sequence[PlacedSentence], source: SummarizerInput, budget_tokens: int
) -> tuple[Bullet, ...]:
    """The best candidates that fit; one whose values are all shown already waits behind the rest."""
    shown = {norm for statement in standing for norm in norms(statement.reading) if len(norm) > 2}
    known = {(norms(statement.reading), statement.reading.subject) for statement in standing}
    repeated = {quote(statement.reading.text) for statement in standing}
    late: list[_BulletCandidate] = []
    chosen: list[tuple[_BulletCandidate, Bullet]] = []
    room = budget_tokens
    for candidate in sorted(candidates, key=lambda c: (-c.worth, c.order, c.text)):
        if candidate.text in repeated or (candidate.values, candidate.subject) in known:
            continue
        if candidate.kind not in ("constraint", "decision") and candidate.values and candidate.values <= shown:
            late.append(candidate)
            continue
        room = _take(candidate, 0.0, room, source, chosen)
        shown |= {norm for norm in candidate.values if len(norm) > 2}
        if room <= BULLET_OVERHEAD_TOKENS + 2:
            break
    for candidate in late:
        if room <= BULLET_OVERHEAD_TOKENS + 2:
            break
        if candidate.worth - COVERED_PENALTY >= FLOOR:
            room = _take(candidate, COVERED_PENALTY, room, source, chosen)
    chosen.sort(key=lambda pair: (ordinal(pair[1].citations[0], pair[0].order), pair[0].order))
    return tuple(bullet for _, bullet in chosen)


def _take(
    candidate: _BulletCandidate,
    penalty: float,
    room: int,
    source: SummarizerInput,
    chosen: list[tuple[_BulletCandidate, Bullet]],
) -> int:
    """Add the candidate if it fits; the room left."""
    if len(candidate.text) > 8 * room:
        return room
    cost = source.count_tokens(candidate.text) + BULLET_OVERHEAD_TOKENS
    if cost > room:
        return room
    bullet = Bullet(
        text=candidate.text,
        citations=candidate.refs,
        kind=candidate.kind,
        value=round(candidate.worth - penalty, 4),
    )
    chosen.append((candidate, bullet))
    return room - cost


def last_raw_turn(source: SummarizerInput) -> LastRawTurn:
    """The newest user text and the newest assistant text among all messages, byte for byte."""
    latest: dict[str, tuple[int, SourceMessage]] = {}
    for index, item in enumerate((*source.messages, *source.visible)):
        role = item.message.role
        if role in ("user", "assistant") and any(isinstance(p, TextPart) and p.text for p in item.message.parts):
            order = ordinal(item.ref, index + 1)
            if role not in latest or order >= latest[role][0]:
                latest[role] = (order, item)
    said = {role: Utterance(ref=item.ref, text=item.message.text) for role, (_, item) in latest.items()}
    return LastRawTurn(user=said.get("user"), assistant=said.get("assistant"))
