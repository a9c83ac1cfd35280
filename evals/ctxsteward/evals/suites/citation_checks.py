"""Check citations and quotes of a window against the conversation, and make tool outputs, for the suite ``citations``.

`messages` is always the conversation's list of wire dicts, in order: message §n is ``messages[n - 1]``. References are
read from structure (bullets, fragments, reports); they are read from text only to check the lines that a model reads.

`exchange` makes up to three calls and their results, of many kinds and sizes. In the OpenAI dialect each result is a
message; in the Anthropic dialect one message holds all (``§n.1``, ``§n.2``). Some repeat an earlier result word for
word.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from random import Random
from typing import NamedTuple

from ctxsteward.envelope import Envelope, Session, answer_call
from ctxsteward.envelope.history.tool_groups import text_of
from ctxsteward.envelope.layout.fragments import ToolResult, ToolResults
from ctxsteward.envelope.layout.rows import fenced_rows, rows_of
from ctxsteward.schemas import Bullet, CompressionReport, ContextError, Message, Ref
from ctxsteward.schemas.message import Wire, encode_wire, take_wire

from ..phrasings import Texts, texts
from ..subjects.port import Archive, Outputs
from .kit import sealed_formats
from .kit.pasted_content import calls
from .kit.play import CallMoment, EndMoment, gives
from .kit.said_texts import texts_of
from .kit.suite import Draw, Score, holds, unscored
from .kit.talk import answer

SUMMARY_CHARS = 80
"""Characters that a report quotes from the beginning of a compacted message without a bullet of its own."""
MIN_QUOTE_CHARS = 6
READ_CHARS = 900
"""Characters of each piece in which a model reads a long original."""
_CITED_LINE = re.compile(r"- .*\S(?: §[1-9]\d*(?:\.[1-9]\d*)?)+")
_QUOTED = re.compile(r"“([^“”]+)”|「([^「」]+)」|\"([^\"]+)\"|`([^`]+)`")
_NOTE = re.compile(r"\[… \d+ tokens in all, excerpt; (§\d+(?:\.\d+)?) resolves to the whole …\]")
_MASKED = re.compile(r"\[(?:text|structured|image)(?: error)? result, (\d+) characters, (§\d+(?:\.\d+)?)\]")
_COUNTED = re.compile(r"\d+ lines|JSON(?: with keys .+)?(?:; \d+ rows)?|table with columns .+; \d+ rows")
_GAP = "…"
_DAY = re.compile(r"\d{4}-\d\d-\d\d(?: §(\d+)-§(\d+))?:")


def bullets_cited(envelope: Envelope, session: Session, at: str) -> Iterator[Score]:
    """Check that every bullet has a citation, and that every shown line ends with its citations."""
    for bullet in session.state.bullets:
        yield holds("bullets_cited", bool(bullet.citations), at, f"a bullet without citation: {bullet.text!r:.120}")
    fragment = envelope.dynamic.bullets
    lines = fragment.text.split("\n")[1:-2] if fragment else []
    for line in lines:
        is_cited = _CITED_LINE.fullmatch(line) is not None
        yield holds("bullets_cited", is_cited, at, f"shown without citation: {line!r:.120}")
    if len(lines) != len(session.state.bullets):
        why = f"{len(session.state.bullets)} bullets stand, {len(lines)} lines are shown"
        yield Score("bullets_cited", 0.0, at, why)


def cited_refs(bullets: Iterable[Bullet]) -> list[Ref]:
    """Return the citations of bullets, sorted, each once."""
    return sorted({Ref.parse(ref) for bullet in bullets for ref in bullet.citations})


def resolves(metric: str, refs: Iterable[Ref], session: Session, messages: Sequence[Wire], at: str) -> Iterator[Score]:
    """Check that references resolve to the bytes of the conversation."""
    for ref in refs:
        fault = _fault(ref, session, messages)
        yield holds(metric, not fault, at, f"{ref} {fault}", str(ref))


def _fault(ref: Ref, session: Session, messages: Sequence[Wire]) -> str:
    if not 0 < ref.ordinal <= len(messages):
        return f"is outside the {len(messages)} messages"
    wire = messages[ref.ordinal - 1]
    try:
        resolved = session.resolve(ref)
    except ContextError as error:
        return f"does not resolve: {error}"
    if not ref.part:
        return "" if encode_wire(resolved) == encode_wire(wire) else "resolves to other bytes"
    results = _message(wire).tool_results
    same = ref.part <= len(results) and resolved.tool_results[0].text == results[ref.part - 1].text
    return "" if same else "resolves to another tool result"


def lost_in(reports: Iterable[CompressionReport]) -> set[int]:
    """Return the ordinals of messages that reports name as lost in part or whole."""
    return {Ref.parse(loss.ref).ordinal for report in reports for loss in report.losses}


def accounted(envelope: Envelope, session: Session, lost: Set[int], at: str) -> Score:
    """Check that every message is in the window once, or cited, or a recorded loss."""
    shown = [ordinal for fragment in envelope.dynamic.strip.fragments for ordinal in fragment.refs]
    cited = {Ref.parse(ref).ordinal for bullet in session.state.bullets for ref in bullet.citations}
    gone = set(range(1, len(session) + 1)) - {*shown, *cited, *lost}
    why = f"neither shown nor cited nor lost: {sorted(gone)[:8]}" if gone else "shown twice"
    return holds("accounted", not gone and len(shown) == len(set(shown)), at, why)


# -- quotes ------------------------------------------------------------------------------------------------------


def losses_quote(report: CompressionReport, messages: Sequence[Wire], at: str, *, verbatim: bool) -> Iterator[Score]:
    """Check that a loss with a span quotes it exactly, and any other a bullet or the beginning of its message."""
    together: dict[str, list[str]] = {}
    for loss in report.losses:
        together.setdefault(loss.text, []).append(loss.ref)
    for loss in report.losses:
        text = text_of(_message(messages[Ref.parse(loss.ref).ordinal - 1]))
        if loss.span is not None:
            same = text[loss.span[0] : loss.span[1]] == loss.text
        else:
            same = text[:SUMMARY_CHARS] == loss.text or not _altered(together[loss.text], loss.text, messages, verbatim)
        yield holds(
            "quotes_match",
            same,
            f"{at}, loss {loss.ref} {loss.span}",
            f"{loss.text!r:.120} does not stand there",
            f"loss {loss.ref} {loss.text}",
        )


def bullets_quote(bullets: Iterable[Bullet], messages: Sequence[Wire], at: str, *, verbatim: bool) -> Iterator[Score]:
    """Check that quotes in a bullet occur in a message it cites; with `verbatim`, check every piece of the bullet."""
    for bullet in bullets:
        wrong = _altered(bullet.citations, bullet.text, messages, verbatim)
        yield holds(
            "quotes_match", not wrong, f"{at}, bullet {' '.join(bullet.citations)}", f"altered: {wrong[:2]!r:.160}"
        )


def _altered(refs: Iterable[str], text: str, messages: Sequence[Wire], verbatim: bool) -> list[str]:
    """Return the pieces of a bullet that occur in none of the messages that it cites."""
    cited = [_message(messages[Ref.parse(ref).ordinal - 1]) for ref in refs]
    originals = [text_of(message) for message in cited]
    squeezed = [_squeezed(original) for original in originals]
    wrong = [quote for quote in quotes(text) if not any(_squeezed(quote) in original for original in squeezed)]
    if wrong or not verbatim:
        return wrong
    wrong = _unsupported(text, originals)
    of_tools = wrong and any(message.tool_results for message in cited)
    return _unsupported_behind_label(text, originals) if of_tools else wrong


def _unsupported(text: str, originals: Sequence[str]) -> list[str]:
    """Return the pieces of a bullet (split at the ellipsis) that occur in none of the originals."""
    pieces = (piece.strip() for piece in text.split("…"))
    return [piece for piece in pieces if piece and not any(piece in original for original in originals)]


def _unsupported_behind_label(text: str, originals: Sequence[str]) -> list[str]:
    """Like `_unsupported`, for a bullet on a tool output: a label, then quotes or counts of lines and rows."""
    best: list[str] | None = None
    for label in re.finditer(r": ", text):
        wrong = [piece for piece in _unsupported(text[label.end() :], originals) if not _COUNTED.fullmatch(piece)]
        best = wrong if best is None or len(wrong) < len(best) else best
    return _unsupported(text, originals) if best is None else best


def recalled_quote(envelope: Envelope, messages: Sequence[Wire], session: Session, at: str) -> Iterator[Score]:
    """Check that recalled messages are under their reference: whole, in passages, or cut if a question names them."""
    fragment = envelope.dynamic.context
    rows = fenced_rows(envelope.nonce, fragment.text) if fragment else []
    for ordinal in fragment.refs if fragment else ():
        message = _message(messages[ordinal - 1])
        texts = [message.text, *(result.text for result in message.tool_results)]
        whole = "\n".join(text for text in texts if text)
        note = re.compile(rf"; §{ordinal}(?:\.\d+)? resolves to the whole …\]")
        label = re.compile(rf"§{ordinal} {message.role}(?:, superseded by [§\d, ]+)?: ")
        shown_rows = [row[label_match.end() :] for row in rows if (label_match := label.match(row))]
        shown = any(text == whole or (note.search(text) and _is_excerpt(text, whole)) for text in shown_rows)
        shown = shown or _in_passages(ordinal, message, whole, rows, session)
        yield holds(
            "quotes_match", shown, f"{at}, recalled §{ordinal}", "not whole under its reference and role", f"§{ordinal}"
        )


def _in_passages(ordinal: int, message: Message, whole: str, rows: Sequence[str], session: Session) -> bool:
    """Return whether rows show passages of a message in order, each resolved by its own reference."""
    label = re.compile(rf"§{ordinal}(?:\.(\d+)(?:-(\d+))?)? {message.role}(?:, superseded by [§\d, ]+)?: ")
    at = 0
    passages = [(match, row[match.end() :]) for row in rows if (match := label.match(row))]
    for match, text in passages:
        inner = text.removeprefix(_GAP if at or not whole.startswith(text[:20]) else "").removesuffix(_GAP)
        at = whole.find(inner, at)
        if at < 0 or inner == whole:
            return False
        if match[1] is not None:
            parts = range(int(match[1]), int(match[2] or match[1]) + 1)
            if "".join(session.resolve(f"§{ordinal}.{part}").text for part in parts).strip() != inner:
                return False
        elif not message.tool_results:
            return False
        at += len(inner)
    return bool(passages)


def _is_excerpt(text: str, whole: str) -> bool:
    """Return whether every line except the note occurs in the original; a message named by number may be cut."""
    return all(_NOTE.fullmatch(line) or line in whole for line in text.split("\n"))


def results_quote(envelope: Envelope, messages: Sequence[Wire], at: str) -> Iterator[Score]:
    """Check that each tool result in the window is whole, or cut with a reference to the whole."""
    for fragment in envelope.dynamic.strip.fragments:
        for step in fragment.steps:
            for reply in step.answers if isinstance(step, ToolResults) else ():
                if reply.entry is not None:
                    fault = _answer_fault(reply, messages)
                    yield holds(
                        "quotes_match", not fault, f"{at}, result {reply.entry.ref}", fault, str(reply.entry.ref)
                    )


def _answer_fault(answer: ToolResult, messages: Sequence[Wire]) -> str:
    assert answer.entry is not None
    results = _message(messages[answer.entry.ordinal - 1]).tool_results
    whole = results[answer.index].text
    if answer.text == whole:
        return ""
    named = f"§{answer.entry.ordinal}" + (f".{answer.index + 1}" if len(results) > 1 else "")
    masked = _MASKED.fullmatch(answer.text)
    if masked:
        right = masked[2] == named and int(masked[1]) == len(whole)
        return "" if right else f"the line in its place names {masked[2]} and {masked[1]} characters"
    note = _NOTE.search(answer.text)
    if note is None or note[1] != named:
        return f"cut without the reference {named}"
    lines = [line for line in answer.text.split("\n") if line != note[0]]
    wrong = [line for line in lines if line not in whole]
    return f"its excerpt says what the original does not: {wrong[0]!r:.100}" if wrong else ""


def quotes(text: str) -> list[str]:
    """Return passages in quotation marks that are long enough to be somebody's words.

    >>> quotes('she said “ship it now”, not "no"')
    ['ship it now']
    """
    quoted = ["".join(groups) for groups in _QUOTED.findall(text)]
    return [quote for quote in quoted if len(quote) >= MIN_QUOTE_CHARS and "…" not in quote]


# -- reading again ----------------------------------------------------------------------------------------------


def output_again(number: int, wanted: str, place: Ref, session: Session, at: str) -> Iterator[Score]:
    """Check that each way to name the n-th tool output gives the tool's words exactly."""
    ways: dict[str, Callable[[], str]] = {
        f"tool_output({number})": lambda: session.tool_output(number).tool_results[0].text,
        f"tool:{number}": lambda: session.resolve(f"tool:{number}").tool_results[0].text,
        str(place): lambda: session.resolve(place).tool_results[0].text,
        f"resolve_reference tool:{number}": lambda: read(session, f"tool:{number}"),
    }
    for way, give in ways.items():
        try:
            text, why = give(), f"{way} gives other words"
        except ContextError as error:
            text, why = "", f"{way} gives nothing: {error}"
        yield holds("tool_outputs", text == wanted, at, why, str(place))


