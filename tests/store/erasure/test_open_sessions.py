"""Sessions, stores and builders that are open while somebody is forgotten elsewhere: none serves it out of memory."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ctxsteward.envelope import Session, Store, open_store
from ctxsteward.envelope.recall.model_tools import answer_search
from ctxsteward.schemas import ContextError, Erased
from ctxsteward.store.erasure.forget import forget
from ctxsteward.store.journal.erasures import Deletion, erasures
from ctxsteward.store.maintenance.fsck import fsck

from .scenes import ANN, BOB, CHARS, NOTE, OWN, TOLD, builder, say

ELSEWHERE = """
import sys, json
from ctxsteward.envelope import open_store
from ctxsteward.store.journal.erasures import Deletion, erasures
from ctxsteward.store.erasure.forget import forget
with open_store(sys.argv[1]) as store:
    forget(store, tenant="acme", **json.loads(sys.argv[2]))
"""


@pytest.fixture
def here(tmp_path: Path) -> Iterator[tuple[Store, Session]]:
    """A store with a session in which Ann, Bob and the session itself have spoken: read, built, and still open."""
    with open_store(f"file:{tmp_path}") as store:
        session = store.session("s-1", tenant="acme", counter=CHARS)
        for turn in range(3):
            for name, words in (("own", OWN), ("ann", ANN), ("bob", BOB)):
                say(session, name, words, turn)
        session.note("plan", f"{NOTE[0]} {ANN[0]}")
        yield store, session


def in_another_store(store: Store, what: dict[str, str]) -> None:
    with open_store(store.uri) as other:
        forget(other, tenant="acme", **what, **TOLD)


def in_another_process(store: Store, what: dict[str, str]) -> None:
    arguments = [sys.executable, "-c", ELSEWHERE, store.uri, json.dumps(what | TOLD)]
    subprocess.run(arguments, check=True, timeout=120)


def interrupted(store: Store, nth: int, do: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Let something be done right before the nth question to this store's journal; return the questions so far."""
    questions: list[str] = []

    def interrupt(name: str, real: Callable[..., object]) -> Callable[..., object]:
        def asked(*of: Any, **more: Any) -> object:
            questions.append(name)
            if len(questions) == nth + 1:
                do()
            return real(*of, **more)

        return asked

    for name in ("checkpoint", "forgotten", "generation", "length", "message", "read"):
        monkeypatch.setattr(store.journal, name, interrupt(name, getattr(store.journal, name)))
    return questions


READINGS: dict[str, Callable[[Any, Session, Session], object]] = {
    "resolve": lambda made, session, fork: [session.resolve(n).wire for n in range(1, len(session) + 1)],
    "one": lambda made, session, fork: session.resolve(6).wire,
    "tool output": lambda made, session, fork: session.tool_output(2).wire,
    "entry": lambda made, session, fork: session.entry(6).message.wire,
    "entries": lambda made, session, fork: [entry.message.wire for entry in session.entries()],
    "build": lambda made, session, fork: made.build(session).render("openai-chat"),
    "preview": lambda made, session, fork: made.preview(session, "and now?").render("openai-chat"),
    "rebuild": lambda made, session, fork: made.rebuild(session).render("openai-chat"),
    "reports": lambda made, session, fork: session.reports(),
    "draft": lambda made, session, fork: [entry.message.wire for entry in session.draft().entries()],
    "search": lambda made, session, fork: answer_search(session, f"{ANN[0]} {ANN[1]} number", shown=frozenset()),
    "a new fork": lambda made, session, fork: [entry.message.wire for entry in session.fork().entries()],
    "its fork": lambda made, session, fork: [entry.message.wire for entry in fork.entries()],
    "its fork's build": lambda made, session, fork: builder(30_000).build(fork).render("openai-chat"),
    "refresh": lambda made, session, fork: session.refresh() or session.state.notes,
}


def said(read: Callable[[], object]) -> str:
    try:
        return str(read())
    except ContextError as error:
        return f"{type(error).__name__}: {error}"


@pytest.mark.parametrize("what", [{"session": "s-1"}, {"principal": "ann"}], ids=["session", "principal"])
@pytest.mark.parametrize("reading", READINGS)
def test_no_reading_of_an_open_session_says_what_was_forgotten_elsewhere(
    here: tuple[Store, Session], what: dict[str, str], reading: str
) -> None:
    store, session = here
    made, fork = builder(), session.fork(at=20)
    made.build(session)
    read = READINGS[reading]
    assert ANN[0] in said(lambda: read(made, session, fork))
    in_another_store(store, what)

    after = said(lambda: read(made, session, fork))

    for word in ANN + NOTE + (BOB + OWN if "session" in what else ()):
        assert word not in after
        assert json.dumps(word)[1:-1] not in after
    assert after.startswith("Erased") is ("session" in what or reading in ("resolve", "one", "tool output"))


