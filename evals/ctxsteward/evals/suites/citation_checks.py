"""Tool outputs and pure checks of the suite ``citations``: what a window cites and quotes, against what was said.

`said` is always the conversation's own list of wire dicts, in order: message §n is ``said[n - 1]``. A reference is
taken from structure (bullets, fragments, reports), never from text, but where the lines a model reads are checked.

`exchange` makes up to three calls and their results, of many kinds and sizes; in the OpenAI dialect one message a
result, in the Anthropic dialect one with all (``§n.1``, ``§n.2``). Some repeat an earlier result word for word.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

from ctxsteward.envelope import Envelope, Session, answer_call
from ctxsteward.envelope.history.tool_groups import text_of
from ctxsteward.envelope.layout.fragments import ToolResult, ToolResults
from ctxsteward.envelope.layout.rows import rows_of, unfenced
from ctxsteward.schemas import Bullet, CompressionReport, ContextError, Message, Ref
from ctxsteward.schemas.message import Wire, encode_wire, take_wire

from ..phrasings import Texts, texts
from ..subjects.port import Archive, Outputs
from .kit import sealed_formats
from .kit.pasted_content import calls
from .kit.play import CallMoment, EndMoment, gives
from .kit.said_texts import texts_of
from .kit.suite import Language, Score, Split, UnscoredCheck, holds
from .kit.talk import answer

SUMMARY_CHARS = 80
"""Of a message that left without a probe of its own, a report quotes so much from its beginning."""
MIN_QUOTE_CHARS = 6
READ_CHARS = 900
"""A model reads a long original in pieces of so many characters."""
_CITED_LINE = re.compile(r"- .*\S(?: §[1-9]\d*(?:\.[1-9]\d*)?)+")
_QUOTED = re.compile(r"“([^“”]+)”|「([^「」]+)」|\"([^\"]+)\"|`([^`]+)`")
_NOTE = re.compile(r"\[… \d+ tokens in all, excerpt; (§\d+(?:\.\d+)?) resolves to the whole …\]")
_MASKED = re.compile(r"\[(?:text|structured|image)(?: error)? result, (\d+) characters, (§\d+(?:\.\d+)?)\]")
_COUNTED = re.compile(r"\d+ lines|JSON(?: with keys .+)?(?:; \d+ rows)?|table with columns .+; \d+ rows")
_GAP = "…"
_DAY = re.compile(r"\d{4}-\d\d-\d\d(?: §(\d+)-§(\d+))?:")


def bullets_cited(envelope: Envelope, session: Session, at: str) -> Iterator[Score]:
    """Every bullet that stands cites something, and every line that is shown ends with what it cites."""
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
    """What bullets cite, once each."""
    return sorted({Ref.parse(ref) for bullet in bullets for ref in bullet.citations})


def resolves(metric: str, refs: Iterable[Ref], session: Session, said: Sequence[Wire], at: str) -> Iterator[Score]:
    """Whether references give the bytes that were said."""
    for ref in refs:
        fault = _fault(ref, session, said)
        yield holds(metric, not fault, at, f"{ref} {fault}", str(ref))


def _fault(ref: Ref, session: Session, said: Sequence[Wire]) -> str:
    if not 0 < ref.ordinal <= len(said):
        return f"names none of {len(said)} messages"
    wire = said[ref.ordinal - 1]
    try:
        found = session.resolve(ref)
    except ContextError as error:
        return f"does not resolve: {error}"
    if not ref.part:
        return "" if encode_wire(found) == encode_wire(wire) else "resolves to other bytes"
    results = _message(wire).tool_results
    same = ref.part <= len(results) and found.tool_results[0].text == results[ref.part - 1].text
    return "" if same else "resolves to another tool result"


def lost_in(reports: Iterable[CompressionReport]) -> set[int]:
    """Ordinals that reports say something was lost of."""
    return {Ref.parse(loss.ref).ordinal for report in reports for loss in report.losses}


def accounted(envelope: Envelope, session: Session, lost: Set[int], at: str) -> Score:
    """Every message is in the window once, or cited, or a recorded loss."""
    shown = [ordinal for fragment in envelope.dynamic.strip.fragments for ordinal in fragment.refs]
    cited = {Ref.parse(ref).ordinal for bullet in session.state.bullets for ref in bullet.citations}
    gone = set(range(1, len(session) + 1)) - {*shown, *cited, *lost}
    why = f"neither shown nor cited nor lost: {sorted(gone)[:8]}" if gone else "shown twice"
    return holds("accounted", not gone and len(shown) == len(set(shown)), at, why)


# -- quotes ------------------------------------------------------------------------------------------------------


def losses_quote(report: CompressionReport, said: Sequence[Wire], at: str, *, verbatim: bool) -> Iterator[Score]:
    """A loss with a span says exactly what stands there; one without is a bullet's text or how its message begins."""
    together: dict[str, list[str]] = {}
    for loss in report.losses:
        together.setdefault(loss.text, []).append(loss.ref)
    for loss in report.losses:
        text = text_of(_message(said[Ref.parse(loss.ref).ordinal - 1]))
        if loss.span is not None:
            same = text[loss.span[0] : loss.span[1]] == loss.text
        else:
            same = text[:SUMMARY_CHARS] == loss.text or not _altered(together[loss.text], loss.text, said, verbatim)
        yield holds(
            "quotes_match",
            same,
            f"{at}, loss {loss.ref} {loss.span}",
            f"{loss.text!r:.120} does not stand there",
            f"loss {loss.ref} {loss.text}",
        )


