r"""Plain text for completion endpoints, ``{"prompt": …}``, and for people. It can be inverted exactly.

    <7f3a91c2 system>            each line of our own has the session's nonce
    You are …
    <7f3a91c2 dynamic user §1>
    Hello
    </7f3a91c2>

Content may contain the nonce, role lines, section tags, YAML fences and chat-template tokens. `rows.escape` breaks the
nonce. A backslash, which `parse` removes, breaks the openings of template tokens (``<|``, ``[INST``, ``<<SYS``,
``<s>``, ``<start_of``…), so that a local model's tokenizer finds none. ``parse(render(x)) == x``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from ctxsteward.schemas import InputError, Message, TextPart
from ctxsteward.schemas.message import Wire

from ..layout.composition import PromptLayout
from ..layout.fragments import Fragment, MessageStep, ToolResult
from ..layout.rows import escape, unescape
from .cache_plan import CachePlan
from .units import CUT, Channel, ProviderFormat, Unit, wires_of_steps

_OPENING = re.compile(r"<([^\s<>/]{1,64}) ([^\n>]*)>\n")
_SPECIAL = r"\||/?INST\]|/?s>|/?SYS>>|(?:start|end)_of_turn>|(?:bos|eos|pad|unk)>"
# an opening, any backslashes behind it, and the rest of a template token (which is no opening itself)
_TEMPLATE = re.compile(rf"([<\[])(\\*)(?={_SPECIAL})")
_BROKEN = re.compile(rf"([<\[])\\(\\*)(?={_SPECIAL})")


class PromptSpan(NamedTuple):
    """A labelled part of a rendered prompt."""

    label: str
    """Section, role and reference, as in its opening line."""
    text: str


def render(prompt: PromptLayout, cache: CachePlan | None) -> Wire:
    """Return the prompt as one string."""
    return {"prompt": render_spans(prompt.nonce, list(spans(prompt)))}


NAME = "text"


def spans(prompt: PromptLayout) -> Iterator[PromptSpan]:
    """Yield all parts of the prompt in order."""
    for name in ("system", "static", "meta"):
        for fragment in prompt.head.section(name):
            yield PromptSpan(name, fragment.text)
    if prompt.head.tools:
        yield PromptSpan("tools", json.dumps(prompt.head.tools, ensure_ascii=False))
    for fragment in prompt.dynamic.fragments:
        for span in fragment_spans(fragment):
            yield PromptSpan(f"dynamic {span.label}", span.text)


def fragment_spans(fragment: Fragment) -> list[PromptSpan]:
    """Return one span for each message or derived text."""
    label = "aside" if fragment.kind == "group" else fragment.kind
    return wires_of_steps(fragment, lambda text: [PromptSpan(label, text)], _say, lambda all: [*map(_answer, all)])


def _say(step: MessageStep) -> list[PromptSpan]:
    message, ref = step.entry.message, step.entry.ref
    text = say_text(message)
    spans = [PromptSpan(f"{message.role} {ref}", text)] if text or not message.tool_calls else []
    for id, name, arguments in step.calls:
        spans.append(PromptSpan(f"call {ref} {json.dumps(name)} {json.dumps(id)}", arguments))
    return spans


def say_text(message: Message) -> str:
    """Return a message's text, with a line for each part that is not text."""
    rows = []
    for part in message.parts:
        if isinstance(part, TextPart):
            rows.append(part.text)
        elif part.kind not in ("tool_call", "tool_result"):
            rows.append(f"[{part.kind}]")
    return "\n".join(rows)


def _answer(answer: ToolResult) -> PromptSpan:
    ref = answer.entry.ref if answer.entry is not None else "-"
    return PromptSpan(f"result {ref} {json.dumps(answer.call_id)}{' error' if answer.is_error else ''}", answer.text)


def render_spans(nonce: str, rows: Sequence[PromptSpan]) -> str:
    """Return spans as one text; the inverse of `parse`."""
    out = [f"<{nonce} {_inert(nonce, row.label)}>\n{_inert(nonce, row.text)}\n" for row in rows]
    return "".join(out) + f"</{nonce}>\n"


