"""Tools with which a model reads its own conversation: `search_context` finds, `resolve_reference` reads.

    session = store.session("s-42", tools=[*tools, *model_tools()])       # rendered for whichever provider
    answer = answer_call(session, call.name, call.arguments)              # None: one of the application's own tools
    client.messages.create(model=…, tools=[*model_tools("anthropic")], …)  # or straight into a client

`search_context(query, k)` returns the messages that contain a quote of the query literally, and the messages that match
it best, if the window does not show them already. Each comes with its reference and best-matching passage, in session
order, under a line with the day and its range of references, within a fixed number of characters.
`resolve_reference(ref, offset, limit, grep)` returns one message by its reference, or several in a row by a range
(``§11-§18``, as the lines of days in recalled messages show it), as text within `limit` characters; `grep` filters
lines by a literal text.

`what_was_dropped(words, k, offset)` shows what compactions left out, to people at an MCP client or an agent that
resumes work: constraints, decisions, numbers, identifiers, paths, URLs and errors that the window no longer shows, each
with its reference. Those that match most of the words come first, without words the newest. It is not among
`model_tools`.

All three read one session only and write nothing. Their schemas are constants. Errors are answers, never exceptions: a
model that asks for an unknown reference gets an answer that says so. Raises `InputError` for an unknown provider.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from itertools import chain, islice, pairwise
from typing import Any, NamedTuple

from ctxsteward.language.words import MAX_TEXT_CHARS, terms
from ctxsteward.schemas import ContextError, InputError, Message, TextPart
from ctxsteward.schemas.arguments import check_argument
from ctxsteward.schemas.message import Wire

from ..history.session import Session
from ..history.state import Day, State
from ..history.tool_groups import text_of
from ..layout.composition import day_above, day_line
from ..layout.rows import continued
from .heuristic import QUOTES, Heuristic
from .selection import ScoredOriginal, Selector, request_for, verbatim

DEFAULT_LIMIT_CHARS = 4_000
MAX_LIMIT_CHARS = 20_000
MAX_RANGE_MESSAGES = 500
MAX_QUOTING = 3
"""Most messages that a search finds by a literal quote; the others are found by rank."""
_RANGE = re.compile(r"\s*§?([1-9][0-9]{0,11})\s*[-–]\s*§?([1-9][0-9]{0,11})\s*", re.ASCII)
_PASSAGES = re.compile(r"\s*§?([1-9][0-9]{0,11})\.([1-9][0-9]{0,2})\s*[-–]\s*([1-9][0-9]{0,2})\s*", re.ASCII)


def resolve_reference_tool() -> Wire:
    """Return the tool's schema in OpenAI form; renderers translate it."""
    return {
        "type": "function",
        "function": {
            "name": "resolve_reference",
            "description": "Read an earlier message of this conversation in full, by its reference; "
            "or several in a row, by a range.",
            "parameters": {
                "type": "object",
                "properties": {
                    "ref": {"type": "string", "description": "§12, 12, §12.2, §12.2-4, tool:3, or a range: §11-§18"},
                    "offset": {"type": "integer", "minimum": 0, "description": "first character to return"},
                    "limit": {"type": "integer", "minimum": 1, "maximum": MAX_LIMIT_CHARS},
                    "grep": {"type": "string", "description": "only lines that contain this text"},
                },
                "required": ["ref"],
                "additionalProperties": False,
            },
        },
    }


def resolve_reference(
    session: Session,
    ref: object = None,
    *,
    offset: object = 0,
    limit: object = DEFAULT_LIMIT_CHARS,
    grep: object = None,
    **unknown: object,
) -> str:
    """Answer a call of the tool in at most `limit` characters, plus a line about the rest."""
    if unknown or ref is None:
        return "error: the arguments are `ref`, and where wanted `offset`, `limit`, `grep`"
    start, size = whole_number(offset), whole_number(limit)
    if start is None or size is None:
        return "error: `offset` and `limit` are whole numbers"
    if grep is not None and not isinstance(grep, str):
        return "error: `grep` is text"
    try:
        text = _text(session, str(ref))
    except ContextError as error:
        return f"error: {error}"
    if grep:
        text = "\n".join(line for line in text.split("\n") if grep.lower() in line.lower())
    start = min(max(0, start), len(text))
    shown = text[start : start + max(1, min(size, MAX_LIMIT_CHARS))]
    left = len(text) - start - len(shown)
    return f"{shown}\n[{left} more characters; offset={start + len(shown)}]" if left > 0 else shown


