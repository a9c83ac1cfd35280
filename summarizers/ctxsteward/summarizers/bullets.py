"""Bullets of the extractive summarizer: quoting their text, finding candidates, and fitting them into the budget.

`extraction` uses this module. A bullet's text consists of verbatim pieces of its originals with ``…`` between them, on
one line. It contains nothing that looks like a reference (``§12``), because citations are a field of their own. `quote`
makes such a text from one original; `unsupported` finds the pieces of a text that are in none of the given originals.

A tool output (`tool_bullets`) gives up to three candidates. Such a bullet opens with ``NAME: `` or ``NAME
ARGUMENTS: ``, arguments quoted from the call. Then follow verbatim pieces of the output, or the shape template ``JSON
with keys a, b, c; 240 rows`` / ``N lines`` / ``table with columns a, b; N rows``, whose names occur in the output and
whose numbers are counts. Of a long output only the head and the tail are read (`HEAD_CHARS`, `TAIL_CHARS`). JSON is
parsed up to `MAX_JSON_CHARS`.

Choosing: `merged` joins equal candidates, `fitted` takes the most valuable ones that fit the budget.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from ctxsteward.language.values import DISTINCTIVE, Value, normalize
from ctxsteward.language.words import SentenceSpan, clause_spans, lists
from ctxsteward.schemas import Bullet, Ref, SummarizerInput, ToolCallPart, ToolResultPart
from ctxsteward.schemas.errors import InvalidReference
from ctxsteward.schemas.summary import LossKind, SourceMessage

from .salience import BULLET_OVERHEAD_TOKENS, FLOOR, SentenceReading, read_sentence

ELLIPSIS = "…"

_BLANKS_AND_REFS = re.compile(r"(?<!\s)(?:\s++|§\s?\d+(?:\.\d+)?)+")
_UNQUOTABLE = re.compile(r"[\n\r\u2028\u2029\x0b\x0c\x1c-\x1e\x85§]")
_OPENING = lists("cues").pattern("opening", re.IGNORECASE)


def quote(text: str) -> str:
    """Return the text on one line. Line breaks and text that looks like a reference become an ellipsis.

    >>> quote("see §12 and\\nthe rest")
    'see…and…the rest'
    """
    if "\n" in text or "§" in text or not text.isprintable():
        text = _BLANKS_AND_REFS.sub(lambda run: ELLIPSIS if _UNQUOTABLE.search(run[0]) else run[0], text)
    return text.strip()


def without_opening(text: str) -> str:
    """Drop a conversational opening ("Oh, by the way, ") if enough is left.

    >>> without_opening("Oh, by the way, the port is 5432")
    'the port is 5432'
    """
    match = _OPENING.match(text)
    if match is None or len(text) - match.end() < min(12, len(text) // 2):
        return text
    return text[match.end() :]


def condensed(text: str, keep: Iterable[SentenceSpan | Value], max_chars: int) -> str:
    """Keep the clauses that overlap one of the spans in `keep`, and their neighbours while there is room."""
    if len(text) <= max_chars:
        return text
    parts = clause_spans(text)
    spans = list(keep)
    wanted = {
        index
        for index, part in enumerate(parts)
        if any(span.start < part.stop and span.stop > part.start for span in spans)
    } or {0}
    size = sum(parts[index].stop - parts[index].start for index in wanted)
    for index in sorted(range(len(parts)), key=lambda i: min(abs(i - w) * 2 + (i > w) for w in wanted)):
        length = parts[index].stop - parts[index].start + 2
        if index not in wanted and size + length <= max_chars:
            wanted.add(index)
            size += length
    return _joined(text, parts, sorted(wanted), max_chars)


def _joined(text: str, parts: list[SentenceSpan], order: list[int], max_chars: int) -> str:
    runs: list[list[int]] = []
    for index in order:
        start, stop = parts[index]
        if runs and runs[-1][2] == index - 1:
            runs[-1][1:] = [stop, index]
        else:
            runs.append([start, stop, index])
    shown = ELLIPSIS.join(text[start:stop].strip() for start, stop, _ in runs)
    return shown if len(shown) <= 2 * max_chars else shown[: 2 * max_chars].rsplit(" ", 1)[0]


def unsupported(text: str, originals: Iterable[str]) -> tuple[str, ...]:
    """Return the pieces of a bullet's text (split at the ellipsis) that are in none of the originals.

    >>> unsupported("the port…is 5432", ["the port of staging is 5432"])
    ()
    """
    known = list(originals)
    pieces = (piece.strip() for piece in text.split(ELLIPSIS))
    return tuple(piece for piece in pieces if piece and not any(piece in original for original in known))


@dataclass(frozen=True, slots=True, kw_only=True)
class BulletCandidate:
    """A text that may become a bullet, with its worth and citations."""

    text: str
    refs: tuple[str, ...]
    order: int
    kind: LossKind
    worth: float
    values: frozenset[str] = frozenset()
    """Norms of the values that it shows."""
    subject: frozenset[str] = frozenset()
    is_users: bool = False
    replaces: bool = False
    """Whether it makes another statement stale. It is then never merged into one that does not."""


MAX_CITATIONS = 3
COVERED_PENALTY = 30.0
"""Deducted from a candidate if another bullet already shows all its values."""


def ordinal(ref: str, fallback: int) -> int:
    """Return the ordinal of a reference, or `fallback` if the text is not a reference."""
    if ref[:1] == "§" and len(ref) < 12 and ref[1:].isascii() and ref[1:].isdigit():
        return int(ref[1:])
    try:
        return Ref.parse(ref).ordinal
    except InvalidReference:
        return fallback


HEAD_CHARS = 6_000
TAIL_CHARS = 2_000
MAX_JSON_CHARS = 60_000
MAX_NAME_CHARS = 80
MAX_KEYS = 8
MAX_PAIRS = 6
LINE_CHARS = 160
MAX_TOOL_OUTPUTS = 250

_PAIR = re.compile(r'"([\w .-]{1,40})"\s*:\s*("(?:[^"\\\n]|\\.){1,80}"|-?\d[\d.]*|true|false)')
_ID_KEY = re.compile(
    r"(?:^|_|\b)(?:id|ids|code|number|no|ref|reference|confirmation|tracking|ticket|order|sku|hash|sha|commit|uuid|key|url|path|email"
    r"|phone|version|status|state|total|amount|price|balance|count|date|time|name|user|eta|reservation|flight)s?$|[a-z](?:Id|No|Number|Code|Url|Key)$",
    re.IGNORECASE,
)
_STRONG_KEY = re.compile(
    r"confirm|reference|tracking|ticket|order|reservation|invoice|booking|_id$|^id$|[a-z]Id$|sku|commit|hash|url",
    re.IGNORECASE,
)
_ERROR_LINE = re.compile(
    r"\b(?:error|exception|traceback|failed|failure|fatal|panic|denied|refused|timed out"
    r"|timeout|not found|no such|abort|critical|unable to|cannot)\b"
    r"|错误|失败|异常|超时|拒绝|Error\b|Exception\b",
    re.IGNORECASE,
)
_ERROR_KEY = re.compile(
    r'"(?:error|errors|message|detail|reason|exception|err_msg)"\s*:\s*("(?:[^"\\\n]|\\.){1,160}"|\{|\[)',
    re.IGNORECASE,
)
_ACTION = re.compile(
    r"book|cancel|create|send|edit|write|update|delete|modify|replace|submit|commit|post|pay|refund|exchange|transfer|assign|set_|insert|move|rename|deploy|apply",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolOutput:
    """One tool result with its call, if known."""

    text: str
    name: str | None
    arguments: str
    """The call's arguments as the model wrote them; empty if unknown."""
    is_error: bool
    refs: tuple[str, ...]
    order: int


