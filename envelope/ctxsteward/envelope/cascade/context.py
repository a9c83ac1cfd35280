"""The context of a phase under construction: the messages of each source, with their role and label.

`phase_context` and `auto_selection` add to one `ContextBuilder`, which skips messages that were added before.

Within a source the order is images, output, messages, state. A message or image from one source is not added again
from another. Replayed messages keep their role and bytes; a system message that arrived in a log is replayed in
the user's role. Labels: see `phase`.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any, Literal

from ctxsteward.schemas import Finding, InputError, Message
from ctxsteward.schemas.cascade import Cascade, Phase, Source
from ctxsteward.schemas.documents import SelectionCandidate, SelectionLog
from ctxsteward.schemas.errors import InvalidCascade
from ctxsteward.schemas.message import Wire

from ..tokens.tokenizer import Counter
from .config import before, phases_named, sources_of
from .past import (
    Expiry,
    Past,
    PastMessage,
    ShownMessage,
    chosen_images,
    image_messages,
    images_in,
    origins_of,
    without_images,
)
from .templates import TemplateFailed, holds, render

MessageKind = Literal["input", "images", "output", "label", "replay", "state", "snowball"]
INPUT_ORIGIN = "input"


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseMessage:
    """One message of a phase's context."""

    wire: Wire
    """A provider's dict. Do not change it: the dict of a replayed message is also the original's."""
    kind: MessageKind
    phase: str | None = None
    """Phase that it was taken from."""
    origin: str
    """``session§ordinal``, several joined by commas; ``input``; ``state:P``."""
    numbers: tuple[int, ...] = ()
    """Numbers of its originals in the past."""
    tokens: int


