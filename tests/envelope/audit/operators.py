"""What goes wrong between a builder and a provider: twelve operators that make a wrong request out of a right one.

Each takes a seeded random source, a scene and a provider, and returns a `Mutation`: what was sent, and which other
envelopes the auditor is told of. They work on the providers' wire forms and know nothing of how the auditor reads them.
"""

from __future__ import annotations

import copy
import html
import json
import random
import re
import unicodedata
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ctxsteward.envelope import Envelope
from ctxsteward.envelope.audit import sealed_request

from .scenes import WORDS, Scene, Wire


class Mutation(NamedTuple):
    """A request gone wrong."""

    sent: Wire
    known: tuple[Envelope, ...] = ()


Operator = Callable[[random.Random, Scene, str], Mutation]

REMARKS: list[str] = WORDS["remarks"]
BLOCKS: list[str] = WORDS["blocks"]


# -- wire forms --------------------------------------------------------------------------------------------------


class Slot(NamedTuple):
    """A text of a request: where it can be read and written."""

    owner: Any
    key: Any
    head: bool = False

    @property
    def text(self) -> str:
        text: str = self.owner[self.key]
        return text

    def put(self, text: str) -> None:
        self.owner[self.key] = text


def rendered(scene: Scene, provider: str) -> Wire:
    return copy.deepcopy(scene.expected.render(provider, cache=False))  # type: ignore[arg-type]


def turns(payload: Wire, provider: str) -> list[Any]:
    """The list of messages, items or contents."""
    key = {"openai-responses": "input", "gemini": "contents"}.get(provider, "messages")
    found: list[Any] = payload[key]
    return found


def tools_of(payload: Wire, provider: str) -> list[Any]:
    """The list of tool schemas."""
    found: list[Any] = (
        payload["config"]["tools"][0]["function_declarations"] if provider == "gemini" else payload["tools"]
    )
    return found


def said(payload: Wire, provider: str) -> int:
    """Index of the first turn that is no system message."""
    return next(i for i, wire in enumerate(turns(payload, provider)) if wire.get("role") not in ("system", "developer"))


def slots(payload: Wire, provider: str, *, head: bool = True) -> list[Slot]:
    """Every prose text of a request; results too, call arguments not."""
    found: list[Slot] = []
    if head and isinstance(payload.get("instructions"), str):
        found.append(Slot(payload, "instructions", True))
    if head and "config" in payload:
        found.append(Slot(payload["config"], "system_instruction", True))
    if head and provider == "anthropic":
        found += [Slot(block, "text", True) for block in payload["system"]]
    for wire in turns(payload, provider):
        top = wire.get("role") in ("system", "developer")
        if head or not top:
            found += [slot._replace(head=top) for slot in _slots_of(wire)]
    return [slot for slot in found if slot.text.strip()]


def _slots_of(wire: Wire) -> list[Slot]:
    found = [Slot(wire, key) for key in ("content", "output", "text") if isinstance(wire.get(key), str)]
    for key in ("content", "parts", "output"):
        for block in wire[key] if isinstance(wire.get(key), list) else ():
            found += _slots_of(block)
    response = wire.get("function_response", {}).get("response", {})
    return found + [Slot(response, key) for key in response if isinstance(response[key], str)]


SPAN = re.compile(r"(?m)^<(\d{9}) ([^\n]*)>\n")


def spans(scene: Scene, prompt: str) -> list[str]:
    """A text prompt cut before every opening line; the closing line stays with the last span."""
    nonce = scene.expected.nonce
    starts = [found.start() for found in SPAN.finditer(prompt) if found[1] == nonce]
    return [prompt[a:b] for a, b in zip(starts, [*starts[1:], len(prompt)], strict=True)]


def label_of(span: str) -> str:
    """First word of a span's label."""
    found = SPAN.match(span)
    assert found is not None
    return found[2].split(" ")[0]


def body(span: str) -> tuple[str, str, str]:
    """Opening line, text, and what ends it."""
    opening, _, rest = span.partition("\n")
    found = re.search(r"\n(?:</\d{9}>\n)?\Z", rest)
    assert found is not None
    return opening + "\n", rest[: found.start()], rest[found.start() :]