def _text(session: Session, ref: str) -> str:
    """Return the text that a reference or a range names."""
    if (named := _PASSAGES.fullmatch(ref)) is not None:
        ordinal, first, last = map(int, named.groups())
        session.resolve(f"§{ordinal}.{max(first, last)}")
        return "".join(text_of(session.resolve(f"§{ordinal}.{part}")) for part in range(first, last + 1))
    named = _RANGE.fullmatch(ref)
    if named is None:
        return text_of(session.resolve(ref))
    first, last = int(named[1]), int(named[2])
    if not first <= last < first + MAX_RANGE_MESSAGES:
        return f"error: §{first}-§{last} is no range of 1 to {MAX_RANGE_MESSAGES} messages, oldest first"
    session.resolve(last)  # raise for a range beyond the end before reading any of it
    entries = [session.entry(ordinal) for ordinal in range(first, last + 1)]
    return "\n".join(f"{entry.ref} {entry.message.role}: {continued(text_of(entry.message))}" for entry in entries)


def whole_number(value: object) -> int | None:
    """Return a number as a model may write it: ``7``, ``7.0``, ``"7"``; None for anything else."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str) and value.isascii() and value.strip().lstrip("-").isdecimal() and len(value) <= 18:
        try:
            return int(value)
        except ValueError:  # "--7"
            return None
    return None


DEFAULT_RESULTS = 10
MAX_RESULTS = 25
RESULTS_PER_DAY = 1
"""Most results of a day before results of other days."""
MAX_RESULT_CHARS = 300
PIECE_CHARS = 60
"""Length of the pieces, cut at blanks if possible, at which a passage may begin."""
MAX_QUERY_CHARS = 4_000
RANKED_TOKENS = 4_000
"""Tokens requested of a ranking: more than an answer shows, so that every day has a chance."""
NOTHING_FOUND = "nothing found; try other words"


class Hit(NamedTuple):
    """A message found by a search."""

    ordinal: int
    ref: str
    role: str
    ts: str | None
    text: str
    """The passage with most of the query's terms, on one line; the beginning if no passage has any."""
    score: float


def search_context_tool() -> Wire:
    """Return the tool's schema in OpenAI form; renderers translate it."""
    return {
        "type": "function",
        "function": {
            "name": "search_context",
            "description": "Find earlier messages of this conversation that bear on a question; gives references.",
            "parameters": {
                "type": "object",
                "properties": {
                    "query": {"type": "string", "description": "what to look for, in the words you would expect"},
                    "k": {"type": "integer", "minimum": 1, "maximum": MAX_RESULTS},
                },
                "required": ["query"],
                "additionalProperties": False,
            },
        },
    }


def search_context(
    session: Session,
    query: str,
    *,
    k: int = DEFAULT_RESULTS,
    selector: Selector | None = None,
    shown: Set[int] | None = None,
) -> tuple[Hit, ...]:
    """Return the `k` messages (1 to `MAX_RESULTS`) that match `query` best, best first; none for a query without words.

    Other threads may build or append meanwhile: a session runs one call at a time. `shown` are ordinals to leave out,
    by default those that the window shows now.
    """
    text = query[:MAX_QUERY_CHARS]
    if not terms(text):
        return ()
    with session.lock:  # lock the session before the selector's data, in the order of a build
        return _found(session, text, k, selector, shown)


def _found(session: Session, text: str, k: int, selector: Selector | None, shown: Set[int] | None) -> tuple[Hit, ...]:
    session.reread()
    if selector is None:
        kept = session.cache.get("search")
        selector = kept if isinstance(kept, Heuristic) else Heuristic(every_turn=True, max_sessions=1)
        session.cache["search"] = selector
    if shown is None:  # what the window shows verbatim: kept messages, and those recalled for this user turn
        recalled = session.state.recalled
        shown = verbatim(session.state) | frozenset(recalled.refs if recalled else ())
    visible = frozenset(shown)
    asked = Message(role="user", dialect="openai", parts=(TextPart(text=text),), wire={})
    request = request_for(session, asked, last=len(session), visible=visible, budget_tokens=RANKED_TOKENS)
    ranked = (scored for scored in selector(request) if 0 < scored.ordinal <= request.last)
    quoted = _quoting(session, [quote[1:-1] for quote in QUOTES.findall(text)], request.last, visible)
    unseen = _once(scored for scored in chain(quoted, ranked) if scored.ordinal not in visible)
    best = islice(_spread(unseen, session.state, visible), max(1, min(k, MAX_RESULTS)))
    wanted = frozenset(terms(text))
    return tuple(_hit(session, scored, wanted) for scored in best)


