"""The prompt of one model call, piece by piece, and the differences between two calls.

`inspect_call` rebuilds a past envelope and takes it apart: sections in their order, each with its blocks (a tool, a
block of the profile, the bullets, a tool group, recalled originals, the notes), each block with its items, and each
item with the originals that it cites. In an original the cited words are marked: those that a bullet quotes, or the
passages that recall shows. `compare_calls` compares two calls of a session: which pieces are kept, new, changed and
dropped, why, and where the unchanged beginning ends.

Long texts are cut; a reference leads to the whole text. Tokens are estimates of the provider's; an item is counted by
itself, so the items of a block need not add up to its tokens. View models contain raw text of sessions: templates must
escape it. Errors are those of `rebuild`, and `InputError` for a call that does not exist.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from pydantic import Field

from ctxsteward.envelope import Envelope, EnvelopeBuilder, Session, Store, past_calls, rebuild
from ctxsteward.envelope.building.past_calls import PastCall, holds_task_first, prefix_between
from ctxsteward.envelope.layout.fragments import DerivedText, Fragment, MessageStep, Step
from ctxsteward.envelope.layout.rows import cited, fenced_rows, recalled_text
from ctxsteward.envelope.render.rules import VisibleRule
from ctxsteward.schemas import CompressionReport, ContextError, Finding, InputError, Loss
from ctxsteward.schemas.documents import SelectionLog
from ctxsteward.schemas.frozen import FrozenModel
from ctxsteward.store.profiles.text import META_REF, Profile, static_blocks, system_blocks
from ctxsteward.store.profiles.version_codec import lines_of

from .reply import ReplySentence, reply_sources
from .sessions import Original, original_of

ITEM_CHARS = 1500
"""Most characters of an item's text that are shown."""
_ROW = re.compile(r"(§[1-9]\d*(?:\.\d+(?:-\d+)?)?) (\w+)(?:, superseded by ([^:]*))?: ", re.ASCII)

Source = Literal["tools", "system", "static", "meta", "task", "bullets", "verbatim", "recall", "live", "notes"]
Status = Literal["kept", "new", "changed", "dropped"]
Shown = Literal["whole", "excerpt", "masked", "placeholder"]


class Item(FrozenModel):
    """The smallest piece that a page shows, such as a message, a tool or a bullet."""

    label: str
    """A role, or the name of a tool, block or note; may be empty."""
    ref: str
    """Reference of the message; empty for other items."""
    ordinal: int
    text: str
    """Text as the model was shown it, cut to `ITEM_CHARS`."""
    chars: int
    """Characters of the text before it is cut."""
    shown: Shown = "whole"
    """The form in which the model was shown the original."""
    note: str = ""
    tokens: int = 0
    originals: tuple[Original, ...] = ()

    @property
    def is_cut(self) -> bool:
        """Whether this page shows less than the model was shown."""
        return self.chars > len(self.text)


class Block(FrozenModel):
    """A piece of the prompt that is laid out and counted as one."""

    id: str
    """Id of its element on the page."""
    source: Source
    tokens: int
    items: tuple[Item, ...]


class SectionView(FrozenModel):
    """A section with its budget."""

    name: str
    tokens: int
    budget_tokens: int | None
    """None for a section without a budget of its own."""
    threshold_tokens: int | None
    """Tokens from which on it is compacted; None if it never is."""
    overflow_tokens: int
    epoch: int
    blocks: tuple[Block, ...]


