"""What happens in a simulated run: each actor does one thing with one process, and tells what was acknowledged.

    @actor(weight=3)
    def reader(run: Run, process: Process) -> None: ...

An error of the store ends the actor's step, and so does the death of its process. `Run.acknowledge` comes before
anything is taken for acknowledged: a process that has died acknowledges nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from random import Random
from tempfile import mkdtemp
from typing import Any

from ctxsteward.envelope import Budgets, EnvelopeBuilder, Profile, verify_seal
from ctxsteward.envelope.history.session import Session
from ctxsteward.envelope.history.tool_groups import NewMessage
from ctxsteward.envelope.store import Store
from ctxsteward.envelope.testing import CharTokenizer, FirstLine
from ctxsteward.envelope.tokens.tokenizer import Counter
from ctxsteward.evals.suites.kit.faulty_objects import Crashed
from ctxsteward.schemas import Erased, InputError, ReferenceNotFound, StoreUnavailable
from ctxsteward.schemas.errors import Fenced, StoreError, VersionTaken
from ctxsteward.schemas.profile import MetaRecord, ProfileEntry
from ctxsteward.steward.harvest.batches import Batch, BatchFailure, BatchResult, Harvest
from ctxsteward.steward.night.run import run_night
from ctxsteward.store.erasure.forget import apply_tombstones, forget
from ctxsteward.store.journal.port import SessionKey
from ctxsteward.store.maintenance.gc import gc
from ctxsteward.store.profiles.versions import WriterLease

from ..steward.night.doubles import Lines, shell, some, write
from .world import TENANT, Process, World

SESSIONS, PRINCIPALS = ("s", "t", "u"), (None, "ann", "bob")
"""Session `s` is never forgotten: its first message is what records of profiles cite."""
DESK = "desk"
"""The profile that committers change; nights have another one."""
GRACE_SECONDS = 20_000.0
LEASE_SECONDS = 1_500.0
NIGHTS = {"2026-11-22": 6, "2026-11-23": 9}
"""Transcripts that there are by each night."""
CHARS = Counter(CharTokenizer())
NOTE = {"who": "ops", "why": "a round", "when": "2026-11-22"}


@dataclass(kw_only=True)
class Said:
    """A message that somebody sent, once or again."""

    id: str
    session: str
    principal: str | None
    batch: tuple[str, ...] = ()
    """Ids that were sent in one call."""
    hosts: list[str] = field(default_factory=list)
    """Where it was sent, in order."""
    acknowledged: list[str] = field(default_factory=list)
    """Hosts that have acknowledged it, in order."""
    is_refused: bool = False

    @property
    def canary(self) -> str:
        """Text that stands nowhere else."""
        return f"CANARY{self.id}X"

    @property
    def text(self) -> str:
        return f"{self.canary} is what was said, " + "and some words more. " * 3

    @property
    def new(self) -> NewMessage:
        return NewMessage(message={"role": "user", "content": self.text}, id=self.id, principal=self.principal)


@dataclass(kw_only=True)
class Commit:
    """A commit of the profile, as its writer saw it."""

    id: str
    began: int
    records: tuple[MetaRecord, ...]
    parent: int | None
    epoch: int | None
    number: int = 0
    """Its version, once acknowledged."""
    ended: int = 0
    has_failed: bool = False
    tries: int = 0
    is_unheard: bool = False
    """Whether its caller lost the answer and will ask again."""


@dataclass(kw_only=True)
class Erasing:
    """An erasure that was begun."""

    what: dict[str, str]
    host: str
    covered: list[str] = field(default_factory=list)
    """Ids of messages that the host had acknowledged before."""
    is_done: bool = False


class Run:
    """One run: its world, and everything that was acknowledged in it."""

    def __init__(self, world: World) -> None:
        self.world, self.random = world, Random(f"actors {world.seed}")
        self.ticks = 0
        self.said: dict[str, Said] = {}
        self.order: dict[str, list[str]] = {}
        """Ids in the order in which a host has acknowledged them."""
        self.envelopes: dict[str, tuple[str, Any]] = {}
        """Session and rendered request by the address of an envelope."""
        self.commits: list[Commit] = []
        self.epochs: list[int] = [0]
        """Of the desk's leases that somebody was given."""
        self.erasures: list[Erasing] = []
        self.destroyed: set[str] = set()
        """Subjects whose keys were gone when an erasure was done."""
        self.nights: dict[str, str] = {}
        """Digest by date."""
        self.has_partial_night = False
        self.is_night = False
        self.branches: dict[str, str] = {}
        """Parent by fork, as far as a fork may have been made."""
        self.wrong: list[str] = world.wrong
        self.meanwhile: Actor | None = None
        """What another process does if it goes between in this step; None for anything."""
        self.most_erasures = 2
        """Erasures of this run up to which one more may begin; more in the midst of another process's step."""

    def acknowledge(self, process: Process) -> None:
        """Raise `Crashed` if the process has died: nobody has its answer."""
        if process.is_dead:
            raise Crashed(process.name)

    def require(self, holds: bool, what: str) -> None:
        if not holds:
            self.wrong.append(what)

    def session(self, process: Process, id: str) -> Session:
        if id not in process.sessions:
            process.sessions[id] = process.store.session(id, tenant=TENANT, counter=CHARS, system="Be brief.")
        return process.sessions[id]

    def standing(self, store: Store, said: Said) -> Iterator[tuple[str, Any]]:
        """Yield the logs in a journal that hold this message, with its record."""
        for log in store.journal.sessions(TENANT):
            if log == said.session or log.startswith(f"{said.session}-fork-e"):
                for record in store.journal.read(self.key(log), 0):
                    if record.id == said.id:
                        yield log, record

    @staticmethod
    def key(session: str) -> SessionKey:
        return SessionKey(TENANT, session)

    def is_touched(self, session: str) -> bool:
        """Return whether an erasure was begun that may reach this session."""
        line = {session.partition("-fork-e")[0]}
        while parents := {self.branches[name] for name in line if name in self.branches} - line:
            line |= parents
        return any(erasing.what.get("session", session) in {session, *line} for erasing in self.erasures)