def tool_outputs(messages: Sequence[SourceMessage], visible: Sequence[SourceMessage]) -> list[ToolOutput]:
    """Return the newest `MAX_TOOL_OUTPUTS` tool outputs with their calls; of identical outputs only the newest."""
    calls: dict[str, tuple[str, ToolCallPart]] = {}
    newest: dict[tuple[str, str], ToolOutput] = {}
    for index, item in enumerate((*visible, *messages)):
        results = 0
        total = sum(isinstance(part, ToolResultPart) for part in item.message.parts)
        for part in item.message.parts:
            if isinstance(part, ToolCallPart):
                calls[part.id] = (item.ref, part)
            elif isinstance(part, ToolResultPart) and index >= len(visible):
                results += 1
                ref = item.ref if total < 2 or "." in item.ref else f"{item.ref}.{results}"
                output = _output(part, ref, ordinal(item.ref, index + 1), calls.get(part.call_id))
                newest.pop((output.name or "", output.text), None)
                newest[output.name or "", output.text] = output
    return list(newest.values())[-MAX_TOOL_OUTPUTS:]


def _output(part: ToolResultPart, ref: str, order: int, call: tuple[str, ToolCallPart] | None) -> ToolOutput:
    name = part.name or (call[1].name if call else None)
    refs = (ref,) if call is None or not call[1].arguments.strip("{} ") else (call[0], ref)
    return ToolOutput(
        text=part.text,
        name=name,
        arguments=call[1].arguments if call else "",
        is_error=part.is_error,
        refs=refs,
        order=order,
    )