class CallView(FrozenModel):
    """The prompt of one call."""

    session: str
    call: PastCall
    count: int
    """Calls of the session."""
    window_tokens: int | None
    profile_version: str | None
    sections: tuple[SectionView, ...]
    findings: tuple[Finding, ...]
    reports: tuple[CompressionReport, ...]
    """Reports of the compactions that this call made."""
    rules: tuple[VisibleRule, ...] = Field(exclude=True)
    """Standing rules that nobody lifted; first those that its request did not show."""
    selection: SelectionLog | None = None
    """The messages that recall considered for this turn, or None if it did not rank any."""
    reply: tuple[ReplySentence, ...] = ()
    """The reply to this call, each sentence with its source."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptUnit:
    """A piece of the prompt of one of two calls, or of both."""

    key: tuple[str, ...]
    """Identity of the piece, which does not change with its text."""
    says: str
    """Everything that is compared between the two calls."""
    source: Source
    label: str
    ref: str
    ordinal: int
    text: str
    tokens: int
    messages: frozenset[str]
    """References of the messages in the piece."""
    status: Status = "new"
    why: Literal["", "bullet", "recalled", "compacted", "weighed", "turn", "replaced"] = ""
    """Reason why it was dropped: a bullet cites it, it is recalled, a compaction removed it, it made room for other
    bullets, it was recalled for another turn, a newer text replaced it."""
    report: str = ""
    """Id of the compaction that dropped it."""
    losses: tuple[Loss, ...] = ()
    """Losses that compactions reported of it."""
    bullets: tuple[str, ...] = ()
    """Bullets of the later call that cite it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallDifference:
    """Comparison of two calls."""

    session: str
    before: PastCall
    after: PastCall
    count: int
    """Calls of the session."""
    prefix_tokens: int
    broke_in: str | None
    break_at: int
    """Number of pieces at the beginning of `shown` that are unchanged."""
    shown: tuple[PromptUnit, ...]
    """Pieces of the later call's prompt, in their order."""
    dropped: tuple[PromptUnit, ...]
    reports: tuple[CompressionReport, ...]


class PastEnvelope(NamedTuple):
    """A call's rebuilt envelope, with the session as it was then."""

    call: PastCall
    envelope: Envelope
    session: Session
    builder: EnvelopeBuilder

    def tokens(self, own: int) -> int:
        """Convert tokens of our tokenizer into the provider's."""
        return self.builder.provider_tokens(own)

    def counted(self, text: str) -> int:
        return self.tokens(self.builder.counter.text(text))


def call_numbered(calls: Sequence[PastCall], number: int, session: str) -> PastCall:
    """Return the call with this number, from 1; raise `InputError` if there is none."""
    if not 0 < number <= len(calls):
        hint = f"no call {number}; it has 1 to {len(calls)}" if calls else "no envelope was built of it; build it first"
        raise InputError(f"session {session!r}: {hint}")
    return calls[number - 1]


def open_call(store: Store, tenant: str, call: PastCall) -> PastEnvelope:
    """Rebuild the envelope of a call."""
    manifest = store.manifest(call.address, tenant=tenant)
    envelope = rebuild(store, call.address, tenant=tenant)
    session = store.at(tenant, manifest["session"], manifest["position"])
    return PastEnvelope(call, envelope, session, EnvelopeBuilder.from_manifest(manifest))


def inspect_call(
    store: Store, session: str, number: int = 0, *, tenant: str = "default", calls: Sequence[PastCall] | None = None
) -> CallView:
    """Take one call of a session apart, or the newest if `number` is 0. `calls` saves reading the session's calls."""
    calls = past_calls(store, session, tenant=tenant) if calls is None else calls
    past = open_call(store, tenant, call_numbered(calls, number or len(calls), session))
    envelope = past.envelope
    rules = (one for one in envelope.rules.rules if one.rule.lifted_by is None)
    reply: tuple[ReplySentence, ...] = ()
    with suppress(ContextError):  # what came after the call may be damaged, and the call is shown all the same
        reply = reply_sources(past, store.at(tenant, session))
    recalled = past.session.state.recalled
    return CallView(
        session=session,
        call=past.call,
        count=len(calls),
        window_tokens=past.builder.window_tokens,
        profile_version=envelope.profile_version,
        sections=tuple(_sections(past)),
        findings=envelope.findings,
        reports=envelope.reports,
        rules=tuple(sorted(rules, key=lambda one: bool(one.places))),
        selection=SelectionLog.model_validate(recalled.log) if recalled is not None and recalled.log else None,
        reply=reply,
    )


# -- sections -----------------------------------------------------------------------------------------------------