Actor = Callable[[Run, Process], None]
ACTORS: dict[Actor, float] = {}


def actor(weight: float) -> Callable[[Actor], Actor]:
    def add(function: Actor) -> Actor:
        ACTORS[function] = weight
        return function

    return add


@actor(36)
def chat(run: Run, process: Process) -> None:
    """Append a message or a batch; or send again what nobody has acknowledged."""
    random = run.random
    open_ends = [said for said in run.said.values() if not (said.acknowledged or said.is_refused)]
    if open_ends and random.random() < 0.4:
        sent = [random.choice(open_ends)]
    else:
        count = 3 if random.random() < 0.25 else 1
        names = [*SESSIONS, *run.branches]
        session, principal = random.choice(names), random.choice(PRINCIPALS)
        ids = tuple(f"{len(run.said) + n:03d}" for n in range(count))
        sent = [Said(id=id, session=session, principal=principal, batch=ids if count > 1 else ()) for id in ids]
    say(run, process, sent)


def say(run: Run, process: Process, sent: list[Said]) -> None:
    """Send these messages in one call."""
    run.said |= {said.id: said for said in sent}
    for said in sent:
        said.hosts.append(process.host.name)
    try:
        session = run.session(process, sent[0].session)
        entries = session.extend([said.new for said in sent]) if len(sent) > 1 else [_append(session, sent[0])]
    except Erased:
        for said in sent:
            said.is_refused = True
        raise
    run.acknowledge(process)
    for said, entry in zip(sent, entries, strict=True):
        run.require(entry.event.id == said.id, f"message {said.id} was answered by {entry.event.id}")
        said.acknowledged.append(process.host.name)
        run.order.setdefault(process.host.name, []).append(said.id)
    run.world.note("said", *(f"{said.id}={entry.ordinal}" for said, entry in zip(sent, entries, strict=True)))


