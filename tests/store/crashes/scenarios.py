"""What a process is doing when it dies. Every step may be repeated: messages have ids, commits their commit ids.

A scenario `prepare`s a place once, `run`s there, tells what it was acknowledged, and knows what must hold: `check`
after any crash and, with `whole`, after it has come to its end. The same names and texts in every run.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

from ctxsteward.envelope import Budgets, EnvelopeBuilder, Profile, Session, Store
from ctxsteward.envelope.building.snapshots import Snapshots
from ctxsteward.envelope.testing import CharTokenizer, FirstLine
from ctxsteward.envelope.tokens.tokenizer import Counter
from ctxsteward.schemas.profile import MetaRecord, ProfileEntry
from ctxsteward.store.erasure.forget import forget
from ctxsteward.store.maintenance.gc import gc
from ctxsteward.store.names import data_key_name

from .places import TENANT, Machines, drain

Tell = Callable[..., None]
CHARS = Counter(CharTokenizer())
NAME = "support"
NOTE: dict[str, Any] = {"who": "ops", "why": "round", "when": "2026-11-22"}
AGREED: dict[str, Any] = {**NOTE, "promotion": {"approvals": []}}
"""Records alone change, which nobody has to approve."""
FAR_SECONDS = 4e9
"""Unix time by which all garbage is old."""


class Scenario:
    places: ClassVar[tuple[str, ...]]
    """Kinds of places that it makes sense at."""

    def prepare(self, machines: Machines, tell: Tell) -> None:
        """What is there before it runs: nothing."""

    def run(self, machines: Machines, tell: Tell) -> None:
        raise NotImplementedError


def builder(dynamic_tokens: int = 560) -> EnvelopeBuilder:
    budgets = Budgets(system_tokens=2_000, meta_tokens=2_000, dynamic_tokens=dynamic_tokens)
    return EnvelopeBuilder(tokenizer=CharTokenizer(), budgets=budgets, summarizer=FirstLine())


def opened(store: Store, name: str = "s") -> Session:
    return store.session(name, tenant=TENANT, counter=CHARS, system="Be brief.")


def text_of(id: str) -> str:
    """What the message with this id says, in every run."""
    return f"{id} says: " + f"words of {id}, and some more. " * 3


def wire(id: str) -> dict[str, str]:
    return {"role": "user" if id[-1] in "02468" else "assistant", "content": text_of(id)}


def append(session: Session, id: str, tell: Tell, machine: str = "a", principal: str | None = None) -> None:
    entry = session.append(wire(id), id=id, principal=principal)
    tell("append", machine, session.id, id, entry.ordinal)


def build(session: Session, tell: Tell, machine: str = "a") -> None:
    envelope = builder().build(session)
    tell("build", machine, session.id, envelope.address, [report.artifact for report in envelope.reports])


# -- sessions ----------------------------------------------------------------------------------------------------


class Conversation(Scenario):
    """Appends, a batch, builds of which one compacts, a note, a fork."""

    places = ("file", "drained")

    def run(self, machines: Machines, tell: Tell) -> None:
        session = opened(machines())
        for n in range(6):
            append(session, f"m{n}", tell)
        build(session, tell)
        batch = [f"m{n}" for n in range(6, 12)]
        entries = session.extend(_new(id) for id in batch)
        for id, entry in zip(batch, entries, strict=True):
            tell("append", "a", "s", id, entry.ordinal)
        build(session, tell)
        if "plan" not in session.state.notes:
            session.note("plan", "- one step")
        append(session, "m12", tell)
        if not machines().exists("s-branch", tenant=TENANT):
            session.fork(at=9, id="s-branch")
        branch = machines().session("s-branch", tenant=TENANT, counter=CHARS)
        append(branch, "b0", tell)
        build(branch, tell)
        append(session, "m13", tell)
        build(session, tell)


def _new(id: str) -> Any:
    from ctxsteward.envelope.history.tool_groups import NewMessage

    return NewMessage(message=wire(id), id=id)


class Drain(Scenario):
    """Segments of a session, its fork and its manifests; another machine takes it over; what was not drained moves."""

    places = ("drained", "s3")

    def run(self, machines: Machines, tell: Tell) -> None:
        a = machines("a")
        session = opened(a)
        for n in range(5):
            append(session, f"m{n}", tell)
        build(session, tell)
        drain(a)
        append(session, "m5", tell)
        build(session, tell)
        if not a.exists("s-branch", tenant=TENANT):
            session.fork(at=3, id="s-branch")
        append(a.session("s-branch", tenant=TENANT, counter=CHARS), "b0", tell)
        drain(a)
        append(session, "m6", tell)  # never drained: the next line takes the session away
        b = machines("b")
        other = opened(b)
        append(other, "o0", tell, "b")
        build(other, tell, "b")
        drain(b)
        drain(a)
        append(session, "m8", tell)  # a writer that has not heard of it
        drain(a)
        drain(b)


# -- governed state ----------------------------------------------------------------------------------------------


def profile(number: int) -> Profile:
    """Content of the `number`-th version; the third is the first again."""
    limit = {1: 100, 2: 150, 3: 100}[number]
    return Profile(
        name=NAME,
        persona=(ProfileEntry(id="voice", text="You answer for the support desk."),),
        policies=(ProfileEntry(id="refund", text="Refunds up to 100 EUR.", value=100, unit="EUR"),),
        meta=(
            MetaRecord(id="seat", text="Prefers window seats on trips.", sources=("s§1", "s§3")),
            MetaRecord(id="money", text=f"Reads invoices number {limit} in German.", sources=("s§5",)),
        ),
    )


class Commits(Scenario):
    """Two commits, each with its records first and the version last, and a rollback."""

    places = ("file", "s3")

    def run(self, machines: Machines, tell: Tell) -> None:
        versions = machines().profiles(NAME, tenant=TENANT)
        for number in (1, 2):
            made = versions.commit(profile(number), commit_id=f"{number}" * 32, **AGREED)
            tell("version", made.number)
        made = versions.rollback(1, commit_id="3" * 32, **NOTE)
        tell("version", made.number)


class Backfill(Scenario):
    """The head of a profile as a snapshot, and another one behind the next version."""

    places = ("file", "s3")

    def prepare(self, machines: Machines, tell: Tell) -> None:
        machines().profiles(NAME, tenant=TENANT).commit(profile(1), commit_id="1" * 32, **AGREED)

    def run(self, machines: Machines, tell: Tell) -> None:
        versions, snapshots = machines().profiles(NAME, tenant=TENANT), Snapshots(machines(), TENANT)
        tell("version", 1)
        taken = snapshots.take(versions.at(1), builder(), **WHO) if not list(snapshots.history(NAME)) else None
        tell("snapshot", taken.number if taken else 1)
        made = versions.commit(profile(2), commit_id="2" * 32, **AGREED)
        tell("version", made.number)
        tell("snapshot", snapshots.take(made, builder(), **WHO).number)


WHO = {"who": "backfill", "when": "2026-11-22"}


class Collect(Scenario):
    """Garbage of every kind, between things that something refers to."""

    places = ("file", "s3")

    def prepare(self, machines: Machines, tell: Tell) -> None:
        Commits().run(machines, tell)
        store, vault = machines(), machines().vault(TENANT)
        for n in range(4):
            vault.put(f"subject {n}", "meta", f"an orphan {n}".encode())
        key = data_key_name(TENANT, vault.subject_address("subject 1"))
        kept = store.objects.get(key)
        vault.destroy_key("subject 1", who="dpo", when="2026-11-22", why="asked")
        store.objects.put(key, kept)  # as an erasure leaves it that was cut off in its middle
        store.journal.see(f"tombstones/{TENANT}", 1)
        if machines.place.uri:
            store.objects.put("probe/0123456789abcdef", b"tried")
        else:
            folder = Path(machines.place.folder, "store", "objects", "blobs")
            (folder / f"x.{'0' * 16}.tmp").write_bytes(b"half of")

    def run(self, machines: Machines, tell: Tell) -> None:
        for number in (1, 2, 3):
            tell("version", number)
        gc(machines(), now=FAR_SECONDS, grace_seconds=0)
        tell("collected")


# -- erasure -----------------------------------------------------------------------------------------------------


def say(session: Session, id: str, principal: str, tell: Tell) -> None:
    word = WORDS[principal]
    entry = session.append({"role": "user", "content": f"{word} {text_of(id)}"}, id=id, principal=principal)
    tell("append", "a", session.id, id, entry.ordinal)


WORDS = {"ann": "CANARYann8472", "bob": "CANARYbob3316"}
ANN = MetaRecord(id="ann", text=f"The caller named {WORDS['ann']} is in a hurry.", sources=("s§1",))
BOTH = MetaRecord(id="both", text="Both callers want window seats.", sources=("s§1", "t§1"))


class ForgetSession(Scenario):
    """A session with two principals, compactions, a fork and a recommendation made from it."""

    places = ("file", "drained", "s3")
    what: ClassVar[dict[str, Any]] = {"session": "s"}

    def prepare(self, machines: Machines, tell: Tell) -> None:
        store = machines()
        session, other = opened(store), opened(store, "t")
        for n in range(3):
            say(session, f"m{n}", "ann", tell)
            say(session, f"n{n}", "bob", tell)
            build(session, tell)
        say(session.fork(at=3, id="s-branch"), "b0", "bob", tell)
        say(other, "t0", "bob", tell)
        say(other, "t1", "ann", tell)
        build(other, tell)
        governed = profile(1).model_copy(update={"meta": (ANN, BOTH)})
        store.profiles(NAME, tenant=TENANT).commit(governed, commit_id="1" * 32, **AGREED)
        drain(store)

    def run(self, machines: Machines, tell: Tell) -> None:
        forget(machines(), tenant=TENANT, who="dpo", when="2026-11-22", why="asked", **self.what)
        tell("forgotten")


class ForgetPrincipal(ForgetSession):
    """The same store; one of the two goes, from every session."""

    what: ClassVar[dict[str, Any]] = {"principal": "ann"}


SCENARIOS: dict[str, Scenario] = {
    "conversation": Conversation(),
    "drain": Drain(),
    "commits": Commits(),
    "backfill": Backfill(),
    "collect": Collect(),
    "forget-session": ForgetSession(),
    "forget-principal": ForgetPrincipal(),
}