def rewrite(
    rng: random.Random, scene: Scene, provider: str, change: Callable[[str], str], *, all: bool = False
) -> Wire:
    """The request with one of its texts (or all) changed, one that the change does change."""
    payload = rendered(scene, provider)
    if provider == "text":
        pieces = spans(scene, payload["prompt"])
        order = [i for i in rng.sample(range(len(pieces)), len(pieces)) if label_of(pieces[i]) != "tools"]
        for index in order:
            opening, text, end = body(pieces[index])
            new = change(text)
            if new != text:
                pieces[index] = opening + new + end
                if not all:
                    break
        return {"prompt": "".join(pieces)}
    places = slots(payload, provider)
    for slot in rng.sample(places, len(places)):
        new = change(slot.text)
        if new != slot.text:
            slot.put(new)
            if not all:
                break
    return payload


def head_texts(scene: Scene) -> list[str]:
    return [fragment.text for fragment in scene.expected.head.fragments]


def set_head(payload: Wire, provider: str, texts: Sequence[str]) -> None:
    """Write the head of a provider that takes it as one text."""
    if provider == "gemini":
        payload["config"]["system_instruction"] = "\n\n".join(texts)
    else:
        payload["instructions"] = "\n\n".join(texts)


# -- the twelve --------------------------------------------------------------------------------------------------


def missing_section(rng: random.Random, scene: Scene, provider: str) -> Mutation:
    """A template without its rails, a client without its tools, a proxy that drops the notes."""
    payload = rendered(scene, provider)
    texts = head_texts(scene)
    blocks = blocks_of(scene)
    block = rng.choice(blocks) if blocks else ""
    what = rng.choice(["head", "head", "tools", "whole head", *(["block"] * 2 if block else [])])
    gone = rng.randrange(len(texts))
    if provider == "text":
        pieces = spans(scene, payload["prompt"])
        if what == "block":
            named = [p for p in pieces if re.match(r"<\d{9} dynamic (bullets|context|notes)>", p)]
            gone_piece = rng.choice(named)
            kept = [p for p in pieces if p != gone_piece]
        elif what == "tools":
            kept = [p for p in pieces if label_of(p) != "tools"]
        elif what == "whole head":
            kept = [p for p in pieces if label_of(p) not in ("system", "static", "meta")]
        else:
            kept = [p for p in pieces if texts[gone] not in p]
        prompt = "".join(kept)
        end = f"</{scene.expected.nonce}>\n"
        return Mutation({"prompt": prompt if prompt.endswith(end) else prompt + end})
    if what == "tools":
        (payload["config"] if provider == "gemini" else payload).pop("tools")
    elif what == "block":
        _drop_text(payload, provider, block)
    elif provider == "openai-chat":
        drop = texts if what == "whole head" else [texts[gone]]
        payload["messages"] = [w for w in payload["messages"] if not (w["role"] == "system" and w["content"] in drop)]
    elif provider == "anthropic":
        if what == "whole head":
            del payload["system"]
        else:
            payload["system"] = [b for b in payload["system"] if b["text"] != texts[gone]]
    elif what == "whole head":
        payload.pop("instructions", None)
        payload.get("config", {}).pop("system_instruction", None)
    else:
        set_head(payload, provider, [t for t in texts if t != texts[gone]])
    return Mutation(payload)


def blocks_of(scene: Scene) -> list[str]:
    """Bullets, recalled messages and notes, as far as there are any."""
    dynamic = scene.expected.dynamic
    return [one.text for one in (dynamic.bullets, dynamic.context, dynamic.notes) if one is not None]


def _drop_text(payload: Wire, provider: str, text: str) -> None:
    """Take the message or block with this text out."""
    wires = turns(payload, provider)
    for wire in list(wires):
        inner = wire.get("parts", wire.get("content"))
        if inner == text:
            wires.remove(wire)
        elif isinstance(inner, list):
            kept = [block for block in inner if block.get("text") != text]
            if not kept:
                wires.remove(wire)
            elif len(kept) < len(inner):
                wire["parts" if "parts" in wire else "content"] = kept


