"""Stores with people in them, and a scan of every byte that a store has on disk or in its objects.

Everything that Ann says holds a canary, whatever way she says it: text, tool calls and results appended under her, an
image, her participant's name. The first-line summarizer copies it into bullets, the accounting into losses, the test
into notes; Bob's and the session's own texts hold canaries of their own.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ctxsteward.envelope import Budgets, EnvelopeBuilder, Session, Store, open_store
from ctxsteward.envelope.history.tool_groups import NewMessage
from ctxsteward.envelope.testing import CharTokenizer, FirstLine, WordOverlap
from ctxsteward.envelope.tokens.tokenizer import Counter
from ctxsteward.store.crypto.keyring import memory_keys
from ctxsteward.store.journal.memory import MemoryJournal
from ctxsteward.store.objects.memory import MemoryObjects

from ..doubles import stored

TOLD = {"who": "dpo", "when": "2026-11-22", "why": "request 7"}
CHARS = Counter(CharTokenizer())
ANN = ("CANARYann8472", "Канарейка-Анн-5519")
BOB = ("CANARYbob3316",)
OWN = ("CANARYown6024",)
NOTE = ("CANARYnote7745",)


def forms_of(word: str) -> Iterator[bytes]:
    """The encodings in which a word may lie around."""
    data = word.encode()
    yield data
    yield from (word.encode("utf-16-le"), word.encode("utf-16-be"))
    yield json.dumps(word)[1:-1].encode()
    yield from (data.hex().encode(), data.hex().upper().encode())
    for shift in range(3):  # base64 of a text that holds it: the middle does not depend on what stands around it
        coded = base64.b64encode(b"\0" * shift + data)
        yield coded[4:-4]


def hits(contents: dict[str, bytes], words: tuple[str, ...]) -> dict[str, list[str]]:
    """In which files or objects each word is found, in any form."""
    found = {
        word: [name for name, data in contents.items() if any(form in data for form in forms_of(word))]
        for word in words
    }
    return {word: names for word, names in found.items() if names}


def contents_of(store: Store, root: Path | None = None) -> dict[str, bytes]:
    """Every object, every file below the store's folder (the journal's too)."""
    found = stored(store.objects)
    for path in sorted(root.rglob("*")) if root is not None else ():
        if path.is_file():
            found[str(path)] = path.read_bytes()
    return found


def builder(dynamic_tokens: int = 1_500, **more: Any) -> EnvelopeBuilder:
    budgets = Budgets(dynamic_tokens=dynamic_tokens)
    return EnvelopeBuilder(tokenizer=CharTokenizer(), budgets=budgets, summarizer=FirstLine(), **more)


def say(session: Session, name: str, words: tuple[str, ...], turn: int) -> None:
    """One turn of somebody, in every way of saying something."""
    principal = None if name == "own" else name
    text = f"{words[turn % len(words)]} said: my number is {turn}00{turn}, see https://example.org/{words[0]}/{turn}"
    call = {
        "id": f"call_{name}_{turn}",
        "type": "function",
        "function": {"name": "look_up", "arguments": json.dumps({"q": words[0]})},
    }
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + _base64(words[0])}}
    said = (
        {"role": "user", "name": words[0], "content": text},
        {"role": "user", "content": [{"type": "text", "text": words[-1]}, image]},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call["id"], "content": f"error: {words[0]}"},
        {"role": "assistant", "content": "noted"},
    )
    session.extend(NewMessage(message=wire, principal=principal) for wire in said)


def _base64(text: str) -> str:
    return base64.b64encode((text * 3).encode()).decode()


def fill(store: Store, *, turns: int = 8) -> None:
    """Tenant acme: s-1 with all three and two forks, s-2 with Ann and Bob, s-3 without Ann; tenant other: s-1 again."""
    made = builder(selector=WordOverlap())
    for tenant in ("acme", "other"):
        session = store.session("s-1", tenant=tenant, system="You help.", counter=CHARS)
        session.note("plan", "before anybody spoke")
        for turn in range(turns):
            for name, words in (("own", OWN), ("ann", ANN), ("bob", BOB)):
                say(session, name, words, turn)
                made.build(session)
            session.note("plan", f"{NOTE[0]} {ANN[0]}")
        child = session.fork(at=len(session) - 3, id="s-1-child")
        say(child, "bob", BOB, 99)
        made.build(child)
        say(child.fork(id="s-1-grandchild"), "own", OWN, 98)
    for name, speakers in (("s-2", ("ann", "bob")), ("s-3", ("bob", "own"))):
        session = store.session(name, tenant="acme", counter=CHARS)
        for turn in range(turns):
            for speaker in speakers:
                say(session, speaker, {"ann": ANN, "bob": BOB, "own": OWN}[speaker], turn)
                made.build(session)


@contextmanager
def file_store(tmp_path: Path) -> Iterator[tuple[Store, Path]]:
    with open_store(f"file:{tmp_path / 'store'}") as store:
        yield store, tmp_path / "store"


@contextmanager
def memory_store(tmp_path: Path) -> Iterator[tuple[Store, None]]:
    with open_store("memory:") as store:
        yield store, None


@contextmanager
def drained_store(tmp_path: Path) -> Iterator[tuple[Store, Path]]:
    """A journal outside the store, drained into a folder of objects, as it is into a bucket."""
    with open_store(f"file:{tmp_path / 'store'}", journal=tmp_path / "journal") as store:
        yield store, tmp_path


STORES: dict[str, Callable[[Path], Any]] = {
    "file": file_store,
    "memory": memory_store,
    "drained": drained_store,
}


def machine(objects: MemoryObjects, keys: Any) -> Store:
    """One of several machines that share objects and keys."""
    return Store(MemoryJournal(drains=True), objects, keys, uri="memory:", write_behind=True)


@contextmanager
def two_machines() -> Iterator[tuple[Store, Store]]:
    objects, keys = MemoryObjects(), memory_keys()
    with machine(objects, keys) as one, machine(objects, keys) as two:
        yield one, two