def tool_bullets(output: ToolOutput) -> list[BulletCandidate]:
    """Return one to three bullets about an output, best first: its shape, errors and identifiers."""
    name = _short(output.name or "", MAX_NAME_CHARS) or "tool"
    text = output.text
    if len(text) > HEAD_CHARS + TAIL_CHARS:
        look = text[:HEAD_CHARS] + "\n" + text[-TAIL_CHARS:]
    else:
        look = text
    arguments = _short(output.arguments, 90) if output.arguments not in ("", "{}") else ""
    label = f"{name} {arguments}" if arguments else name
    acted = bool(_ACTION.search(name))
    read = _json_bullets if look[:1] in "{[" else _plain_bullets
    found = list(read(text, look, name, label, acted))[:3]
    if output.is_error and found:
        found[0] = ("error", max(58.0, found[0][1]), *found[0][2:])
    return [
        BulletCandidate(
            text=shown,
            refs=output.refs,
            order=output.order,
            kind=kind,
            worth=worth - min(12.0, 0.04 * max(0, len(shown) - 90)) + min(0.5, output.order * 1e-4),
            values=values,
        )
        for kind, worth, shown, values in found or [("fact", 24.0 if acted else 15.0, f"{label}: 0 lines", _NONE)]
    ]


_ToolLine = tuple[LossKind, float, str, frozenset[str]]
"""Kind, worth, text and values of a bullet about an output."""
_NONE: frozenset[str] = frozenset()


def _json_bullets(text: str, look: str, name: str, label: str, acted: bool) -> Iterator[_ToolLine]:
    error = _ERROR_KEY.search(look)
    if error is not None and error[1][0] == '"':
        yield "error", 57.0, f"{label}: {quote(error.group())}", _NONE
    pairs = _pairs(look)
    if pairs:
        strong = any(_STRONG_KEY.search(key) for key, _, _ in pairs)
        shown = ELLIPSIS.join(quote(raw) for _, raw, _ in pairs)
        worth = (66.0 if acted else 54.0) if strong else (58.0 if acted else 42.0)
        values = frozenset(normalize(value) for _, _, value in pairs)
        yield "identifier" if strong else "fact", worth, f"{label}: {shown}", values
    shape = _json_shape(text) if not pairs or len(text) > 1_500 else ""
    if shape:
        yield "fact", 26.0, f"{name if pairs else label}: {shape}", _NONE


def _pairs(look: str) -> list[tuple[str, str, str]]:
    """Return the key-value pairs worth showing: (key, verbatim text, value), one per key, identifiers first."""
    found: dict[str, tuple[str, str, str]] = {}
    for match in _PAIR.finditer(look, 0, HEAD_CHARS):
        if match[1] not in found and _ID_KEY.search(match[1]):
            found[match[1]] = (match[1], match.group(), match[2].strip('"'))
            if len(found) >= 3 * MAX_PAIRS:
                break
    ranked = sorted(found.values(), key=lambda pair: not _STRONG_KEY.search(pair[0]))[:MAX_PAIRS]
    return [pair for pair in found.values() if pair in ranked]


def _json_shape(text: str) -> str:
    if len(text) > MAX_JSON_CHARS:
        return f"{text.count(chr(10)) + 1} lines"
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return f"{text.count(chr(10)) + 1} lines"
    rows = len(value) if isinstance(value, list) else 0
    first = value[0] if rows else value
    keys = [key for key in first if _plain_key(key, text)][:MAX_KEYS] if isinstance(first, dict) else []
    if not keys:
        return f"JSON; {rows} rows" if rows else ""
    shape = "JSON with keys " + ", ".join(keys)
    return f"{shape}; {rows} rows" if rows else shape


def _plain_key(key: str, text: str) -> bool:
    return key.isprintable() and 0 < len(key) <= 40 and "§" not in key and key in text


def _plain_bullets(text: str, look: str, name: str, label: str, acted: bool) -> Iterator[_ToolLine]:
    lines = [line for line in look.splitlines() if line.strip()]
    if not lines:
        return
    total = text.count("\n") + 1
    errors = [line for line in lines if _ERROR_LINE.search(line, 0, 400)]
    if errors:
        shown = ELLIPSIS.join(_short(line, LINE_CHARS) for line in dict.fromkeys((errors[0], errors[-1])))
        yield "error", 56.0, f"{label}: {shown}", _NONE
    salient = _salient(lines, set(errors))
    if salient is not None:
        reading, line = salient
        strong = any(value.kind in DISTINCTIVE for value in reading.values)
        worth = (64.0 if acted else 48.0) if strong else (55.0 if acted else 40.0)
        yield "identifier" if strong else "fact", worth, f"{label}: {line}", reading.norms
    columns = _columns(lines)
    if columns:
        yield "fact", 28.0, f"{name}: table with columns {columns}; {total} rows", _NONE
    elif (not errors and salient is None) or total > 3:
        ends = (lines[0],) if total == 1 else (lines[0], lines[-1])
        shown = ELLIPSIS.join(dict.fromkeys(_short(line, LINE_CHARS if total == 1 else 80) for line in ends))
        counted = f"{ELLIPSIS}{total} lines" if total > 2 else ""
        yield "fact", 38.0 if acted else 24.0, f"{label}: {shown}{counted}", _NONE