def _quoting(session: Session, quotes: Sequence[str], last: int, visible: Set[int]) -> Iterator[ScoredOriginal]:
    """Return the newest messages with a literal quote: part of a word is no index term, so no ranking finds it."""
    ordinals = (n for n in range(last, 0, -1) if n not in visible) if quotes else ()
    holding = (n for n in ordinals if any(quote in text_of(session.shown(n).message) for quote in quotes))
    return (ScoredOriginal(n, 1.0) for n in islice(holding, MAX_QUOTING))


def _once(ranked: Iterable[ScoredOriginal]) -> Iterator[ScoredOriginal]:
    """Yield the best passage of each message."""
    seen: set[int] = set()
    for scored in ranked:
        if scored.ordinal not in seen:
            seen.add(scored.ordinal)
            yield scored


def _spread(ranked: Iterable[ScoredOriginal], state: State, visible: Set[int]) -> Iterator[ScoredOriginal]:
    """Yield the best of each day first, starting with days that the window does not show, then the others."""
    later: list[ScoredOriginal] = []
    taken = Counter(day.first for day in map(state.day_of, visible) if day is not None)
    for scored in ranked:
        day = state.day_of(scored.ordinal)
        if day is not None and taken[day.first] >= RESULTS_PER_DAY:
            later.append(scored)
            continue
        if day is not None:
            taken[day.first] += 1
        yield scored
    yield from later


def answer_search(
    session: Session,
    query: object = None,
    *,
    k: object = DEFAULT_RESULTS,
    shown: Set[int] | None = None,
    **unknown: object,
) -> str:
    """Answer a call of the tool; errors are answers, never exceptions. `shown` comes from the caller, not the model."""
    if unknown or not isinstance(query, str):
        return "error: the arguments are `query`, a text, and where wanted `k`"
    results = whole_number(k)
    if results is None or results < 1:
        return f"error: `k` is a whole number from 1 to {MAX_RESULTS}"
    rows: list[str] = []
    before: Day | None = None
    for hit in sorted(search_context(session, query, k=results, shown=shown)):
        day = day_above(session.state, hit.ordinal)
        if day is not None and day != before:
            rows.append(day_line(day, len(session) + 1))
            before = day
        rows.append(f"{hit.ref} {hit.role}: {hit.text}")
    return "\n".join(rows) or NOTHING_FOUND


DEFAULT_LOSSES = 20
MAX_LOSSES = 100
NOTHING_DROPPED = "no compaction has left anything out of this conversation's window"


def what_was_dropped_tool() -> Wire:
    """Return the tool's schema in OpenAI form."""
    return {
        "type": "function",
        "function": {
            "name": "what_was_dropped",
            "description": "List what compactions of this conversation left out of the window (constraints, decisions, "
            "numbers, identifiers, paths, URLs, errors), with references to read it whole.",
            "parameters": {
                "type": "object",
                "properties": {
                    "words": {"type": "string", "description": "only what says one of these words; best first"},
                    "k": {"type": "integer", "minimum": 1, "maximum": MAX_LOSSES},
                    "offset": {"type": "integer", "minimum": 0, "description": "how many to pass by"},
                },
                "additionalProperties": False,
            },
        },
    }


def what_was_dropped(
    session: Session, /, words: object = None, *, k: object = DEFAULT_LOSSES, offset: object = 0, **unknown: object
) -> str:
    """Answer a call of the tool, in at most `DEFAULT_LIMIT_CHARS` and two lines; errors are answers."""
    check_argument("session", session, Session, 'pass store.session("s-1"), or the session of a chat: chat.session')
    count, start = whole_number(k), whole_number(offset)
    if unknown or not (words is None or isinstance(words, str)):
        return "error: the arguments are, where wanted, `words`, `k` and `offset`"
    if count is None or not 1 <= count <= MAX_LOSSES or start is None or start < 0:
        return f"error: `k` is a whole number from 1 to {MAX_LOSSES}, `offset` one from 0 on"
    reports = [event.report for event in session.compactions()]
    losses = {(loss.ref, loss.text): loss for report in reports for loss in report.losses}
    if not losses:
        return NOTHING_DROPPED
    newest = list(losses.values())[::-1]
    wanted = frozenset(terms((words or "")[:MAX_QUERY_CHARS]))
    said = {id(loss): len(wanted & frozenset(terms(loss.text[:MAX_TEXT_CHARS]))) for loss in newest} if words else {}
    chosen = sorted((loss for loss in newest if said[id(loss)]), key=lambda loss: -said[id(loss)]) if words else newest
    rows: list[str] = []
    room = DEFAULT_LIMIT_CHARS
    for loss in chosen[start : start + count]:
        row = f"{loss.kind} {loss.ref}: {continued(passage(loss.text, wanted))}"
        if (room := room - len(row) - 1) < 0:
            break
        rows.append(row)
    times = f"{len(reports)} compaction{'s' if len(reports) > 1 else ''}"
    which = f", {len(chosen)} of them on these words" if words else ", the newest first"
    rows.insert(0, f"{times} left {len(losses)} of what the originals say out of the window{which}:")
    left = len(chosen) - start - (len(rows) - 1)
    return "\n".join([*rows, f"[{left} more; offset={start + len(rows) - 1}]"] if left > 0 else rows)


