"""Statements of tools: sentences of their answers that recur in several runs, refusals among them.

Tools state the rules of their service in their own words: ``{"status": "rejected", "reason": "Fares of …"}``, a note, a
fee and its computation. A sentence about one thing is data; a sentence that recurs about several things is a statement.
So an observation has a sentence and its *skeleton*: the words, with a slot for each value (numbers, codes, quotes,
values of the call, names in answers). Sentences of one tool with one skeleton are one claim. A record needs three
runs, about three things if the answer names one (`is_identifier`). A slot shows its value only if it is the same in all
runs (`statement`), so that a value of one run is shown to nobody else. Only a person puts a statement in force.

A text beside an empty list ("nothing found") is about the search, not about the service, and is left out.

Source: He et al. 2017, Drain (templates of log messages by fixed words and slots).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ctxsteward.language.words import sentences
from ctxsteward.schemas.recommendation import Slot

from ...observations.observation import MessageSpan, Observation
from ...observations.transcript import ReplayedTranscript, ReplayedUtterance
from .calls import ToolStep, is_identifier, is_tool, steps, values_in
from .episodes import ErrorEpisode, episodes
from .templates import FixTrigger, action, is_hintable

STATEMENTS_EXTRACTOR = "statements/2"
STATEMENT = "statement"
"""Attribute of the slot."""
SLOT = "…"
MAX_STATEMENTS = 60
"""Most statements of one run."""
MAX_ANSWER_CHARS = 20_000
MAX_SENTENCE_CHARS = 200
MIN_WORDS = 3
MAX_NAMES, MIN_NAME_CHARS, MAX_NAME_CHARS = 400, 3, 60
_WORD = re.compile(r"[^\W\d_]{2,}")
_CHINESE = re.compile(r"[\u3400-\u9fff]")
_QUOTED = re.compile(r"(?<!\w)(?:'[^'\n]{1,80}'|\"[^\"\n]{1,80}\"|`[^`\n]{1,80}`|“[^”\n]{1,80}”)(?!\w)")
_CAPITAL = re.compile(r"[A-Z0-9]")
_UNSAFE = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff<>`{}]")


class AnswerSentence(NamedTuple):
    """One sentence of an answer."""

    text: str
    start: int
    """First character in the answer's text."""
    stop: int
    things: tuple[str, ...]
    """Identifiers of the things that the sentence is about."""


def statements(replayed: ReplayedTranscript) -> tuple[Observation, ...]:
    """Return an observation of each skeleton in the answers of each tool, in order."""
    found: dict[tuple[str, str], Observation] = {}
    names: dict[str, None] = {}
    misspelled = {episode.failed.position for episode in episodes(replayed) if _is_misspelled(episode)}
    for step in steps(replayed):
        answer = step.answer
        if answer is None or not is_tool(step.tool) or len(answer.text) > MAX_ANSWER_CHARS:
            continue
        if step.position in misspelled:
            continue  # its message is no rule of the service, and `errors` advises on it
        _add_names(names, step)
        for sentence in _sentences(step, answer):
            skeleton = skeleton_of(sentence.text, tuple(names))
            key = (step.tool, skeleton)
            if key in found or len(found) >= MAX_STATEMENTS or not _says_something(skeleton):
                continue
            observation = _observation(replayed, step, answer, sentence, skeleton)
            if observation is not None:
                found[key] = observation
    return tuple(found.values())


def _is_misspelled(episode: ErrorEpisode) -> bool:
    """Whether the only fix of an error was to write the call in another way."""
    return bool(episode.fixes) and all(
        is_hintable(str(FixTrigger(episode.failed.tool, episode.code, name)), action(advice))
        for name, advice in episode.fixes
    )


def skeleton_of(sentence: str, names: Sequence[str] = ()) -> str:
    """Return the words of a sentence in lower case, with a slot for each value.

    >>> skeleton_of("Fee for 'VIP' guests: 5 % of $300.")
    'fee for … guests: … % of …'
    >>> skeleton_of("Ace Lamp is sold out.", ["Ace Lamp"])
    '… is sold out.'
    """
    for name in sorted(names, key=len, reverse=True):
        if name in sentence:
            sentence = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", SLOT, sentence)
    words = (
        SLOT if (any(map(str.isdigit, word)) or "://" in word or "@" in word.strip("@")) else word
        for word in _QUOTED.sub(SLOT, sentence).split()
    )
    return " ".join(words).casefold()


def statement(texts: Sequence[str], skeleton: str) -> str:
    """Join sentences with one skeleton: a slot keeps its value only if all sentences have the same.

    >>> statement(["Fee: 5 % of $300.", "Fee: 5 % of $80."], "fee: … % of …")
    'Fee: 5 % of …'
    """
    pattern = re.compile(re.escape(skeleton).replace(r"\ ", r"\s+").replace(SLOT, "(.+?)"), re.IGNORECASE)
    matches = [found for text in texts if (found := pattern.fullmatch(text))]
    if not matches:
        return ""
    first = matches[0]
    line, at = "", 0
    for group in range(1, pattern.groups + 1):
        start, stop = first.span(group)
        same = all(other[group] == first[group] for other in matches)
        line, at = line + first.string[at:start] + (first[group] if same else SLOT), stop
    return " ".join((line + first.string[at:]).split())