def extra_section(rng: random.Random, scene: Scene, provider: str) -> Mutation:
    """A framework that adds a prompt of its own, a memory block, or an argument that brings context along."""
    payload = rendered(scene, provider)
    extra = rng.choice(BLOCKS)
    if provider == "text":
        pieces = spans(scene, payload["prompt"])
        label = rng.choice(("system", "static", "meta", "policy", "dynamic context"))
        pieces.insert(rng.randrange(len(pieces)), f"<{scene.expected.nonce} {label}>\n{extra}\n")
        return Mutation({"prompt": "".join(pieces)})
    what = rng.choice(("section", "section", "block", "argument"))
    if what == "argument":
        name, value = {
            "openai-chat": ("system", extra),
            "openai-responses": ("previous_response_id", "resp_68a1"),
            "anthropic": ("mcp_servers", [{"type": "url", "url": "https://tools.example", "name": "extra"}]),
            "gemini": ("cached_content", "cachedContents/abc"),
        }[provider]
        (payload["config"] if provider == "gemini" else payload)[name] = value
    elif what == "block":
        text = f"<memory from=profile>\n{extra}\n</memory>"
        wires = turns(payload, provider)
        wires.insert(rng.randrange(said(payload, provider), len(wires) + 1), _user(provider, text))
    elif provider == "anthropic":
        payload["system"].insert(rng.randrange(len(payload["system"]) + 1), {"type": "text", "text": extra})
    elif provider == "openai-chat" or rng.random() < 0.4:
        wires = turns(payload, provider)
        role = rng.choice(("system", "developer"))
        wire = _user(provider, extra)
        wires.insert(rng.randrange(len(wires) + 1), {**wire, "role": role})
    else:
        texts = head_texts(scene)
        texts.insert(rng.randrange(len(texts) + 1), extra)
        set_head(payload, provider, texts)
    return Mutation(payload)


def _user(provider: str, text: str) -> Wire:
    match provider:
        case "openai-responses":
            return {"role": "user", "content": [{"type": "input_text", "text": text}]}
        case "anthropic":
            return {"role": "user", "content": [{"type": "text", "text": text}]}
        case "gemini":
            return {"role": "user", "parts": [{"text": text}]}
        case _:
            return {"role": "user", "content": text}


def injected_text(rng: random.Random, scene: Scene, provider: str) -> Mutation:
    """A sentence more in a text, a message more, a tool more."""
    remark = rng.choice(REMARKS)
    what = rng.choice(("text", "text", "text", "message", "tool"))
    if what == "text":

        def change(text: str) -> str:
            at = rng.choice((0, len(text), rng.randrange(len(text) + 1)))
            joint = rng.choice((" ", "\n"))
            return text[:at] + joint + remark + joint + text[at:]

        return Mutation(rewrite(rng, scene, provider, change))
    payload = rendered(scene, provider)
    if provider == "text":
        pieces = spans(scene, payload["prompt"])
        dynamic = next(i for i, piece in enumerate(pieces) if " dynamic " in piece.partition("\n")[0])
        role = rng.choice(("user", "assistant"))
        pieces.insert(rng.randrange(dynamic, len(pieces)), f"<{scene.expected.nonce} dynamic {role} §99>\n{remark}\n")
        return Mutation({"prompt": "".join(pieces)})
    if what == "message":
        wires = turns(payload, provider)
        wires.insert(rng.randrange(said(payload, provider), len(wires) + 1), _user(provider, remark))
        return Mutation(payload)
    tools = tools_of(payload, provider)
    tool = copy.deepcopy(rng.choice(tools))
    tool.get("function", tool).update(name="send_mail", description=remark)
    tools.insert(rng.randrange(len(tools) + 1), tool)
    return Mutation(payload)


_SWAPS = {
    "not": "now",
    "must": "may",
    "before": "after",
    "only": "also",
    "no": "any",
    "order": "account",
    "the": "this",
}


