"""Draft a suite from a team's own transcripts: conversations without personal data, and asks for people to review.

    draft = draft_suite([Path("logs")], name="support")
    draft.write(Path("support.yaml"))      # and support.jsonl beside it

Each transcript is redacted and cut at turn boundaries into conversations, and each conversation gets asks (`drafts`). A
sentence that several transcripts share is a template of the application, so it is not asked for. The budget of a
conversation is a fraction of its own length, so that a strategy must choose. The same files give the same draft, byte
for byte.

Redaction finds secrets, mail addresses, phone numbers, card numbers and ids (`steward.ingest.redaction.Redactor`). It
finds no names and no postal addresses. Images and other parts without text are left out.

Raises `InputError` for a missing path, and if no conversation is left.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ctxsteward.envelope import Counter as TokenCounter
from ctxsteward.envelope.transcripts.files import formats_with, read_transcripts
from ctxsteward.envelope.transcripts.transcript import Transcript
from ctxsteward.schemas import InputError, InvalidMessage, Message
from ctxsteward.schemas.errors import InputTooLarge, InvalidTranscript
from ctxsteward.schemas.message import Wire
from ctxsteward.steward.ingest.redaction import Redactor

from ..prompt_cost import openai_faults
from ..replay import files_of
from ..suites.kit.play import as_openai
from ..suites.kit.suite import Setup
from .drafts import DraftedAsk, drafted

BUDGET_FRACTION = 0.25
"""Budget as a fraction of the conversation's tokens, within `BUDGET_TOKENS`."""
BUDGET_TOKENS = (200, 20_000)
MORE = 4
"""Asks drafted per ask wanted; those that transcripts share are dropped afterwards."""
_REDACTED = re.compile(r"\[redacted:([a-z_]+)\]")
_NOT_IN_IDS = re.compile(r"[^A-Za-z0-9_.-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftedScenario:
    """A conversation with its drafted asks."""

    id: str
    source: str
    """File name of the transcript."""
    messages: tuple[Wire, ...]
    system: str | None
    tools: tuple[Wire, ...]
    budget_tokens: int
    asks: tuple[DraftedAsk, ...]

    def row(self) -> Wire:
        """Return the scenario as a row of the conversations file."""
        head: Wire = {"id": self.id, "budget_tokens": self.budget_tokens}
        if self.system is not None:
            head["system"] = self.system
        if self.tools:
            head["tools"] = list(self.tools)
        return head | {"messages": list(self.messages)}


@dataclass(slots=True, kw_only=True)
class SuiteDraft:
    """A draft in memory, and counts of what became of the transcripts."""

    name: str
    scenarios: tuple[DraftedScenario, ...] = ()
    files: int = 0
    transcripts: int = 0
    redacted: Counter[str] = field(default_factory=Counter)
    """Redacted values by kind."""
    left_out: Counter[str] = field(default_factory=Counter)
    """Transcripts, conversations and message parts left out, by reason."""
    fit: int = 0
    """Conversations that fit their budget whole, so that they distinguish no strategies."""
    shared: int = 0
    """Asks dropped because several transcripts share them."""

    def write(self, path: Path) -> tuple[Path, Path]:
        """Write the suite and the conversations file beside it; return both paths."""
        beside = path.with_suffix(".jsonl")
        rows = [json.dumps(scenario.row(), ensure_ascii=False, sort_keys=True) + "\n" for scenario in self.scenarios]
        for place, text in ((beside, "".join(rows)), (path, self.yaml(beside.name))):
            try:
                place.write_text(text, encoding="utf-8", newline="\n")
            except OSError as error:
                raise InputError(f"{place}: cannot be written ({error.strerror})") from error
        return path, beside

    def yaml(self, conversations: str) -> str:
        """Return the suite as YAML for people to edit, each ask on lines of its own."""
        lines = [
            "# Drafted by rule from transcripts. Read the asks, drop or reword what makes no sense, and write",
            "# `status: kept`: then `ctxsteward evals run FILE --gate` holds the gates.",
            "schema_version: 1",
            f"name: {self.name}",
            "about: What people said early in our own conversations is shown when it is asked for later.",
            "status: draft",
            "# Point gates: the figures of these conversations are held to the bounds, and not their 95 % intervals.",
            "gates:",
            f"  shown: {{at_least: 0.8, scenarios: {len(self.scenarios)}}}",
            f"  reachable: {{at_least: 0.95, scenarios: {len(self.scenarios)}}}",
            "  within_budget: {at_least: 1}",
            "  valid: {at_least: 1}",
            f"scenarios: {_scalar(conversations)}",
            "asks:" if any(scenario.asks for scenario in self.scenarios) else "asks: []",
        ]
        for scenario in self.scenarios:
            for ask in scenario.asks:
                source = "".join(char if char.isprintable() else "?" for char in scenario.source)
                lines += [
                    f"  # {source}: said in message {ask.place} of {len(scenario.messages)}",
                    f"  - scenario: {_scalar(scenario.id)}",
                    f"    after: {ask.after}",
                    f"    question: {_scalar(ask.question)}",
                    f"    wants: [{_scalar(ask.value)}]",
                    f"    of: [{ask.place}]",
                    f"    kind: {ask.kind}",
                ]
        return "\n".join(lines) + "\n"


def _scalar(text: str) -> str:
    """Return a double-quoted YAML scalar: JSON's, with unprintable characters escaped."""
    quoted = json.dumps(text, ensure_ascii=False)
    return "".join(char if char.isprintable() else f"\\U{ord(char):08x}" for char in quoted)


# -- from files to conversations ---------------------------------------------------------------------------------


def draft_suite(
    paths: Sequence[Path],
    *,
    name: str,
    max_messages: int = 200,
    min_turns: int = 3,
    asks: int = 5,
    redacts: bool = True,
    tell: Callable[[str], object] = lambda done: None,
) -> SuiteDraft:
    """Draft a suite; call `tell` with the session of each transcript.

    A transcript of more than `max_messages` is cut into several conversations. A conversation with fewer user turns
    than `min_turns` is left out; the others get at most `asks` asks each.
    """
    draft = SuiteDraft(name=name)
    counter = Setup().counter()
    redact = TextRedaction(redacts, draft)
    made: list[DraftedScenario] = []
    for path in sorted(files_of(paths)):
        draft.files += 1
        for transcript in read_transcripts(path):
            draft.transcripts += 1
            made += _scenarios(transcript, path.name, draft, redact, counter, max_messages, min_turns, asks * MORE)
            tell(transcript.session)
    times = Counter((ask.question, ask.value) for scenario in made for ask in set(scenario.asks))
    scenarios: dict[str, DraftedScenario] = {}
    for scenario in made:
        own = [ask for ask in scenario.asks if times[ask.question, ask.value] == 1]
        draft.shared += len(scenario.asks) - len(own)
        id, number = scenario.id, 2
        while id in scenarios:  # two transcripts may have the same session id
            id, number = f"{scenario.id}-{number}", number + 1
        chosen = sorted(own[:asks], key=lambda ask: (ask.place, ask.question))
        scenarios[id] = replace(scenario, id=id, asks=tuple(chosen))
    if not scenarios:
        reasons = ", ".join(f"{reason} ({count})" for reason, count in sorted(draft.left_out.items()))
        raise InputError(
            f"no conversation in {draft.transcripts} transcripts: {reasons}; lower --min-turns, or pass other files"
        )
    draft.scenarios = tuple(scenarios.values())
    return draft


def _scenarios(
    transcript: Transcript,
    source: str,
    draft: SuiteDraft,
    redact: TextRedaction,
    counter: TokenCounter,
    max_messages: int,
    min_turns: int,
    most_asks: int,
) -> Iterator[DraftedScenario]:
    """Yield the conversations of one transcript, with more asks than wanted."""
    try:
        entries = list(transcript.entries())
    except (InvalidTranscript, InputTooLarge) as error:
        raise InputError(str(error)) from error
    demonstrates = transcript.format in formats_with("has_demonstrations")
    entries = [entry for entry in entries if not (demonstrates and entry.phase == "demo")]
    wires = [redact.message(wire) for wire in as_openai([entry.wire for entry in entries])[0]]
    between_people = transcript.format in formats_with("is_between_people")
    system = redact.text("\n\n".join(transcript.system)) or None
    tools = tuple(tool for tool in map(redact.json, transcript.tools) if isinstance(tool.get("function"), dict))
    base = _NOT_IN_IDS.sub("-", redact.text(transcript.session)).strip("-")[:100] or "conversation"
    wires = list(with_own_call_ids(wires))
    cuts = list(pieces(wires, max_messages))
    for number, piece in enumerate(cuts, 1):
        turns = sum(wire["role"] == "user" for wire in piece)
        if turns < min_turns:
            draft.left_out["conversation with too few turns"] += 1
            continue
        if fault := _fault(piece):
            draft.left_out[f"conversation that no provider would accept: {fault}"] += 1
            continue
        stated = [wire["role"] == "user" or (between_people and wire["role"] == "assistant") for wire in piece]
        tokens = sum(counter.message(Message.from_wire(wire)) for wire in piece)
        draft.fit += tokens <= _budget(tokens)
        yield DraftedScenario(
            id=base if len(cuts) == 1 else f"{base}-{number}",
            source=source,
            messages=tuple(piece),
            system=system,
            tools=tools,
            budget_tokens=_budget(tokens),
            asks=tuple(drafted(piece, stated, most=most_asks)),
        )


def _budget(tokens: int) -> int:
    lowest, highest = BUDGET_TOKENS
    return min(highest, max(lowest, round(tokens * BUDGET_FRACTION / 50) * 50))


def _fault(piece: Sequence[Wire]) -> str:
    """Return why a conversation cannot be played; empty if it can."""
    try:
        for wire in piece:
            Message.from_wire(wire)
        faults = openai_faults({"messages": piece})
    except (InvalidMessage, KeyError, TypeError, AttributeError) as error:
        return type(error).__name__
    return re.sub(r"^messages\[[0-9]+\]: ", "", faults[0])[:80] if faults else ""


def pieces(wires: Sequence[Wire], max_messages: int) -> Iterator[Sequence[Wire]]:
    """Cut a conversation before user messages; a turn longer than `max_messages` is truncated.

    Unanswered calls at the end of a piece are left out.

    >>> [len(piece) for piece in pieces([{"role": role} for role in ("user", "assistant") * 5], 4)]
    [4, 4, 2]
    """
    begins = [place for place, wire in enumerate(wires) if wire["role"] == "user"] or [0]
    start = begins[0]
    while start < len(wires):
        later = [place for place in (*begins, len(wires)) if start < place <= start + max_messages]
        stop = later[-1] if later else start + max_messages
        end = min(stop, len(wires))
        while end > start and (wires[end - 1].get("tool_calls") or _is_half_answered(wires[start:end])):
            end -= 1
        if end > start:
            yield wires[start:end]
        start = stop if later else next((place for place in begins if place > start), len(wires))


def with_own_call_ids(wires: Iterable[Wire]) -> Iterator[Wire]:
    """Yield the messages with calls renumbered: recorded ids may repeat in a conversation, or hold personal data."""
    count = 0
    open_calls: dict[str, list[str]] = {}
    for wire in wires:
        if wire.get("tool_calls"):
            open_calls, numbered = {}, []
            for call in wire["tool_calls"]:
                count += 1
                open_calls.setdefault(str(call["id"]), []).append(f"call_{count}")
                numbered.append({**call, "id": f"call_{count}"})
            wire = {**wire, "tool_calls": numbered}
        elif wire["role"] == "tool" and open_calls.get(str(wire.get("tool_call_id"))):
            wire = {**wire, "tool_call_id": open_calls[str(wire["tool_call_id"])].pop(0)}
        yield wire


def _is_half_answered(piece: Sequence[Wire]) -> bool:
    """Return whether a piece ends before the last result of several calls."""
    if piece[-1].get("role") != "tool":
        return False
    calls = next((place for place in range(len(piece) - 1, -1, -1) if piece[place].get("tool_calls")), None)
    return calls is not None and len(piece) - 1 - calls < len(piece[calls]["tool_calls"])


# -- redaction ---------------------------------------------------------------------------------------------------


class TextRedaction:
    """Redact personal data and secrets in messages, and count them by kind."""

    def __init__(self, redacts: bool, draft: SuiteDraft) -> None:
        self._redact = Redactor() if redacts else None
        self._draft = draft

    def text(self, text: str) -> str:
        """Redact a text."""
        if self._redact is None or not text:
            return text
        before = Counter(_REDACTED.findall(text))
        clean = self._redact(text)
        self._draft.redacted.update(Counter(_REDACTED.findall(clean)) - before)
        return clean

    def json(self, value: Wire) -> Wire:
        """Redact all texts of a JSON object, keys included."""
        return {self.text(str(key)): self._inside(item) for key, item in value.items()}

    def _inside(self, value: object) -> object:
        match value:
            case str():
                return self.text(value)
            case dict():
                return self.json(value)
            case list():
                return [self._inside(item) for item in value]
            case int() if not isinstance(value, bool) and (text := self.text(str(value))) != str(value):
                return text
            case _:
                return value

    def message(self, wire: Wire) -> Wire:
        """Redact an OpenAI chat message; fields other than its texts and calls are dropped."""
        made: Wire = {"role": wire.get("role")}
        made["content"] = self._content(wire.get("content"))
        if wire.get("name"):
            made["name"] = self.text(str(wire["name"]))
        if wire.get("tool_call_id"):
            made["tool_call_id"] = wire["tool_call_id"]
        if wire.get("tool_calls"):
            made["tool_calls"] = [self._call(call) for call in wire["tool_calls"]]
        return made

    def _call(self, call: Wire) -> Wire:
        function = call.get("function") or {}
        arguments = function.get("arguments", "")
        try:
            clean = json.dumps(self._inside(json.loads(arguments)), ensure_ascii=False)
        except (TypeError, ValueError, RecursionError):
            clean = self.text(str(arguments))
        return {
            "id": call.get("id"),
            "type": "function",
            "function": {"name": function.get("name"), "arguments": clean},
        }

    def _content(self, content: object) -> object:
        if isinstance(content, str):
            return self.text(content)
        if not isinstance(content, list):
            return content
        texts = [
            self.text(part["text"]) for part in content if isinstance(part, dict) and isinstance(part.get("text"), str)
        ]
        for part in content:
            if not (isinstance(part, dict) and isinstance(part.get("text"), str)):
                kind = part.get("type", "part") if isinstance(part, dict) else "part"
                self._draft.left_out[f"part of a message: {kind}"] += 1
        return "\n".join(texts) or "[left out: no text]"