def _sections(past: PastEnvelope) -> Iterator[SectionView]:
    budgets, envelope = past.builder.budgets, past.envelope
    yield SectionView(
        name="tools",
        tokens=int(envelope.metrics["tools_tokens"]),
        budget_tokens=budgets.tools_tokens,
        threshold_tokens=None,
        overflow_tokens=0,
        epoch=0,
        blocks=tuple(_tool_blocks(past)),
    )
    for name, section in envelope.sections.items():
        is_dynamic = name == "dynamic"
        yield SectionView(
            name=name,
            tokens=section.tokens,
            budget_tokens=section.budget_tokens,
            threshold_tokens=int(section.budget_tokens * budgets.compact_at_fraction) if is_dynamic else None,
            overflow_tokens=section.overflow_tokens,
            epoch=section.epoch,
            blocks=tuple(_dynamic_blocks(past) if is_dynamic else _head_blocks(past, name)),
        )


def _head_blocks(past: PastEnvelope, name: str) -> Iterator[Block]:
    source: Source = "system" if name == "system" else "static" if name == "static" else "meta"
    for at, fragment in enumerate(past.envelope.head.section(name)):
        items = _meta_items(past, fragment) if name == "meta" else _governed_items(past, name, fragment)
        yield Block(id=f"{name}-{at + 1}", source=source, tokens=past.tokens(fragment.tokens), items=tuple(items))


def _item(
    label: str,
    text: str,
    *,
    ref: str = "",
    ordinal: int = 0,
    tokens: int = 0,
    note: str = "",
    shown: Shown = "whole",
    originals: Iterable[Original] = (),
) -> Item:
    return Item(
        label=label,
        ref=ref,
        ordinal=ordinal,
        text=text[:ITEM_CHARS],
        chars=len(text),
        tokens=tokens,
        note=note,
        shown=shown,
        originals=tuple(originals),
    )


def _tool_blocks(past: PastEnvelope) -> Iterator[Block]:
    """Yield one block; each tool's tokens include its share of the tokens that frame the list."""
    tools, total = past.envelope.head.tools, int(past.envelope.metrics["tools_tokens"])
    alone = [past.builder.counter.tools([tool]) for tool in tools]
    items = []
    for tool, tokens in zip(tools, alone, strict=True):
        function = tool.get("function")
        named = function if isinstance(function, Mapping) else tool
        text = json.dumps(tool, ensure_ascii=False, indent=1)
        items.append(_item(str(named.get("name", "")), text, tokens=round(total * tokens / (sum(alone) or 1))))
    if items:
        yield Block(id="tools-1", source="tools", tokens=total, items=tuple(items))


def _governed_items(past: PastEnvelope, section: str, fragment: Fragment) -> Iterator[Item]:
    profile = past.session.state.head.profile
    if fragment.name != "profile" or profile is None:
        yield _item(fragment.name, fragment.text, tokens=past.tokens(fragment.tokens))
        return
    document = Profile.model_validate(profile)
    for block in system_blocks(document) if section == "system" else static_blocks(document):
        yield _item(block.name, block.text, tokens=past.counted(block.text))


def _meta_items(past: PastEnvelope, fragment: Fragment) -> Iterator[Item]:
    profile = past.session.state.head.profile
    records = Profile.model_validate(profile).meta if profile else ()
    try:
        lines = list(lines_of(fragment.text, records))
    except ValueError:
        lines = [(line, None) for line in fragment.text.split("\n")]
    for line, record in lines:
        if line and record is None:
            yield _item("", line, tokens=past.counted(line))
        elif record is not None:
            found = original_of(past.session, META_REF + record.id)
            yield _item("record", line, tokens=past.counted(line), originals=(found,))


def _dynamic_blocks(past: PastEnvelope) -> Iterator[Block]:
    layout, state = past.envelope.dynamic, past.session.state
    is_task_first = bool(layout.task_upto) or holds_task_first(past.envelope, state)
    live = {id(fragment) for fragment in (*layout.live, *layout.after)}
    for at, fragment in enumerate(layout.fragments):
        items: list[Item] = []
        source: Source
        if fragment in layout.derived:
            source = "bullets"
            for row in _rows(past, fragment):
                bullet = cited(row)
                originals = [original_of(past.session, ref, bullet.text) for ref in bullet.citations]
                refs = " ".join(bullet.citations)
                items.append(_item("", bullet.text, tokens=past.counted(row), note=refs, originals=originals))
        elif fragment is layout.context:
            source, items = "recall", list(_recall_items(past, fragment))
        elif fragment is layout.notes:
            source = "notes"
            for row in _rows(past, fragment):
                name, _, text = row.partition(": ")
                items.append(_item(name, text, tokens=past.counted(row)))
        else:
            is_task = is_task_first and fragment.refs == (state.task,) and id(fragment) not in live
            source = "task" if is_task else "live" if id(fragment) in live else "verbatim"
            items = [item for step in fragment.steps for item in _step_items(past, step)]
        yield Block(id=f"dynamic-{at + 1}", source=source, tokens=past.tokens(fragment.tokens), items=tuple(items))