def altered_text(rng: random.Random, scene: Scene, provider: str) -> Mutation:
    """Another number, another word, a lost or gained "not", another role, other arguments, another tool description."""
    what = rng.choice(("digit", "digit", "word", "word", "letter", "role", "call", "tool"))
    payload = rendered(scene, provider)
    if provider != "text" and what == "role":
        said_by = ("user", "assistant", "model")
        wires = [w for w in turns(payload, provider)[said(payload, provider) :] if w.get("role") in said_by]
        wire = rng.choice([w for w in wires if w.get("content") or w.get("parts")])
        other = "model" if provider == "gemini" else "assistant"
        wire["role"] = "user" if wire["role"] == other else other
        return Mutation(payload)
    if provider != "text" and what == "tool":
        tool = rng.choice(tools_of(payload, provider))
        inner = tool.get("function", tool)
        for here, there in (("cannot", "can"), ("its", "any"), ("back", "out"), ("newest", "oldest")):
            inner["description"] = inner["description"].replace(here, there)
        return Mutation(payload)
    if what == "call":
        text = json.dumps(payload, ensure_ascii=False)
        ids = sorted(set(re.findall(r"call_[0-9A-Za-z]{2}[0-9A-Za-z_]*", text)))
        if ids:
            id = rng.choice(ids)
            return Mutation(json.loads(text.replace(id, id[:-1] + ("7" if id[-1] != "7" else "3"), 1)))

    def digit(text: str) -> str:
        places = [found.start() for found in re.finditer(r"\d", text)]
        if not places:
            return text
        at = rng.choice(places)
        if not text[at].isascii():
            return text
        return text[:at] + str((int(text[at]) + rng.randrange(1, 10)) % 10) + text[at + 1 :]

    def word(text: str) -> str:
        places = [found for found in re.finditer(r"(?<= )\w+(?= )", text) if found[0] in _SWAPS]
        if not places:
            return text
        found = rng.choice(places)
        return text[: found.start()] + _SWAPS[found[0]] + text[found.end() :]

    def letter(text: str) -> str:
        places = [found.start() for found in re.finditer(r"(?<=[a-z])[a-z](?=[a-z])", text)]
        if not places:
            return text
        at = rng.choice(places)
        return text[:at] + chr((ord(text[at]) - 97 + rng.randrange(1, 26)) % 26 + 97) + text[at + 1 :]

    change = {"word": word, "digit": digit}.get(what, letter)
    return Mutation(rewrite(rng, scene, provider, change))


def reordered(rng: random.Random, scene: Scene, provider: str) -> Mutation:
    """Sections in another order, neighbours exchanged, notes moved up, tools sorted."""
    payload = rendered(scene, provider)
    if provider == "text":
        pieces = spans(scene, payload["prompt"])
        end = f"</{scene.expected.nonce}>\n"
        pieces[-1] = pieces[-1].removesuffix(end)
        _shuffle(rng, pieces, 0)
        return Mutation({"prompt": "".join(pieces) + end})
    what = rng.choice(("head", "turns", "turns", "tools"))
    if what == "tools":
        _shuffle(rng, tools_of(payload, provider), 0)
    elif what == "turns" and len(turns(payload, provider)) - said(payload, provider) > 1:
        _shuffle(rng, turns(payload, provider), said(payload, provider))
    elif provider == "anthropic":
        _shuffle(rng, payload["system"], 0)
    elif provider == "openai-chat":
        heads = payload["messages"][: said(payload, provider)]
        _shuffle(rng, heads, 0)
        payload["messages"][: len(heads)] = heads
    else:
        texts = head_texts(scene)
        _shuffle(rng, texts, 0)
        set_head(payload, provider, texts)
    return Mutation(payload)


def _shuffle(rng: random.Random, items: list[Any], start: int) -> None:
    """Exchange two, or move one, from `start` on, so that the list is another one."""
    before = copy.deepcopy(items)
    while items == before:
        one, other = rng.sample(range(start, len(items)), 2)
        if rng.random() < 0.5:
            items[one], items[other] = items[other], items[one]
        else:
            items.insert(other, items.pop(one))