def _append(session: Session, said: Said) -> Any:
    return session.append(said.new)


@actor(8)
def opener(run: Run, process: Process) -> None:
    """Open a session anew, which takes it over."""
    id = run.random.choice((*SESSIONS, *run.branches))
    process.sessions.pop(id, None)
    run.session(process, id)


@actor(7)
def brancher(run: Run, process: Process) -> None:
    """Fork a session, at its end or at a message."""
    if len(run.branches) < 3:
        parent = run.random.choice(SESSIONS)
        session = run.session(process, parent)
        if len(session):
            branch = f"{parent}-branch{len(run.branches)}"
            run.branches[branch] = parent
            at = None if run.random.random() < 0.5 else run.random.randint(1, len(session))
            process.sessions[branch] = session.fork(at=at, id=branch)


@actor(32)
def drain(run: Run, process: Process) -> None:
    """One pass of the write-behind."""
    behind = process.store.write_behind
    if behind is not None:
        behind.drainer.hurry = run.random.random() < 0.4
        behind.drainer.run_once()


@actor(22)
def build(run: Run, process: Process) -> None:
    """Build an envelope, which may compact, and render it."""
    session = run.session(process, run.random.choice(SESSIONS))
    envelope = builder(process.name).build(session)
    run.acknowledge(process)
    run.require(
        envelope.seal is not None and verify_seal(process.store.keys, envelope.seal, envelope), "a seal is not valid"
    )
    run.envelopes[envelope.address] = (session.id, envelope.render("openai-chat"))
    run.world.note("built", envelope.address[:8])


@cache
def builder(process: str) -> EnvelopeBuilder:
    """Each process has a builder of its own, as one with locks that another process cannot hold."""
    budgets = Budgets(system_tokens=2_000, meta_tokens=2_000, dynamic_tokens=200)
    return EnvelopeBuilder(tokenizer=CharTokenizer(), budgets=budgets, summarizer=FirstLine())


@actor(10)
def reader(run: Run, process: Process) -> None:
    """Read what this host has acknowledged."""
    here = [said for said in run.said.values() if process.host.name in said.acknowledged]
    here = [said for said in here if not run.is_touched(said.session)]
    if here:
        said = run.random.choice(here)
        text = _read(run, process, said) or _read(run, process, said)  # another process may have moved it meanwhile
        is_kept = not run.is_touched(said.session)  # nor was the session forgotten while it was read
        run.require(text == said.text or not is_kept, f"message {said.id} was acknowledged here and reads {text!r:.40}")


def _read(run: Run, process: Process, said: Said) -> str:
    """Return the message's words, or "" where it is not."""
    for log, record in run.standing(process.store, said):
        with suppress(ReferenceNotFound):
            text = process.store.at(TENANT, log).resolve(record.ordinal).text
            if text == said.text:
                return text
    return ""


@actor(8)
def eraser(run: Run, process: Process) -> None:
    """Forget a session or a person; finish an erasure that was cut off."""
    unfinished = [erasing for erasing in run.erasures if not erasing.is_done and erasing.host == process.host.name]
    if unfinished:
        erasing = unfinished[0]
    elif run.ticks > 12 and len(run.erasures) < run.most_erasures:
        what = run.random.choice(({"session": "u"}, {"principal": "ann"}, {"principal": "bob"}, {"session": "t"}))
        erasing = Erasing(what=what, host=process.host.name)
        erasing.covered = [said.id for said in run.said.values() if _covers(run, erasing, said)]
        if not erasing.covered:
            return
        run.erasures.append(erasing)
    else:
        return
    try_to_forget(run, process, erasing)