def _salient(lines: list[str], errors: set[str]) -> tuple[SentenceReading, str] | None:
    """Return the line with the most informative values, among the first eight and last four."""
    best: tuple[float, SentenceReading, str] | None = None
    for line in lines[:8] + lines[8:][-4:]:
        line = line.strip()
        if line in errors or len(line) > 400:
            continue
        reading = read_sentence(line[:240], "tool")
        score = reading.worth + 3.0 * len(reading.values)
        if reading.values and (best is None or score > best[0]):
            best = (score, reading, _short(line, LINE_CHARS))
    return None if best is None else (best[1], best[2])


def _columns(lines: list[str]) -> str:
    """Return the quoted header of a table with pipes, tabs or commas, or ""."""
    head = lines[0].strip()
    for mark in ("|", "\t", ","):
        if (
            head.count(mark) >= 2
            and len(lines) > 2
            and lines[-1].count(mark) == head.count(mark)
            and len(head) <= LINE_CHARS
        ):
            cells = [cell.strip() for cell in head.split(mark)]
            return ", ".join(quote(cell) for cell in cells if cell and "…" not in quote(cell))
    return ""


def _short(line: str, limit: int) -> str:
    line = quote(line)
    return line if len(line) <= limit else line[:limit].rstrip()


def merged(candidates: Iterable[BulletCandidate]) -> list[BulletCandidate]:
    """Merge candidates with the same values and mostly the same words into one that cites all their originals."""
    groups: dict[object, list[int]] = {}
    found: list[BulletCandidate] = []
    for candidate in sorted(candidates, key=lambda c: -c.worth):
        places = groups.setdefault((candidate.values or normalize(candidate.text), candidate.replaces), [])
        twin = next((place for place in places[:8] if _alike(candidate.subject, found[place].subject)), None)
        if twin is None:
            places.append(len(found))
            found.append(candidate)
            continue
        refs = dict.fromkeys((*found[twin].refs, *candidate.refs))
        if len(refs) <= MAX_CITATIONS:
            found[twin] = replace(found[twin], refs=tuple(sorted(refs, key=lambda ref: ordinal(ref, 0))))
    return found


def _alike(one: frozenset[str], other: frozenset[str]) -> bool:
    small = min(len(one), len(other))
    return small == 0 or len(one & other) >= 0.6 * small


def fitted(
    candidates: Iterable[BulletCandidate],
    standing: Sequence[SentenceReading],
    source: SummarizerInput,
    budget_tokens: int,
) -> tuple[Bullet, ...]:
    """Return the best candidates that fit beside `standing`. One whose values are all shown comes after the others."""
    shown = {norm for reading in standing for norm in reading.norms if len(norm) > 2}
    known = {(reading.norms, reading.subject) for reading in standing}
    repeated = {quote(reading.text) for reading in standing}
    chosen: list[tuple[int, Bullet]] = []
    room = budget_tokens
    waiting = [(candidate, 0.0) for candidate in sorted(candidates, key=lambda c: (-c.worth, c.order, c.text))]
    for candidate, penalty in waiting:
        if not penalty:
            if candidate.text in repeated or (candidate.values, candidate.subject) in known:
                continue
            if (
                not candidate.is_users
                and candidate.kind not in ("constraint", "decision")
                and candidate.values
                and candidate.values <= shown
            ):
                if candidate.worth - COVERED_PENALTY >= FLOOR:
                    waiting.append((candidate, COVERED_PENALTY))  # considered after all others
                continue
        shown |= {norm for norm in candidate.values if len(norm) > 2}
        if len(candidate.text) > 8 * room:
            continue
        cost = source.count_tokens(candidate.text) + BULLET_OVERHEAD_TOKENS
        if cost <= room:
            worth = round(candidate.worth - penalty, 4)
            bullet = Bullet(text=candidate.text, citations=candidate.refs, kind=candidate.kind, value=worth)
            chosen.append((candidate.order, bullet))
            room -= cost
        if room <= BULLET_OVERHEAD_TOKENS + 2:
            break
    chosen.sort(key=lambda pair: (ordinal(pair[1].citations[0], pair[0]), pair[0]))
    return tuple(bullet for _, bullet in chosen)