@dataclass(slots=True, kw_only=True)
class ContextBuilder:
    """Builds the context of a phase."""

    cascade: Cascade
    phase: Phase
    past: Past
    input: Any
    state: dict[str, Any]
    counter: Counter
    trusted: frozenset[str]
    messages: list[PhaseMessage] = dataclasses.field(default_factory=list)
    findings: list[Finding] = dataclasses.field(default_factory=list)
    shown: set[int] = dataclasses.field(default_factory=set)
    """Numbers of the past messages that were added."""
    shown_images: set[bytes] = dataclasses.field(default_factory=set)
    expiries: dict[str, Expiry] = dataclasses.field(default_factory=dict)

    # -- noting -----------------------------------------------------------------------------------------------

    def note(self, kind: str, text: str, field: str | None = None) -> None:
        """Add a finding, unless it is there already."""
        finding = Finding(kind=kind, field=field, text=text)
        if finding not in self.findings:
            self.findings.append(finding)

    def place(self, field: str) -> str:
        """Return the place of a field of this phase in the configuration."""
        return f"phases[{self.cascade.names.index(self.phase.name)}].{field}"

    def refused(self, field: str, found: str, hint: str) -> InvalidCascade:
        """Return the error for a field of this phase."""
        return InvalidCascade(f"cascade {self.cascade.cascade_id!r}", self.place(field), found, hint)

    def instructions(self) -> str:
        """Render the phase's instructions."""
        try:
            return render(self.phase.instructions, input=self.input, state=self.state)
        except TemplateFailed as error:
            raise self.refused("instructions", error.found, error.hint) from error

    # -- adding -----------------------------------------------------------------------------------------------

    def add(
        self,
        wire: Wire,
        kind: MessageKind,
        origin: str,
        phase: str | None = None,
        numbers: tuple[int, ...] = (),
        tokens: int | None = None,
    ) -> None:
        """Add a message; a message without `tokens` is counted here."""
        tokens = self.counter.message(Message.from_wire(wire)) if tokens is None else tokens
        self.messages.append(
            PhaseMessage(wire=wire, kind=kind, phase=phase, origin=origin, numbers=numbers, tokens=tokens)
        )
        self.shown.update(numbers)

    def add_input(self) -> None:
        """Add the cascade's input, if there is one."""
        if self.input is not None:
            text = f"[Original Input]:\n{as_json(self.input, 'input')}"
            self.add({"role": "user", "content": text}, "input", INPUT_ORIGIN)

    def add_sources(self) -> None:
        """Add the content that the phase's sources name, in their order."""
        ran, earlier = self.past.ran, before(self.cascade, self.phase)
        for field, source in sources_of(self.phase):
            names = phases_named(self.cascade, self.phase, source.phase, ran)
            if not names:
                text = f"{source.phase!r} stands for no phase that has run; nothing is injected from it"
                self.note("source_not_run", text, field)
            for name in names:
                if name not in earlier:
                    hint = f"phases before it: {', '.join(earlier) or 'none'}"
                    raise self.refused(field, f"{name!r} does not run before", hint)
                if name not in ran:
                    self.note("source_not_run", f"phase {name!r} has not run; nothing is injected from it", field)
                elif self.applies(field, source, name):
                    self.add_source(field, source, name)

    def applies(self, field: str, source: Source, name: str) -> bool:
        """Return whether the source's condition is true or missing."""
        if source.condition is None:
            return True
        try:
            true = holds(source.condition, input=self.input, state=self.state)
        except TemplateFailed as error:
            raise self.refused(f"{field}.condition", error.found, error.hint) from error
        if not true:
            self.note("condition_false", f"phase {name!r} is not injected: its condition is false", field)
        return true

    def add_source(self, field: str, source: Source, name: str) -> None:
        """Add the content that a source includes of the phase `name`."""
        retained = self.cascade.phase(name)
        included = [kind for kind in ("images", "output", "messages", "state") if kind in source.include]
        if retained is not None and retained.context_retention == "output_only" and "messages" in included:
            text = f"phase {name!r} retains its output only; its messages are not injected"
            self.note("not_retained", text, field)
            included = [kind for kind in included if kind != "messages"]
            included = included if "output" in included else ["output", *included]
        role: str = source.as_role
        if role == "system" and name not in self.trusted:
            text = f"phase {name!r} is not the operator's; it is injected as user, not as system"
            self.note("role_lowered", text, f"{field}.as_role")
            role = "user"
        for kind in included:
            match kind:
                case "images":
                    self._add_images(source, name)
                case "output":
                    self.add_output(name, role, field)
                case "messages":
                    self._add_conversation(source, name, role)
                case "state":
                    self._add_state(name, role, field)

    def _add_images(self, source: Source, name: str) -> None:
        expiry = self.expiry(name)
        fresh = [image for image in self.past.images(name) if not expiry.hides_images(image.held_by)]
        images = []
        for image in chosen_images(fresh, source):
            if image.key not in self.shown_images:
                self.shown_images.add(image.key)
                images.append(image)
        for wire, run in image_messages(f"[Images from {name}]:", images, "user"):
            held = tuple(dict.fromkeys(image.held_by.number for image in run))
            origin = origins_of(image.held_by for image in run)
            self.add(wire, "images", origin, name)
            # its message is not in `shown`, so a later source may still replay it, without these images
            self.messages[-1] = replace(self.messages[-1], numbers=held)

    def add_output(self, phase: str, role: str, field: str | None) -> None:
        """Add a phase's final text, unless it was added before."""
        output = self.past.output(phase)
        if output is None:
            self.note("no_output", f"phase {phase!r} left no assistant text", field)
            return
        message, text = output
        if message.number not in self.shown:
            wire = {"role": role, "content": f"[Output from {phase}]:\n{text}"}
            self.add(wire, "output", message.origin, phase, (message.number,))

    def _add_conversation(self, source: Source, name: str, role: str) -> None:
        own = self.past.last_turn(name) if source.messages_filter == "last_turn" else self.past.of(name)
        if source.messages_filter == "assistant_only":
            own = tuple(message for message in own if message.message.role == "assistant")
        self.add_replay(name, own, role, texts_only=source.messages_filter == "assistant_only")

    def add_replay(
        self, phase: str, own: tuple[PastMessage, ...], role: str = "user", *, texts_only: bool = False
    ) -> None:
        """Add a phase's messages under their label, without those that were added before."""
        lefts = [left for left in self.expiry(phase).applied(own) if left.message.number not in self.shown]
        rows = [(left, self._replayed(left, texts_only)) for left in lefts]
        shown = [(left, wire) for left, wire in rows if wire is not None]
        if not shown:
            return
        label: Wire = {"role": role, "content": f"[Conversation from {phase}]:"}
        self.add(label, "label", origins_of(left.message for left, _ in shown), phase)
        for left, wire in shown:
            self.add_own(left, wire, "replay")

    def add_own(self, left: ShownMessage, wire: Wire, kind: MessageKind) -> None:
        """Add a past message in its own role."""
        message = left.message
        tokens = message.tokens(self.counter) if wire is left.original.wire else None
        self.add(wire, kind, message.origin, message.phase, (message.number,), tokens)

    def _replayed(self, left: ShownMessage, texts_only: bool) -> Wire | None:
        if texts_only and left.original.tool_calls:
            text = left.original.text
            return {"role": "assistant", "content": text} if text.strip() else None
        wire = without_images(self.safe(left), self.shown_images)
        self.shown_images.update(image.key for image in images_in(left.original, left.message))
        return wire

    def safe(self, left: ShownMessage) -> Wire:
        """Return the message, in the user's role if it has the operator's."""
        if left.original.role not in ("system", "developer"):
            return left.wire
        text = "a system message arrived in a log; it is shown in the user's role, not as the operator's"
        self.findings.append(Finding(kind="role_lowered", ref=f"§{left.message.number}", text=text))
        return {"role": "user", "content": left.original.text}

    def _add_state(self, phase: str, role: str, field: str) -> None:
        values = self.past.states.get(phase)
        if not values:
            self.note("no_state", f"phase {phase!r} set no state", field)
            return
        text = f"[State from {phase}]:\n{as_json(values, f'state of {phase}')}"
        self.add({"role": role, "content": text}, "state", f"state:{phase}", phase)

    # -- the snowball -----------------------------------------------------------------------------------------

    def add_snowball(self) -> None:
        """Add all messages from before this phase, in their own roles."""
        later = frozenset(self.cascade.names) - frozenset(before(self.cascade, self.phase))
        for message in self.past.messages:
            if message.phase in later or not self.retains(message):
                continue
            retained = self.cascade.phase(message.phase or "")
            if retained is not None and retained.context_retention == "output_only":
                self.add_output(retained.name, "user", None)
                continue
            original = message.message
            left = ShownMessage(message, original, original.wire)
            self.add_own(left, self.safe(left), "snowball")

    def retains(self, message: PastMessage) -> bool:
        """Return whether later phases may see this message."""
        configured = self.cascade.phase(message.phase or "")
        if configured is None or configured.context_retention == "full":
            return True
        output = self.past.output(configured.name)
        return output is not None and output[0].number == message.number

    def expiry(self, phase: str) -> Expiry:
        """Return the time limits of a phase."""
        if phase not in self.expiries:
            configured = self.cascade.phase(phase)
            self.expiries[phase] = Expiry(self.past, phase, (configured.context_ttl if configured else None) or {})
        return self.expiries[phase]

    # -- the log ----------------------------------------------------------------------------------------------

    def selection_log(
        self,
        strategy: str,
        anchors: Collection[int] = (),
        candidates: Collection[SelectionCandidate] = (),
        reasoning: str | None = None,
    ) -> SelectionLog:
        """Return the published log; its refs are numbers in the past."""
        brought = {number for message in self.messages for number in message.numbers}
        after = frozenset(self.cascade.names) - frozenset(before(self.cascade, self.phase))
        history = [message for message in self.past.messages if message.phase not in after]
        full = sum(message.tokens(self.counter) for message in history)
        used = sum(message.tokens for message in self.messages if message.numbers)
        masked = sum(expiry.hidden for expiry in self.expiries.values())
        return SelectionLog(
            selection_type="inter_phase",
            strategy=strategy,
            full_history_size=len(history),
            context_size=len(brought),
            masked_count=masked,
            anchor_refs=tuple(f"§{number}" for number in sorted(anchors)),
            selected_refs=tuple(f"§{number}" for number in sorted(brought - set(anchors))),
            tokens_saved=full - used,
            candidates=tuple(candidates),
            reasoning=reasoning,
        )


def as_json(value: object, what: str) -> str:
    """Return JSON for a label; raise `InputError` for a value without a JSON form."""
    try:
        return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"{what} is no JSON: {error}; pass finite numbers, text, lists and dicts") from error