def _covers(run: Run, erasing: Erasing, said: Said) -> bool:
    if erasing.host not in said.acknowledged:
        return False
    whole = erasing.what.get("session")
    if whole is not None:
        return whole == said.session
    return said.principal == erasing.what["principal"]


def try_to_forget(run: Run, process: Process, erasing: Erasing) -> None:
    try:
        done = forget(process.store, tenant=TENANT, **erasing.what, **NOTE)
    except InputError:  # another host's erasure was first
        run.acknowledge(process)
        run.world.note("nothing to forget")
        erasing.is_done = True
        return
    run.acknowledge(process)
    left = sorted(
        {finding.kind for finding in done.findings} - {"ledger_elsewhere"}
    )  # these nights have no ledger file
    erasing.is_done = not left
    if not run.world.is_bucket:  # a bucket may still apply a late write of a key
        run.destroyed |= run.world.tombstones() - run.world.keys()
    if run.random.random() < 0.3:
        run.world.armed.setdefault("power cut", 0)  # what was deleted stays so
    run.world.note("forgotten", *erasing.what.values(), done.messages, *left)


@actor(18)
def committer(run: Run, process: Process) -> None:
    """Commit a version, with a lease or without; or repeat a commit whose outcome is unknown."""
    random, versions = run.random, process.store.profiles(DESK, tenant=TENANT)
    unknown = [commit for commit in run.commits if commit.is_unheard or not (commit.number or commit.has_failed)]
    if unknown and random.random() < 0.6:
        commit = random.choice(unknown)
    else:
        epoch = _taken(run, process) if random.random() < 0.7 else None
        head = versions.head()
        n = len(run.commits)
        records = tuple(MetaRecord(id=f"m{n}-{i}", text=f"Fact {i} of commit {n}.", sources=("s§1",)) for i in range(2))
        newest = head.number if head else 0
        parent = random.choice((None, newest, newest, max(0, newest - 1)))
        commit = Commit(id=f"{n:032x}", began=run.ticks, records=records, parent=parent, epoch=epoch)
        run.commits.append(commit)
    is_first_try = commit is run.commits[-1] and commit not in unknown
    commit.tries += 1
    lists, given = run.world.fired["stale list"], max(run.epochs)
    try:
        version = versions.commit(
            desk(commit.records),
            parent=commit.parent,
            epoch=commit.epoch,
            commit_id=commit.id,
            promotion={"approvals": []},
            **NOTE,
        )
    except (VersionTaken, Fenced, StoreUnavailable) as error:
        run.acknowledge(process)
        commit.has_failed = is_first_try and commit.tries == 1  # else another process has repeated it meanwhile
        is_refused = isinstance(error, VersionTaken | Fenced) and run.world.fired["stale list"] == lists
        run.require(not (commit.number and is_refused), f"commit {commit.id} has landed and is refused: {error}")
        raise
    run.acknowledge(process)
    run.require(commit.number in (0, version.number), f"commit {commit.id} is {commit.number} and {version.number}")
    if is_first_try and commit.epoch is not None and run.world.fired["stale list"] == lists:
        run.require(commit.epoch >= given, f"epoch {commit.epoch} commits after epoch {given} was given")
    if not commit.number:
        commit.number, commit.ended = version.number, run.ticks
    commit.is_unheard = random.random() < 0.15
    run.world.note("committed", commit.id[-2:], version.number)


@actor(8)
def lessee(run: Run, process: Process) -> None:
    """Take or renew the lease; or release it late, when another writer may hold it."""
    if process.lease is not None and run.random.random() < 0.4:
        process.lease.release()
    else:
        _taken(run, process)


@actor(5)
def racer(run: Run, process: Process) -> None:
    """Write while another process forgets somebody between the reading and the write."""
    run.world.armed["other process between"], run.meanwhile = run.random.choice((0, 0, 1, 2)), eraser
    run.random.choice((build, build, build, chat, drain))(run, process)