def bullets_quote(bullets: Iterable[Bullet], said: Sequence[Wire], at: str, *, verbatim: bool) -> Iterator[Score]:
    """What a bullet puts in quotes stands in a message it cites; with `verbatim`, so does every piece of it."""
    for bullet in bullets:
        wrong = _altered(bullet.citations, bullet.text, said, verbatim)
        yield holds(
            "quotes_match", not wrong, f"{at}, bullet {' '.join(bullet.citations)}", f"altered: {wrong[:2]!r:.160}"
        )


def _altered(refs: Iterable[str], text: str, said: Sequence[Wire], verbatim: bool) -> list[str]:
    """What a bullet about these messages says that none of them says."""
    messages = [_message(said[Ref.parse(ref).ordinal - 1]) for ref in refs]
    originals = [text_of(message) for message in messages]
    squeezed = [_squeezed(original) for original in originals]
    wrong = [quote for quote in quotes(text) if not any(_squeezed(quote) in original for original in squeezed)]
    if wrong or not verbatim:
        return wrong
    wrong = _unsupported(text, originals)
    of_tools = wrong and any(message.tool_results for message in messages)
    return _unsupported_behind_label(text, originals) if of_tools else wrong


def _unsupported(text: str, originals: Sequence[str]) -> list[str]:
    """Pieces of a bullet (split at the ellipsis) that stand in none of the originals."""
    pieces = (piece.strip() for piece in text.split("…"))
    return [piece for piece in pieces if piece and not any(piece in original for original in originals)]


def _unsupported_behind_label(text: str, originals: Sequence[str]) -> list[str]:
    """The same of a bullet about a tool output: behind its label it quotes the output, or counts lines and rows."""
    best: list[str] | None = None
    for found in re.finditer(r": ", text):
        wrong = [piece for piece in _unsupported(text[found.end() :], originals) if not _COUNTED.fullmatch(piece)]
        best = wrong if best is None or len(wrong) < len(best) else best
    return _unsupported(text, originals) if best is None else best


def recalled_quote(envelope: Envelope, said: Sequence[Wire], session: Session, at: str) -> Iterator[Score]:
    """Recalled messages are shown under their reference: whole, by passages, or, where a question names them, cut."""
    fragment = envelope.dynamic.context
    rows = rows_of(unfenced(envelope.nonce, fragment.text).text) if fragment else []
    for ordinal in fragment.refs if fragment else ():
        message = _message(said[ordinal - 1])
        texts = [message.text, *(result.text for result in message.tool_results)]
        whole = "\n".join(text for text in texts if text)
        note = re.compile(rf"; §{ordinal}(?:\.\d+)? resolves to the whole …\]")
        label = re.compile(rf"§{ordinal} {message.role}(?:, superseded by [§\d, ]+)?: ")
        said_of = [row[label_match.end() :] for row in rows if (label_match := label.match(row))]
        shown = any(text == whole or (note.search(text) and _is_excerpt(text, whole)) for text in said_of)
        shown = shown or _in_passages(ordinal, message, whole, rows, session)
        yield holds(
            "quotes_match", shown, f"{at}, recalled §{ordinal}", "not whole under its reference and role", f"§{ordinal}"
        )