def truncated(rng: random.Random, scene: Scene, provider: str) -> Mutation:
    """A text cut at its end, start or middle, with a mark of omission or without; old or new messages dropped."""

    def cut(text: str) -> str:
        if len(text) < 90:
            return text
        keep = rng.randrange(12, len(text) - 50)
        mark = rng.choice(("", "", "…", " [truncated]", "...\n", "[… 312 more characters]"))
        style = rng.choice(("end", "end", "start", "middle"))
        if style == "end":
            return text[:keep] + mark
        if style == "start":
            return mark + text[-keep:]
        return text[: keep // 2] + mark + text[keep // 2 + len(text) - keep :]

    what = rng.choice(("text", "text", "oldest", "newest", "tool"))
    if what == "text":
        return Mutation(rewrite(rng, scene, provider, cut))
    payload = rendered(scene, provider)
    if provider == "text":
        if rng.random() < 0.5:
            return Mutation({"prompt": payload["prompt"][: -rng.randrange(40, len(payload["prompt"]) // 3)]})
        pieces = spans(scene, payload["prompt"])
        message = re.compile(r"<\d{9} dynamic (user|assistant|call|result)")
        messages = [i for i, piece in enumerate(pieces) if message.match(piece)]
        if len(messages) > 1:
            del pieces[messages[0]]
            return Mutation({"prompt": "".join(pieces)})
        return Mutation(rewrite(rng, scene, provider, cut))
    wires, start = turns(payload, provider), said(payload, provider)
    derived = [json.dumps(text)[1:-1] for text in blocks_of(scene)]
    plain = [i for i in range(start, len(wires)) if not any(text in json.dumps(wires[i]) for text in derived)]
    if what == "tool":
        tools = tools_of(payload, provider)
        del tools[rng.randrange(len(tools))]
    elif len(plain) < 3:
        return Mutation(rewrite(rng, scene, provider, cut))
    else:
        many = rng.randrange(1, len(plain) - 1)
        drop = plain[:many] if what == "oldest" else plain[-many:]
        wires[:] = [wire for i, wire in enumerate(wires) if i not in drop]
    return Mutation(payload)


def _in_place_of(rng: random.Random, other: Envelope, scene: Scene, provider: str) -> Mutation:
    """The other envelope's request: logged with its seal, or bare and known to the auditor."""
    if rng.random() < 0.5:
        return Mutation(_logged(sealed_request(other, provider)))  # type: ignore[arg-type]
    payload = json.loads(json.dumps(other.render(provider, cache=rng.random() < 0.5)))  # type: ignore[arg-type]
    return Mutation(payload, rng.choice(((other,), scene.others)))


def _logged(request: Wire) -> Wire:
    logged: Wire = json.loads(json.dumps(request))
    return logged


def stale_version(rng: random.Random, scene: Scene, provider: str) -> Mutation:
    """A worker that still has the profile from before, all of it or only its cached system prompt."""
    if rng.random() < 0.5:
        return _in_place_of(rng, scene.stale, scene, provider)
    payload, old = rendered(scene, provider), scene.stale.render(provider, cache=False)  # type: ignore[arg-type]
    if provider == "text":
        prompt = payload["prompt"]
        for mine, theirs in zip(head_texts(scene), (f.text for f in scene.stale.head.fragments), strict=True):
            prompt = prompt.replace(mine, theirs)
        payload = {"prompt": prompt}
    elif provider == "openai-chat":
        texts = [fragment.text for fragment in scene.stale.head.fragments]
        payload["messages"][: len(texts)] = old["messages"][: len(texts)]
    elif provider == "anthropic":
        payload["system"] = old["system"]
    elif provider == "gemini":
        payload["config"]["system_instruction"] = old["config"]["system_instruction"]
    else:
        payload["instructions"] = old["instructions"]
    return Mutation(payload, scene.others)


def wrong_tenant(rng: random.Random, scene: Scene, provider: str) -> Mutation:
    """A cache keyed by session id alone."""
    return _in_place_of(rng, scene.foreigner, scene, provider)


def wrong_session(rng: random.Random, scene: Scene, provider: str) -> Mutation:
    """Two requests exchanged, or another session's messages under the right head."""
    if provider not in ("openai-responses", "anthropic") or rng.random() < 0.7:
        return _in_place_of(rng, scene.neighbour, scene, provider)
    payload = rendered(scene, provider)
    key = "input" if provider == "openai-responses" else "messages"
    payload[key] = scene.neighbour.render(provider, cache=False)[key]  # type: ignore[arg-type]
    return Mutation(payload, scene.others)


def over_budget(rng: random.Random, scene: Scene, provider: str) -> Mutation:
    """The whole history besides the envelope, a document pasted whole, every message twice."""
    manual = "\n".join(f"{n}. Step {n} of the manual: check valve {n * 7 % 97}, then note it." for n in range(170))
    size = scene.expected.section("dynamic").budget_tokens
    manual = manual * (1 + size // 1500)
    if provider == "text":
        pieces = spans(scene, rendered(scene, provider)["prompt"])
        label = f"<{scene.expected.nonce} dynamic user §1>\n"
        if rng.random() < 0.5:
            pieces.insert(len(pieces) - 1, label + manual + "\n")
        else:
            opening, text, end = body(pieces[-1])
            pieces[-1] = opening + text + "\n" + manual + end
        return Mutation({"prompt": "".join(pieces)})
    payload = rendered(scene, provider)
    wires, start = turns(payload, provider), said(payload, provider)
    what = rng.choice(("history", "document", "appended"))
    if what == "history":
        full: list[Wire] = []
        while len(json.dumps(full)) < 8 * size:
            texts = [w["content"] for w in scene.history if w["role"] == "user" and isinstance(w["content"], str)]
            replies = [w["content"] for w in scene.history if w["role"] == "assistant" and w.get("content")]
            full += [_user(provider, text) for pair in zip(texts, replies, strict=False) for text in pair]
        wires[start:start] = full
    elif what == "document":
        wires.insert(rng.randrange(start, len(wires) + 1), _user(provider, manual))
    else:
        slot = rng.choice(slots(payload, provider, head=False))
        slot.put(slot.text + "\n" + manual)
    return Mutation(payload)


def re_encoded(rng: random.Random, scene: Scene, provider: str) -> Mutation:
    """A layer that normalizes, escapes, trims or decorates text on its way."""

    def invisible(text: str) -> str:
        at = rng.randrange(len(text) + 1)
        return text[:at] + rng.choice("\u200b\u200d\u2060\ufeff\u00ad\u202e\U000e0041") + text[at:]

    changes: list[Callable[[str], str]] = [
        lambda text: unicodedata.normalize("NFD", text),
        lambda text: unicodedata.normalize("NFKC", text),
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.replace(" ", "\u00a0"),
        lambda text: " ".join(text.split()),
        lambda text: text + "\n",
        lambda text: text + "  ",
        invisible,
        html.escape,
        lambda text: json.dumps(text)[1:-1],
        lambda text: text.encode().decode("latin-1"),
        lambda text: text.translate({0x201C: '"', 0x201D: '"', 0x2019: "'", 0x2013: "-"}),
        lambda text: text.replace("\n", "\\n"),
    ]
    whole = rng.random() < 0.3
    while True:
        change = rng.choice(changes)
        sent = rewrite(rng, scene, provider, change, all=whole)
        if sent != rendered(scene, provider):
            return Mutation(sent)


def replayed_envelope(rng: random.Random, scene: Scene, provider: str) -> Mutation:
    """A retry that sends the request of an earlier call."""
    earlier = [
        one
        for one in scene.earlier
        if one.render(provider, cache=False) != scene.expected.render(provider, cache=False)
    ]  # type: ignore[arg-type]
    return _in_place_of(rng, rng.choice(earlier), scene, provider)


OPERATORS: dict[str, Operator] = {
    operator.__name__: operator
    for operator in (
        missing_section,
        extra_section,
        injected_text,
        altered_text,
        reordered,
        truncated,
        stale_version,
        wrong_tenant,
        wrong_session,
        over_budget,
        re_encoded,
        replayed_envelope,
    )
}