def parse(nonce: str, prompt: str) -> list[PromptSpan]:
    """Return the spans of a rendered prompt; raise `InputError` for a prompt of another session."""
    opening = re.compile(rf"<{re.escape(nonce)} ([^\n]*)>\n")
    end = f"</{nonce}>\n"
    if not prompt.endswith(end):
        raise InputError("the prompt does not end with this session's closing line")
    body = prompt[: -len(end)]
    rows: list[PromptSpan] = []
    marks = [match for match in opening.finditer(body) if match.start() == 0 or body[match.start() - 1] == "\n"]
    for index, match in enumerate(marks):
        stop = marks[index + 1].start() if index + 1 < len(marks) else len(body)
        rows.append(PromptSpan(active(nonce, match[1]), active(nonce, body[match.end() : stop - 1])))
    return rows


def _inert(nonce: str, text: str) -> str:
    return _TEMPLATE.sub(r"\1\\\2", escape(nonce, text))


def active(nonce: str, text: str) -> str:
    """Undo what makes a text inert in a prompt."""
    return unescape(nonce, _BROKEN.sub(r"\1\2", text))


def section_text(fragments: Sequence[Fragment]) -> str:
    """Return fragments for people: a label and the text of each."""
    rows: list[str] = []
    for fragment in fragments:
        if fragment.kind in ("text", "observations", "bullets", "context", "notes"):
            rows.append(fragment.text)
        else:
            rows += [f"{span.label}: {span.text}" for span in fragment_spans(fragment)]
    return "\n".join(row.rstrip("\n") for row in rows)


def fragment_document(fragment: Fragment) -> Wire:
    """Return the published form of a fragment."""
    return {
        "kind": fragment.kind,
        "name": fragment.name or None,
        "refs": [f"§{ordinal}" for ordinal in fragment.refs],
        "tokens": fragment.tokens,
        "text": section_text((fragment,)),
    }


# -- read back ---------------------------------------------------------------------------------------------------


def parse_units(context: Wire, heads: Iterable[str], nonce: str) -> Iterator[Unit]:
    """Yield the units of a request."""
    return _units(context.get("prompt"), nonce)


def _units(prompt: object, nonce: str) -> Iterator[Unit]:
    """Yield the spans of a text prompt, by this nonce or its first one; every character is in one unit."""
    if prompt is None:
        return
    if not isinstance(prompt, str):
        raise InputError(f"sent: `prompt` is {type(prompt).__name__}; expected text")
    nonce = nonce if nonce and f"<{nonce} " in prompt else prompt_nonce(prompt)
    mark = re.compile(rf"^<{re.escape(nonce)} ([^\n]*)>\n", re.MULTILINE) if nonce else None
    marks = list(mark.finditer(prompt)) if mark else []
    start = marks[0].start() if marks else len(prompt)
    if start:
        yield Unit("head", "preamble", prompt[:start], "prompt")
    end = re.search(rf"^</{re.escape(nonce)}>\s*\Z", prompt, re.MULTILINE) if marks else None
    body_stop = end.start() if end else len(prompt)
    for index, opening in enumerate(marks):
        stop = marks[index + 1].start() if index + 1 < len(marks) else body_stop
        text = prompt[opening.end() : stop]
        whole = text.endswith("\n")
        yield _unit(opening[1], text[:-1] if whole else text, whole)
    if end:
        yield Unit("dynamic", f"end {nonce}", end[0], "prompt")


def prompt_nonce(prompt: str) -> str:
    """Return the nonce in a text prompt's first opening line, or an empty text if there is none."""
    opening = _OPENING.search(prompt)
    return opening[1] if opening else ""


def _unit(label: str, text: str, whole: bool) -> Unit:
    word = label.split(" ")[0]
    channel: Channel = "dynamic" if word == "dynamic" else "tools" if word == "tools" else "head"
    return Unit(channel, label if whole else label + CUT, text, f"prompt <{word}>")


FORMAT = ProviderFormat(render=render, parse=parse_units, message_units=None, arguments=("prompt",), as_tool=None)