def _rows(past: PastEnvelope, fragment: Fragment) -> list[str]:
    try:
        return fenced_rows(past.envelope.nonce, fragment.text)
    except ValueError:
        return [fragment.text]


def _recall_items(past: PastEnvelope, fragment: Fragment) -> Iterator[Item]:
    for row in _rows(past, fragment):
        match = _ROW.match(row)
        if match is None:
            label = "fact" if row.startswith("fact ") else ""
            yield _item(label, row, tokens=past.counted(row))
            continue
        text, message = row[match.end() :], match[1].partition(".")[0]
        whole = original_of(past.session, message, text)
        is_part = not whole.missing and text.strip() != recalled_text(past.session.resolve(message)).strip()
        yield _item(
            match[2],
            text,
            ref=match[1],
            ordinal=whole.ordinal,
            tokens=past.counted(row),
            note=f"→ {match[3]}" if match[3] else "",
            shown="excerpt" if is_part else "whole",
            originals=(whole,) if is_part else (),
        )


def _step_items(past: PastEnvelope, step: Step) -> Iterator[Item]:
    """Yield a message with its calls, and the results, as the model was shown them."""
    if isinstance(step, DerivedText):
        yield _item("", step.text, tokens=past.counted(step.text))
    elif isinstance(step, MessageStep):
        entry = step.entry
        calls = "".join(f"\n{name} {arguments}" for _, name, arguments in step.calls)
        text = f"{entry.message.text}{calls}".strip("\n")
        whole = past.session.shown(entry.ordinal)
        part = whole.message.text != entry.message.text or bool(step.arguments)
        yield _item(
            entry.message.role,
            text,
            ref=entry.ref,
            ordinal=entry.ordinal,
            tokens=past.counted(text),
            shown="excerpt" if part else "whole",
        )
    else:
        for answer in step.answers:
            tokens = past.counted(answer.text)
            if answer.entry is None:
                yield _item("tool", answer.text, tokens=tokens, note=answer.name, shown="placeholder")
                continue
            entry = answer.entry
            results = entry.message.tool_results
            ref = entry.ref if len(results) == 1 else f"{entry.ref}.{answer.index + 1}"
            is_whole = answer.text == results[answer.index].text
            masked = len(answer.text) < 120 and answer.text.startswith("[") and answer.text.endswith(f", {ref}]")
            shown: Shown = "whole" if is_whole else "masked" if masked else "excerpt"
            yield _item(
                "tool", answer.text, ref=ref, ordinal=entry.ordinal, tokens=tokens, note=answer.name, shown=shown
            )
        for trailing in step.trailing:
            yield from _step_items(past, trailing)


# -- two calls ----------------------------------------------------------------------------------------------------