def read(session: Session, ref: str) -> str:
    """Read an original as a model does, with its tool and piece by piece."""
    text, offset = "", 0
    while True:
        arguments = {"ref": ref, "offset": offset, "limit": READ_CHARS}
        shown = answer_call(session, "resolve_reference", arguments) or ""
        more = re.search(r"\n\[(\d+) more characters; offset=(\d+)\]\Z", shown)
        text += shown[: more.start()] if more else shown
        if more is None or int(more[2]) <= offset:
            return text
        offset = int(more[2])


def range_again(first: int, last: int, session: Session, messages: Sequence[Wire], at: str) -> Score:
    """Check that a range resolves to its whole messages in order, each under its reference and role."""
    if not 0 < first <= last <= len(messages):
        return Score("ranges_resolve", 0.0, at, f"§{first}-§{last} is not a range in {len(messages)} messages")
    rows = [(n, _message(messages[n - 1])) for n in range(first, last + 1)]
    wanted = [f"§{n} {message.role}: {text_of(message)}" for n, message in rows]
    return holds(
        "ranges_resolve",
        rows_of(read(session, f"§{first}-§{last}")) == wanted,
        at,
        f"§{first}-§{last} gives other words",
        f"§{first}-§{last}",
    )


def days_again(
    envelope: Envelope, days: Sequence[str], session: Session, messages: Sequence[Wire], at: str
) -> Iterator[Score]:
    """Check that the line of a day above recalled messages names all messages of that day, and its range resolves.

    ``days[n - 1]`` is the date of message §n.
    """
    fragment = envelope.dynamic.context
    for line in fragment.text.split("\n") if fragment else ():
        match = _DAY.fullmatch(line)
        if match is None or match[1] is None:
            continue
        first, last, day = int(match[1]), int(match[2]), line[:10]
        own = [n for n, date in enumerate(days, 1) if date == day]
        fits = first in own and set(range(first, last + 1)) <= set(own) and (first == 1 or days[first - 2] != day)
        named = f"§{own[0]}-§{own[-1]}" if own else "none"
        yield holds("ranges_resolve", fits, at, f"{line!r} does not fit the day's messages: {named}")
        yield range_again(first, last, session, messages, at)