def passage(text: str, wanted: Set[str], max_chars: int = MAX_RESULT_CHARS) -> str:
    """Return the stretch of a text, on one line, with most of the wanted terms; of equals the middle of the first.

    >>> passage("word " * 40 + "the valve is blue. " + "word " * 40, frozenset(terms("blue valve")), 60)
    '…word word word word the valve is blue. word word word word…'
    """
    text = " ".join(text[:MAX_TEXT_CHARS].split())
    if len(text) <= max_chars:
        return text
    starts = _pieces(text, min(PIECE_CHARS, max_chars // 4))
    wanted_by_piece = [wanted & frozenset(terms(text[at:stop])) for at, stop in pairwise((*starts, len(text)))]
    across = sum(at < max_chars - 2 for at in starts)
    counts = [len(frozenset().union(*wanted_by_piece[first : first + across])) for first in range(len(starts))]
    first = counts.index(max(counts))
    last = next((at for at in range(first, len(counts)) if counts[at] < counts[first]), len(counts)) - 1
    start = starts[(first + last) // 2] if first else 0
    start = min(start, len(text) - max_chars + 1)
    opening = "…" if start else ""
    rest = text[start:]
    room = max_chars - len(opening)
    return opening + (rest if len(rest) <= room else rest[: room - 1] + "…")


def _pieces(text: str, chars: int) -> list[int]:
    """Return where pieces of about `chars` characters begin: after a blank, if possible."""
    starts = [0]
    while starts[-1] + chars < len(text):
        at = starts[-1] + chars
        blank = text.rfind(" ", starts[-1] + 1, at)
        starts.append(blank + 1 if blank > 0 else at)
    return starts


def _hit(session: Session, scored: ScoredOriginal, wanted: Set[str]) -> Hit:
    entry = session.shown(scored.ordinal)
    shown = passage(text_of(entry.message), wanted)
    return Hit(entry.ordinal, entry.ref, entry.message.role, entry.event.ts, shown, round(scored.score, 4))


def model_tools(provider: str = "openai-chat") -> tuple[Wire, ...]:
    """Return both schemas in this provider's form of `tools`; Gemini's are one tool with two declarations.

    Give a session the schemas of `openai-chat`: each renderer translates them.

    >>> [tool["name"] for tool in model_tools("anthropic")]
    ['search_context', 'resolve_reference']
    """
    from ..render.request import FORMATS
    from ..render.units import translated

    forms = {name: form.as_tool for name, form in FORMATS.items() if form.as_tool is not None}
    if provider not in forms:
        raise InputError(f"no tool schemas for provider {provider!r}; one of: {', '.join(forms)}")
    schemas = translated((search_context_tool(), resolve_reference_tool()), forms[provider])
    return ({"function_declarations": schemas},) if provider == "gemini" else tuple(schemas)


def answer_call(
    session: Session, name: str, arguments: str | Mapping[str, Any], *, shown: Set[int] | None = None
) -> str | None:
    """Return the result of a model's call of one of the two tools, or None for another tool.

    `shown` are ordinals that a search leaves out, by default those that the session's window shows now.
    """
    if name not in ("search_context", "resolve_reference"):
        return None
    try:
        values = json.loads(arguments) if isinstance(arguments, str) else dict(arguments)
    except (ValueError, RecursionError):
        values = None
    if not isinstance(values, dict):
        return "error: the arguments are a JSON object"
    known = {"query", "k"} if name == "search_context" else {"ref", "offset", "limit", "grep"}
    if not values.keys() <= known:
        return f"error: the arguments are {', '.join(f'`{parameter}`' for parameter in sorted(known))}"
    return (
        answer_search(session, **values, shown=shown)
        if name == "search_context"
        else resolve_reference(session, **values)
    )