def compare_calls(
    store: Store,
    session: str,
    number: int,
    since: int,
    *,
    tenant: str = "default",
    calls: Sequence[PastCall] | None = None,
) -> CallDifference:
    """Compare call `number` of a session with the earlier call `since`; `calls` as in `inspect_call`."""
    calls = past_calls(store, session, tenant=tenant) if calls is None else calls
    if since >= number:
        raise InputError(f"session {session!r}: call {number} is not after call {since}; name a later one first")
    before = open_call(store, tenant, call_numbered(calls, since, session))
    after = open_call(store, tenant, call_numbered(calls, number, session))
    reports = tuple(
        store.report(made.report, tenant=tenant) for call in calls[since:number] for made in call.compactions
    )
    old, new = _by_key(_units(before)), _by_key(_units(after))
    broken = prefix_between(before.envelope, after.envelope, after.builder)
    shown = tuple(
        unit if key not in old else replace(unit, status="kept" if old[key].says == unit.says else "changed")
        for key, unit in new.items()
    )
    gone = (unit for key, unit in old.items() if key not in new)
    return CallDifference(
        session=session,
        before=before.call,
        after=after.call,
        count=len(calls),
        prefix_tokens=broken.prefix_tokens,
        broke_in=broken.broke_in,
        break_at=next((at for at, unit in enumerate(shown) if unit.status != "kept"), len(shown)),
        shown=shown,
        dropped=tuple(_dropped(unit, list(new.values()), reports) for unit in gone),
        reports=reports,
    )


def _by_key(units: Iterable[PromptUnit]) -> dict[tuple[str, ...], PromptUnit]:
    """Return the pieces by key, in their order; a repeated key gets a number."""
    by_key: dict[tuple[str, ...], PromptUnit] = {}
    for unit in units:
        times = sum(key[: len(unit.key)] == unit.key for key in by_key) if unit.key in by_key else 0
        by_key[(*unit.key, *([str(times)] if times else []))] = unit
    return by_key


def _units(past: PastEnvelope) -> Iterator[PromptUnit]:
    """Yield the pieces of a prompt: each tool group, and each row inside a fence, is one piece."""
    for block in (block for section in _sections(past) for block in section.blocks):
        if block.source in ("task", "verbatim", "live"):
            first = block.items[0] if block.items else _item("", "")
            says = "\n".join(f"{item.ref} {item.label} {item.shown}: {item.text}" for item in block.items)
            several = "\n".join(f"{item.label}: {item.text}" for item in block.items)
            yield PromptUnit(
                key=("group", first.ref or says),
                says=says,
                source=block.source,
                label=first.label,
                ref=first.ref,
                ordinal=first.ordinal,
                text=first.text if len(block.items) == 1 else several,
                tokens=block.tokens,
                messages=_messages(" ".join(item.ref for item in block.items)),
            )
            continue
        for at, item in enumerate(block.items):
            is_named = bool(item.ref) or block.source in ("tools", "system", "static", "notes")
            names = (item.label, item.ref) if is_named else (item.text,)
            yield PromptUnit(
                key=(block.source, *names, *(() if any(names) else (str(at),))),
                says=f"{item.label} {item.text} {item.note}",
                source=block.source,
                label=item.label,
                ref=item.ref or item.note,
                ordinal=item.ordinal,
                text=item.text,
                tokens=item.tokens or block.tokens,
                messages=_messages(f"{item.ref} {item.note}"),
            )


def _dropped(unit: PromptUnit, now: Sequence[PromptUnit], reports: Sequence[CompressionReport]) -> PromptUnit:
    """Return a piece that is no longer shown, with the reason."""
    gone = replace(unit, status="dropped")
    if unit.source in ("tools", "system", "static", "meta", "notes"):
        return replace(gone, why="replaced")
    if unit.source == "recall":
        return replace(gone, why="turn")
    every = [(report.id, loss) for report in reports for loss in report.losses]
    if unit.source == "bullets":
        same = [(report, loss) for report, loss in every if loss.text.strip() == unit.text.strip()][:1]
        report = same[0][0] if same else ""
        return replace(gone, why="weighed", report=report, losses=tuple(loss for _, loss in same))
    bullets = tuple(one.text for one in now if one.source == "bullets" and unit.messages & one.messages)
    is_recalled = any(one.source == "recall" and f"§{one.ordinal}" in unit.messages for one in now)
    losses = [(report, loss) for report, loss in every if _messages(loss.ref) & unit.messages]
    return replace(
        gone,
        why="recalled" if is_recalled else "bullet" if bullets else "compacted",
        report=losses[0][0] if losses else reports[-1].id if reports else "",
        bullets=bullets,
        losses=tuple(loss for _, loss in losses),
    )


def _messages(refs: str) -> frozenset[str]:
    """Return the messages that these references name."""
    return frozenset(ref.partition(".")[0] for ref in refs.split() if ref.startswith("§"))