def _message(wire: Wire) -> Message:
    return take_wire(wire)[1]


def _squeezed(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()


# -- subjects with messages only -----------------------------------------------------------------------------------


def lines_cited(moment: CallMoment) -> Iterator[Score]:
    """Check that every line of the subject's summary has a reference."""
    if moment.prompt.summary is None:
        yield unscored("bullets_cited", "the subject does not mark its own lines", moment.at)
        return
    for line in filter(None, map(str.strip, moment.prompt.summary.splitlines())):
        cited = any(reference in line for reference in moment.references.values())
        yield holds("bullets_cited", cited, moment.at, f"a line without reference: {line!r:.120}")


def references_resolve(ended: EndMoment) -> Iterator[Score]:
    """Check that every reference of every window still resolves to its message."""
    if not isinstance(ended.dialogue, Archive):
        yield unscored("citations_resolve", "the subject has no references that resolve")
        return
    for reference, place in ended.references.items():
        text = "\n".join(texts_of(ended.wires[place - 1])) if place <= len(ended.wires) else ""
        same = gives(ended.resolved(reference), text)
        yield holds("citations_resolve", same, reference, "gives nothing, or other words")


def outputs_resolve(ended: EndMoment) -> Iterator[Score]:
    """Check that every tool output is available whole, by its number or by a reference of some window."""
    if not isinstance(ended.dialogue, (Archive, Outputs)):
        yield unscored("tool_outputs", "the subject has neither numbers nor references for tool outputs")
        return
    references = {place: reference for reference, place in ended.references.items()}
    for number, output in enumerate(outputs_of(ended.wires), 1):
        if isinstance(ended.dialogue, Outputs):
            given = ended.output(number)
        else:
            given = ended.resolved(references.get(output.place.ordinal, ""))
        yield holds("tool_outputs", given == output.text, f"tool output {number}", "not there, or not whole")


LONG_SHARE = 0.25
"""Share of long outputs, most of them over the arrival cap."""
AGAIN_SHARE = 0.08

_NAMES = ("read_page", "query_rows", "tail_log", "get_config", "list_files", "run_check", "fetch_diff")
_SEALED_NAMES = ("unroll_chart", "read_gauge", "drain_buffer", "trace_donor", "dump_table", "hail_vessel")


def _words(draw: Draw) -> Texts:
    return draw.texts("tool_outputs", "words")


def _names(draw: Draw) -> Texts:
    """Return English words, for names in either language."""
    return texts("tool_outputs", "words", "en", draw.split)


class ScriptedToolOutput(NamedTuple):
    """A tool output of a conversation."""

    place: Ref
    text: str


def outputs_of(messages: Sequence[Wire]) -> list[ScriptedToolOutput]:
    """Return all tool outputs in order; the n-th is ``tool:n``."""
    outputs: list[ScriptedToolOutput] = []
    for ordinal, wire in enumerate(messages, 1):
        # Parsing is slow, and this runs at each ask: only these messages can hold results.
        if wire["role"] == "tool" or (wire["role"] == "user" and not isinstance(wire["content"], str)):
            results = enumerate(take_wire(wire)[1].tool_results, 1)
            outputs += [ScriptedToolOutput(Ref(ordinal, part), result.text) for part, result in results]
    return outputs


def exchange(rng: Random, draw: Draw, before: Sequence[Wire], *, anthropic: bool) -> list[Wire]:
    """Make a round of calls and their results."""
    made = [
        (f"call_{len(before)}_{k}_{rng.randrange(16**5):05x}", *_made(rng, draw, before))
        for k in range(rng.choice((1, 1, 1, 2, 3)))
    ]
    if anthropic:
        uses = [{"type": "tool_use", "id": id, "name": name, "input": {"target": key}} for id, name, key, _ in made]
        results = [{"type": "tool_result", "tool_use_id": id, "content": text} for id, _, _, text in made]
        return [{"role": "assistant", "content": uses}, {"role": "user", "content": results}]
    called = calls(*((id, name, {"target": key}) for id, name, key, _ in made))
    return [called, *(answer(id, text) for id, _, _, text in made)]


def _made(rng: Random, draw: Draw, before: Sequence[Wire]) -> tuple[str, str, str]:
    """Return tool name, argument and output."""
    names, kinds = (_SEALED_NAMES, _SEALED_KINDS) if draw.split == "sealed" else (_NAMES, _KINDS)
    name, key = rng.choice(names), f"{rng.choice(_names(draw))}-{rng.randint(10, 9999)}"
    earlier = [wire for wire in before if wire["role"] == "tool"] if rng.random() < AGAIN_SHARE else []
    if earlier:
        return name, key, take_wire(rng.choice(earlier))[1].tool_results[0].text
    size = rng.randint(25, 60) if rng.random() < LONG_SHARE else rng.randint(2, 9)
    return name, key, rng.choice(kinds)(rng, draw, size)


def _prose(rng: Random, draw: Draw, size: int) -> str:
    sentences, words = draw.texts("tool_outputs", "sentences"), _words(draw)
    rows = []
    for _ in range(size):
        a, b = rng.sample(words, 2)
        rows.append(rng.choice(sentences).format(a=a, b=b, n=rng.randint(2, 99), m=rng.randint(100, 9999)))
    return (" " if draw.language == "en" else "").join(rows)


def _rows(rng: Random, draw: Draw, size: int) -> str:
    words = _words(draw)
    rows = [
        {
            "id": f"{rng.choice('QRT')}-{rng.randint(1000, 99999)}",
            "name": rng.choice(words),
            "price": rng.randint(1, 999) / 4,
        }
        for _ in range(size)
    ]
    return json.dumps({"rows": rows, "next": None}, ensure_ascii=rng.random() < 0.3, indent=rng.choice((None, 1)))


def _log(rng: Random, draw: Draw, size: int) -> str:
    names = _names(draw)
    rows = [
        f"12:{rng.randint(10, 59)}:0{rng.randint(0, 9)} INFO {rng.choice(names)} took {rng.randint(3, 900)} ms"
        for _ in range(size * 2)
    ]
    if rng.random() < 0.5:
        wrong = "Error: connection refused by {}" if draw.language == "en" else "错误：{} 连接被拒绝"
        rows.insert(rng.randrange(len(rows)), "12:44:01 " + wrong.format(rng.choice(names)))
    return "\n".join(rows) + "\n"


def _table(rng: Random, draw: Draw, size: int) -> str:
    head = "item | count | place" if draw.language == "en" else "品名 | 数量 | 位置"
    words = _words(draw)
    rows = (f"{rng.choice(words)} | {rng.randint(1, 999)} | §{rng.randint(1, 40)}" for _ in range(size))
    return "\n".join([head, *rows])


def _config(rng: Random, draw: Draw, size: int) -> str:
    names = _names(draw)
    rows = [
        f"{rng.choice(names)}_{n}:\n  limit: {rng.randint(1, 9999)}\n  path: /srv/{rng.choice(names)}/{n}.yaml"
        for n in range(size)
    ]
    return "# " + ("settings" if draw.language == "en" else "设置") + "\n" + "\n".join(rows)


def _bare(rng: Random, draw: Draw, size: int) -> str:
    """Return a short, odd or empty output."""
    done = "完成" if draw.language == "zh" else "done"
    return rng.choice(("ok", "", "0", "\n\n", "null", "[]", done, "§3", "\t…\u200b"))


def _sealed(kind: str) -> Kind:
    return lambda rng, draw, size: sealed_formats.FORMATS[kind](rng, _words(draw), size)


Kind = Callable[[Random, Draw, int], str]
_KINDS: tuple[Kind, ...] = (_prose, _rows, _log, _table, _config, _bare)
_SEALED_KINDS: tuple[Kind, ...] = (_prose, _prose, _bare, *map(_sealed, sealed_formats.FORMATS))