def _says_something(skeleton: str) -> bool:
    return len(_WORD.findall(skeleton)) >= MIN_WORDS or len(_CHINESE.findall(skeleton)) >= 2 * MIN_WORDS


def _observation(
    replayed: ReplayedTranscript, step: ToolStep, answer: ReplayedUtterance, sentence: AnswerSentence, skeleton: str
) -> Observation | None:
    place = MessageSpan.within(answer.ref, answer.text, sentence.start, sentence.stop)
    if place is None or _UNSAFE.search(sentence.text):
        return None
    return Observation(
        kind="environment",
        text=f'{step.tool} says "{sentence.text}"',
        slot=Slot(subject=step.tool.lower(), attribute=STATEMENT),
        places=(place,),
        strength="broad",
        score=0.5,
        reach="shared",
        principal=replayed.principal,
        tool=step.tool,
        trigger=f"tool:{step.tool}",
        cause=skeleton,
        ts=answer.ts,
        run=run_key(replayed, sentence.things),
        extractor=STATEMENTS_EXTRACTOR,
    )


def run_key(replayed: ReplayedTranscript, things: Sequence[str]) -> str:
    """Return the key of a run's task: the things that an answer names, its task, its user, or its first message.

    The first message counts only in an operator's own runs. Stored keys of earlier versions fix the form.
    """
    name = opening = ""
    if things:
        name = f"about {_digest(sorted(things))}"
    elif replayed.task is not None:
        name = f"task {replayed.task}"
    elif replayed.principal is not None:
        name = f"of {replayed.principal}"
    elif replayed.is_task_run and (first := next(replayed.users(), None)):
        opening = _digest(_WORD.findall(first.text.casefold()))
    return json.dumps([name, opening, int(bool(opening)), []], ensure_ascii=False, separators=(",", ":"))


def _digest(parts: Sequence[str]) -> str:
    return hashlib.blake2b("\n".join(parts).encode(), digest_size=6).hexdigest()


def task_in(key: str) -> str:
    """Return the task in a `run_key`, equal for runs of one task, or an empty text.

    >>> task_in('["task t", "", 0, []]'), task_in('["", "0a1b2c", 1, []]'), task_in("")
    ('=task t', '0a1b2c', '')
    """
    try:
        name, opening, *_ = json.loads(key)
    except (ValueError, TypeError, RecursionError):
        return ""
    return f"={name}" if name else f"{opening}"


def _sentences(step: ToolStep, answer: ReplayedUtterance) -> Iterator[AnswerSentence]:
    """Yield the sentences in the JSON of an answer, or in the message of a failure."""
    text = answer.text
    try:
        value = json.loads(text) if text.lstrip()[:1] in ("{", "[", '"') else None
    except (ValueError, RecursionError):
        value = None
    if value is None:
        if step.failure is not None:
            yield from _sentences_of(text[step.failure.start : step.failure.stop], text, "", ())
        return
    called = () if step.failure else tuple(f"{path}={leaf}" for path, leaf in step.values() if is_identifier(path))
    waiting: list[tuple[object, str, tuple[str, ...]]] = [(value, "", ())]
    while waiting:
        here, label, things = waiting.pop(0)
        if isinstance(here, dict):
            own = (f"{key}={item}" for key, item in here.items() if is_identifier(key) and isinstance(item, str | int))
            things = tuple(dict.fromkeys((*things, *own)))
            parts = [item for item in here.values() if isinstance(item, dict | list)]
            if any(parts) or not parts:  # else the search found nothing
                several = sum(isinstance(item, str) and _says_something(item) for item in here.values()) > 1
                waiting += [(item, key if several else "", things) for key, item in here.items()]
        elif isinstance(here, list):
            waiting += [(item, "", things) for item in here]
        elif isinstance(here, str):
            yield from _sentences_of(here, text, label, things or called)


def _sentences_of(string: str, text: str, label: str, things: tuple[str, ...]) -> Iterator[AnswerSentence]:
    """Yield a string of an answer, or the sentences of a long one, with their places in the answer's text.

    `label` is the string's key if its object has several sentences.
    """
    forms = (string, json.dumps(string)[1:-1], json.dumps(string, ensure_ascii=False)[1:-1])
    form = next((form for form in forms if form in text), None)
    if form is None:
        return
    base = text.find(form)
    spans = [(0, len(string))] if len(string) <= MAX_SENTENCE_CHARS else sentences(string)
    lead = f"{label.replace('_', ' ')}: " if label else ""
    for first, last in spans:
        line = " ".join(string[first:last].split())
        if MIN_WORDS < len(line) <= MAX_SENTENCE_CHARS:
            span = (base + first, base + last) if form == string else (base, base + len(form))
            yield AnswerSentence(lead + line, *span, things)


def _add_names(names: dict[str, None], step: ToolStep) -> None:
    """Collect the names in a call and its answer: values with capitals or digits."""
    called = (value for _, value in step.values() if isinstance(value, str) and _CAPITAL.search(value))
    texts = (value for value in values_in(step.answer.text if step.answer else "") if isinstance(value, str))
    answered = (text for text in texts if " " in text and all(_CAPITAL.match(word) for word in text.split()))
    for name in (*called, *answered):
        if MIN_NAME_CHARS <= len(name) <= MAX_NAME_CHARS and len(names) < MAX_NAMES:
            names[name] = None