def _in_passages(ordinal: int, message: Message, whole: str, rows: Sequence[str], session: Session) -> bool:
    """Whether rows show passages of a message: each a part of it that its own reference resolves to, in order."""
    label = re.compile(rf"§{ordinal}(?:\.(\d+)(?:-(\d+))?)? {message.role}(?:, superseded by [§\d, ]+)?: ")
    at = 0
    found = [(match, row[match.end() :]) for row in rows if (match := label.match(row))]
    for match, text in found:
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
    return bool(found)


def _is_excerpt(text: str, whole: str) -> bool:
    """Whether every line but the note is the original's: what a question names by number may be cut."""
    return all(_NOTE.fullmatch(line) or line in whole for line in text.split("\n"))


def results_quote(envelope: Envelope, said: Sequence[Wire], at: str) -> Iterator[Score]:
    """A tool result in the window is whole, or cut with the reference under which the whole is found."""
    for fragment in envelope.dynamic.strip.fragments:
        for step in fragment.steps:
            for reply in step.answers if isinstance(step, ToolResults) else ():
                if reply.entry is not None:
                    fault = _answer_fault(reply, said)
                    yield holds(
                        "quotes_match", not fault, f"{at}, result {reply.entry.ref}", fault, str(reply.entry.ref)
                    )


def _answer_fault(answer: ToolResult, said: Sequence[Wire]) -> str:
    assert answer.entry is not None
    results = _message(said[answer.entry.ordinal - 1]).tool_results
    whole = results[answer.index].text
    if answer.text == whole:
        return ""
    named = f"§{answer.entry.ordinal}" + (f".{answer.index + 1}" if len(results) > 1 else "")
    masked = _MASKED.fullmatch(answer.text)
    if masked:
        right = masked[2] == named and int(masked[1]) == len(whole)
        return "" if right else f"the line that stands for it names {masked[2]} and {masked[1]} characters"
    note = _NOTE.search(answer.text)
    if note is None or note[1] != named:
        return f"cut without the reference {named}"
    lines = [line for line in answer.text.split("\n") if line != note[0]]
    wrong = [line for line in lines if line not in whole]
    return f"its excerpt says what the original does not: {wrong[0]!r:.100}" if wrong else ""


def quotes(text: str) -> list[str]:
    """Passages in quotation marks, long enough to be somebody's words.

    >>> quotes('she said “ship it now”, not "no"')
    ['ship it now']
    """
    found = ["".join(groups) for groups in _QUOTED.findall(text)]
    return [quote for quote in found if len(quote) >= MIN_QUOTE_CHARS and "…" not in quote]


# -- reading again ----------------------------------------------------------------------------------------------


def output_again(number: int, wanted: str, place: Ref, session: Session, at: str) -> Iterator[Score]:
    """The n-th tool output, by each of the ways it can be named, is word for word what the tool said."""
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
    """What a model reads of an original with its tool, piece by piece."""
    text, offset = "", 0
    while True:
        arguments = {"ref": ref, "offset": offset, "limit": READ_CHARS}
        shown = answer_call(session, "resolve_reference", arguments) or ""
        more = re.search(r"\n\[(\d+) more characters; offset=(\d+)\]\Z", shown)
        text += shown[: more.start()] if more else shown
        if more is None or int(more[2]) <= offset:
            return text
        offset = int(more[2])


def range_again(first: int, last: int, session: Session, said: Sequence[Wire], at: str) -> Score:
    """A range gives its messages in order, each under its reference and role, whole."""
    if not 0 < first <= last <= len(said):
        return Score("ranges_resolve", 0.0, at, f"§{first}-§{last} is no range of {len(said)} messages")
    rows = [(n, _message(said[n - 1])) for n in range(first, last + 1)]
    wanted = [f"§{n} {message.role}: {text_of(message)}" for n, message in rows]
    return holds(
        "ranges_resolve",
        rows_of(read(session, f"§{first}-§{last}")) == wanted,
        at,
        f"§{first}-§{last} gives other words",
        f"§{first}-§{last}",
    )