def desk(records: tuple[MetaRecord, ...]) -> Profile:
    persona = (ProfileEntry(id="voice", text="You answer for the support desk."),)
    return Profile(name=DESK, persona=persona, meta=records)


def _taken(run: Run, process: Process) -> int | None:
    """Take the lease, renew it, or go on with an earlier one as a writer that has paused."""
    if len(run.epochs) > 1 and run.random.random() < 0.4:
        return run.random.choice(run.epochs[1:])
    clock = run.world.clock_of(process)
    if process.lease is None:
        process.lease = WriterLease(process.store, DESK, TENANT, owner=process.owner, clock=clock)
    moment = clock()
    lease = process.lease.take(LEASE_SECONDS)
    if lease is None:
        with run.world.quiet():  # a stale listing would show an older lease than the one that was in the way
            holder = process.lease.holder()
        run.require(holder is None or holder.expires_seconds > moment, "a lease that has expired was not given")
        return None
    run.acknowledge(process)
    run.epochs.append(lease.epoch)
    if run.random.random() < 0.2:
        process.lease.release()
    return lease.epoch


@actor(6)
def night(run: Run, process: Process) -> None:
    """Run the night that is due, on a process that may not be the one of the last attempt."""
    date = next((date for date in NIGHTS if date not in run.nights), None)
    if date is None and run.random.random() < 0.3:
        date = list(NIGHTS)[-1]  # once more
    if date is None or (process.store.write_behind is None and run.random.random() < 0.3):
        return

    def failed() -> None:  # also of a night that dies once it has committed what it has
        run.has_partial_night = True

    run.is_night = True
    try:
        fails = 0.0 if run.world.is_quiet else 0.2
        more = {"clock": run.world.clock_of(process), "owner": process.owner}
        report = night_at(process.store, date, run.random, fails, failed, **more)
    finally:
        run.is_night = False
    run.acknowledge(process)
    if report.outcome != "busy" and not report.failed_batches:
        run.nights[date] = report.final
        run.world.note("night", date, report.final[:8])


def night_at(
    store: Store,
    date: str,
    random: Random | None = None,
    fails: float = 0.0,
    failed: Callable[[], None] = lambda: None,
    **more: Any,
) -> Any:
    """Run a night, of which this share of the batches fails."""
    lines = Lines(store, transcripts(NIGHTS[date]))
    harvest = _serial(lines.harvest, random or Random(0), fails, failed)
    return run_night(shell(store, lines, night=date, run=harvest, abandoned=lambda owner: True, **more))


def _serial(harvest: Harvest, random: Random, fails: float, failed: Callable[[], None]) -> Any:
    """Batches one after the other, without a thread."""

    def run(batches: Iterable[Batch]) -> Iterator[BatchResult | BatchFailure]:
        for batch in batches:
            try:
                if random.random() < fails:
                    raise StoreUnavailable("the process that harvests has died")
                yield harvest(batch)
            except StoreError as error:
                failed()
                yield BatchFailure(batch, type(error).__name__)

    return run


@cache
def transcripts(count: int) -> Path:
    folder = Path(mkdtemp(prefix="transcripts-"))
    write(folder, some(count))
    return folder


@actor(6)
def collector(run: Run, process: Process) -> None:
    """Remove garbage, but not in the midst of a night: it would miss artifacts of a night that failed long ago."""
    if run.is_night:
        return
    before = run.world.now_seconds() - GRACE_SECONDS
    young = {info.key for info in run.world.bucket.list("blobs/") if info.modified_seconds > before}
    gc(process.store, now=run.world.now_seconds(), grace_seconds=GRACE_SECONDS)
    left = {info.key for info in run.world.bucket.list("blobs/")}
    run.require(young <= left, f"{len(young - left)} blobs were collected before their time")


@actor(3)
def listener(run: Run, process: Process) -> None:
    """Erase here what another machine has forgotten."""
    apply_tombstones(process.store, TENANT)