@pytest.mark.parametrize("what", [{"session": "s-1"}, {"principal": "ann"}], ids=["session", "principal"])
@pytest.mark.parametrize("of_fork", [False, True], ids=["session", "fork"])
def test_an_erasure_in_the_midst_of_a_build_leaves_no_manifest_of_what_was_forgotten(
    here: tuple[Store, Session], what: dict[str, str], of_fork: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, session = here
    session = session.fork(at=20) if of_fork else session
    real, keep = store.journal, store.journal.put_manifest

    def forgotten_meanwhile(*manifest: Any, **more: Any) -> None:
        monkeypatch.setattr(real, "put_manifest", keep)
        in_another_store(store, what)
        keep(*manifest, **more)

    monkeypatch.setattr(real, "put_manifest", forgotten_meanwhile)
    sent = said(lambda: builder().build(session).render("openai-chat"))

    assert sent.startswith("Erased") is ("session" in what)
    assert not [word for word in ANN + NOTE if word in sent]
    assert fsck(store, tenant="acme", read_data=True).damage == ()
    left = [] if "session" in what else ["s-1"]
    assert [name for name in store.sessions(tenant="acme") if name == "s-1"] == left


@pytest.mark.parametrize("what", [{"session": "s-1"}, {"principal": "ann"}], ids=["session", "principal"])
@pytest.mark.parametrize("id", ["s-1", "fork"])
def test_an_erasure_in_the_midst_of_an_opening_is_told_as_one(
    tmp_path: Path, what: dict[str, str], id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It comes before the first question that an opening asks the journal, then before the second, and so on."""
    for nth in range(100):
        with open_store(f"file:{tmp_path / str(nth)}") as store, open_store(store.uri) as other:
            session = store.session("s-1", tenant="acme", counter=CHARS)
            say(session, "own", OWN, 0)
            say(session, "ann", ANN, 0)
            session.fork(id="fork")
            questions = interrupted(other, nth, partial(in_another_store, store, what), monkeypatch)
            opened = said(lambda: [entry.message.text for entry in other.session(id, tenant="acme").entries()])
            if len(questions) <= nth:
                assert ANN[0] in opened
                break
            if "session" in what:
                assert opened.startswith("Erased")
            else:
                assert ANN[0] not in opened
                assert OWN[0] in opened
    assert nth > 5


def test_what_another_process_has_forgotten_is_erased_here_at_the_next_reading(here: tuple[Store, Session]) -> None:
    store, session = here
    as_it_was = store.at("acme", "s-1", 12)
    in_another_process(store, {"principal": "ann"})

    with pytest.raises(Erased, match="dpo"):
        session.resolve(6)
    assert BOB[0] in session.resolve(11).text
    assert [entry.ordinal for entry in as_it_was.entries() if entry.event.erased] == [6, 7, 8, 9, 10]
    in_another_process(store, {"session": "s-1"})
    for call in (
        lambda: session.resolve(11),
        lambda: session.append({"role": "user", "content": "x"}),
        lambda: session.note("plan", "x"),
        lambda: builder().build(session),
    ):
        with pytest.raises(Erased, match="dpo"):
            call()


def test_a_vault_that_knows_the_key_of_a_forgotten_subject_opens_nothing_with_it(tmp_path: Path) -> None:
    with open_store(f"file:{tmp_path}") as store, open_store(f"file:{tmp_path}") as other:
        store.session("s-1", tenant="acme", counter=CHARS).append({"role": "user", "content": "hi"})
        address = store.vault("acme").put("s-1", "meta", ANN[0].encode())
        assert store.vault("acme").get(address) == ANN[0].encode()
        forget(other, tenant="acme", session="s-1", **TOLD)
        with pytest.raises(Erased, match="dpo"):
            store.vault("acme").get(address)
        with pytest.raises(Erased, match="dpo"):
            store.vault("acme").put("s-1", "meta", b"more")


def test_what_another_process_reads_in_the_midst_of_an_erasure_is_read_anew_behind_it(
    here: tuple[Store, Session],
) -> None:
    """It is noted before and behind what is withdrawn: facts and their keys go between the two."""
    store, _ = here
    noted: list[int] = []

    def eraser(gone: Sequence[Deletion]) -> int:
        noted.append(erasures(store.journal, "acme"))
        return 0

    forget(store, tenant="acme", principal="ann", **TOLD, erasers=(eraser,))
    assert noted == [2, 2]  # an eraser is asked a second time what it had left


def test_a_session_as_it_was_at_a_position_stays_there(here: tuple[Store, Session]) -> None:
    store, _ = here
    before = store.at("acme", "s-1", 12)
    messages = len(before)
    in_another_store(store, {"principal": "ann"})
    assert [entry.ordinal for entry in before.entries()] == list(range(1, messages + 1))
    assert messages == len(before) < len(store.at("acme", "s-1"))