def days_again(
    envelope: Envelope, days: Sequence[str], session: Session, said: Sequence[Wire], at: str
) -> Iterator[Score]:
    """The line of a day above recalled messages names that day's messages, all of them, and the range resolves.

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
        yield range_again(first, last, session, said, at)


def _message(wire: Wire) -> Message:
    return take_wire(wire)[1]


def _squeezed(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()


# -- of subjects that have nothing but messages --------------------------------------------------------------------


def lines_cited(moment: CallMoment) -> Iterator[Score | UnscoredCheck]:
    """Every line that the subject wrote itself has a reference to what it is about."""
    if moment.prompt.summary is None:
        yield UnscoredCheck("bullets_cited", "the subject does not tell which lines are its own", moment.at)
        return
    for line in filter(None, map(str.strip, moment.prompt.summary.splitlines())):
        cited = any(reference in line for reference in moment.references.values())
        yield holds("bullets_cited", cited, moment.at, f"a line without reference: {line!r:.120}")


def references_resolve(ended: EndMoment) -> Iterator[Score | UnscoredCheck]:
    """Every reference that some window showed still gives the message it stood for."""
    if not isinstance(ended.dialogue, Archive):
        yield UnscoredCheck("citations_resolve", "the subject has no references that resolve")
        return
    for reference, place in ended.references.items():
        text = "\n".join(texts_of(ended.wires[place - 1])) if place <= len(ended.wires) else ""
        same = gives(ended.resolved(reference), text)
        yield holds("citations_resolve", same, reference, "gives nothing, or other words")


def outputs_resolve(ended: EndMoment) -> Iterator[Score | UnscoredCheck]:
    """Every tool output, by its number or by a reference that some window showed, is as the tool said it."""
    if not isinstance(ended.dialogue, (Archive, Outputs)):
        yield UnscoredCheck("tool_outputs", "the subject has neither numbers nor references for tool outputs")
        return
    references = {place: reference for reference, place in ended.references.items()}
    for number, output in enumerate(outputs_of(ended.wires), 1):
        if isinstance(ended.dialogue, Outputs):
            found = ended.output(number)
        else:
            found = ended.resolved(references.get(output.place.ordinal, ""))
        yield holds("tool_outputs", found == output.text, f"tool output {number}", "not there, or not whole")


LONG_SHARE = 0.25
"""Of the outputs: several times as long, mostly over the arrival cap."""
AGAIN_SHARE = 0.08

_NAMES = ("read_page", "query_rows", "tail_log", "get_config", "list_files", "run_check", "fetch_diff")
_SEALED_NAMES = ("open_folio", "poll_sensor", "dump_queue", "lookup_owner", "export_sheet", "probe_host")


class Vocabulary(NamedTuple):
    """What outputs are made of."""

    language: Language
    split: Split = "docs"

    def words(self, language: Language | None = None) -> Texts:
        return texts("tool_outputs", "words", language or self.language, self.split)

    @property
    def names(self) -> Texts:
        """Of what has a name: English words."""
        return self.words("en")

    @property
    def sentences(self) -> Texts:
        return texts("tool_outputs", "sentences", self.language, self.split)


@dataclass(frozen=True, slots=True)
class ScriptedToolOutput:
    """A tool output of a conversation."""

    place: Ref
    text: str


def outputs_of(messages: Sequence[Wire]) -> list[ScriptedToolOutput]:
    """All tool outputs in order; the n-th is ``tool:n``."""
    found: list[ScriptedToolOutput] = []
    for ordinal, wire in enumerate(messages, 1):
        results = take_wire(wire)[1].tool_results if _may_hold(wire) else ()
        found += [ScriptedToolOutput(Ref(ordinal, part), result.text) for part, result in enumerate(results, 1)]
    return found


def _may_hold(wire: Wire) -> bool:
    return wire["role"] == "tool" or (wire["role"] == "user" and not isinstance(wire["content"], str))


def exchange(rng: Random, said: Vocabulary, before: Sequence[Wire], *, anthropic: bool) -> list[Wire]:
    """One round of calls and their results."""
    made = [
        (f"call_{len(before)}_{k}_{rng.randrange(16**5):05x}", *_made(rng, said, before))
        for k in range(rng.choice((1, 1, 1, 2, 3)))
    ]
    if anthropic:
        uses = [{"type": "tool_use", "id": id, "name": name, "input": {"target": key}} for id, name, key, _ in made]
        results = [{"type": "tool_result", "tool_use_id": id, "content": text} for id, _, _, text in made]
        return [{"role": "assistant", "content": uses}, {"role": "user", "content": results}]
    called = calls(*((id, name, {"target": key}) for id, name, key, _ in made))
    return [called, *(answer(id, text) for id, _, _, text in made)]


def _made(rng: Random, said: Vocabulary, before: Sequence[Wire]) -> tuple[str, str, str]:
    """Tool name, argument, output."""
    names, kinds = (_SEALED_NAMES, _SEALED_KINDS) if said.split == "sealed" else (_NAMES, _KINDS)
    name, key = rng.choice(names), f"{rng.choice(said.names)}-{rng.randint(10, 9999)}"
    earlier = [wire for wire in before if wire["role"] == "tool"] if rng.random() < AGAIN_SHARE else []
    if earlier:
        return name, key, take_wire(rng.choice(earlier))[1].tool_results[0].text
    size = rng.randint(25, 60) if rng.random() < LONG_SHARE else rng.randint(2, 9)
    return name, key, rng.choice(kinds)(rng, said, size)


def _prose(rng: Random, said: Vocabulary, size: int) -> str:
    sentences, words = said.sentences, said.words()
    rows = []
    for _ in range(size):
        a, b = rng.sample(words, 2)
        rows.append(rng.choice(sentences).format(a=a, b=b, n=rng.randint(2, 99), m=rng.randint(100, 9999)))
    return (" " if said.language == "en" else "").join(rows)


def _rows(rng: Random, said: Vocabulary, size: int) -> str:
    words = said.words()
    found = [
        {
            "id": f"{rng.choice('QRT')}-{rng.randint(1000, 99999)}",
            "name": rng.choice(words),
            "price": rng.randint(1, 999) / 4,
        }
        for _ in range(size)
    ]
    return json.dumps({"rows": found, "next": None}, ensure_ascii=rng.random() < 0.3, indent=rng.choice((None, 1)))


def _log(rng: Random, said: Vocabulary, size: int) -> str:
    rows = [
        f"12:{rng.randint(10, 59)}:0{rng.randint(0, 9)} INFO {rng.choice(said.names)} took {rng.randint(3, 900)} ms"
        for _ in range(size * 2)
    ]
    if rng.random() < 0.5:
        wrong = "Error: connection refused by {}" if said.language == "en" else "错误：{} 连接被拒绝"
        rows.insert(rng.randrange(len(rows)), "12:44:01 " + wrong.format(rng.choice(said.names)))
    return "\n".join(rows) + "\n"


def _table(rng: Random, said: Vocabulary, size: int) -> str:
    head = "item | count | place" if said.language == "en" else "品名 | 数量 | 位置"
    words = said.words()
    rows = (f"{rng.choice(words)} | {rng.randint(1, 999)} | §{rng.randint(1, 40)}" for _ in range(size))
    return "\n".join([head, *rows])


def _config(rng: Random, said: Vocabulary, size: int) -> str:
    names = said.names
    rows = [
        f"{rng.choice(names)}_{n}:\n  limit: {rng.randint(1, 9999)}\n  path: /srv/{rng.choice(names)}/{n}.yaml"
        for n in range(size)
    ]
    return "# " + ("settings" if said.language == "en" else "设置") + "\n" + "\n".join(rows)


def _bare(rng: Random, said: Vocabulary, size: int) -> str:
    """Little, odd or nothing at all."""
    done = "完成" if said.language == "zh" else "done"
    return rng.choice(("ok", "", "0", "\n\n", "null", "[]", done, "§3", "\t…\u200b"))


def _sealed(kind: str) -> Kind:
    return lambda rng, said, size: sealed_formats.FORMATS[kind](rng, said.words(), size)


Kind = Callable[[Random, Vocabulary, int], str]
_KINDS: tuple[Kind, ...] = (_prose, _rows, _log, _table, _config, _bare)
_SEALED_KINDS: tuple[Kind, ...] = (_prose, _prose, _bare, *map(_sealed, sealed_formats.FORMATS))
