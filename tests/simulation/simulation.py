"""One run of a seed: steps under faults, rest, and what must hold then.

The record of what was acknowledged is the oracle.
"""

from __future__ import annotations

import itertools
import traceback
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from typing import Any, NamedTuple

from ctxsteward.envelope import EnvelopeBuilder
from ctxsteward.envelope.store import Store
from ctxsteward.evals.suites.kit.faulty_objects import Crashed
from ctxsteward.schemas import ContextError, Erased, InputError, StoreError
from ctxsteward.schemas.errors import Damaged, ObjectMissing, UnsupportedVersion
from ctxsteward.steward.night.chain import NightChain
from ctxsteward.store.crypto.hash_chain import Link
from ctxsteward.store.crypto.keyring import subject_of
from ctxsteward.store.erasure.forget import apply_tombstones
from ctxsteward.store.journal.memory import MemoryJournal
from ctxsteward.store.maintenance.fsck import fsck
from ctxsteward.store.maintenance.gc import gc
from ctxsteward.store.names import writers_folder
from ctxsteward.store.objects.memory import MemoryObjects
from ctxsteward.store.replication.report_objects import key_of, read_report
from ctxsteward.store.replication.segment_log import Rewrite, SessionLog

from ..postgres import PostgresServer
from ..steward.night.doubles import KEYS, PROFILE
from .actors import (
    ACTORS,
    CHARS,
    DESK,
    LEASE_SECONDS,
    NIGHTS,
    Actor,
    Run,
    Said,
    collector,
    drain,
    eraser,
    night,
    night_at,
    say,
    try_to_forget,
)
from .world import TENANT, Process, world_of

STEPS = 60
AFTER_ALL_SECONDS = 4e9
"""Unix time at which every object is old."""
ROUNDS = 12
"""Most rounds until all is at rest."""


class Result(NamedTuple):
    seed: int
    digest: str
    """Of the history: equal for the same seed and commit."""
    wrong: tuple[str, ...]
    fired: dict[str, int]
    events: tuple[str, ...]


def simulate(seed: int, *, steps: int = STEPS, server: PostgresServer | None = None) -> Result:
    """Run one seed; with `server`, in a database of it."""
    with world_of(seed, server) as world:
        run = Run(world)
        try:
            _begin(run)
            _steps(run, steps)
            _rest(run)
            _check(run)
        except Exception as error:
            run.wrong.append(f"{type(error).__name__}: {error}\n{traceback.format_exc()}")
        return Result(seed, world.digest(), tuple(run.wrong), dict(world.fired), tuple(world.events))


def _begin(run: Run) -> None:
    """What records cite is there, and every machine can know of it."""
    process = run.world.processes[0]
    with run.world.running(process):
        run.said["000"] = Said(id="000", session="s", principal=None, hosts=[process.host.name])
        run.session(process, "s").append(run.said["000"].new)
        run.said["000"].acknowledged.append(process.host.name)
        drain(run, process)


def _steps(run: Run, steps: int) -> None:
    world, random = run.world, run.random
    actors, weights = list(ACTORS), list(ACTORS.values())

    def between(process: Process) -> None:
        others = world.others(process)
        if others:
            drawn = random.choices((eraser, collector, random.choices(actors, weights)[0]), (4, 1, 5))[0]
            actor, run.meanwhile = run.meanwhile or drawn, None
            run.most_erasures = 2 if actor is drawn else 3
            step(run, random.choice(others), actor)
            run.most_erasures = 2

    world.between, world.is_quiet = between, False
    for _ in range(steps):
        world.clock.seconds += random.choice((0.1, 0.1, 3.0, 20.0, 4_000.0))
        process = random.choice(world.processes)
        run.meanwhile = None
        world.arm()
        step(run, process, random.choices(actors, weights)[0])
        world.recover()
        run.require(not (run.destroyed and run.destroyed & world.keys()), "a destroyed key is there again")
        if run.wrong:
            return


def step(run: Run, process: Process, actor: Actor) -> None:
    """One actor does one thing; it may fail, and its process may die."""
    world = run.world
    run.ticks += 1
    world.note(f"{world.clock.seconds:.3f}", process.name, actor.__name__)
    with world.running(process):
        try:
            world.at_step(process)
            actor(run, process)
        except Crashed:
            world.note("died")
        except ContextError as error:
            if isinstance(error, Damaged | UnsupportedVersion) and not any(not each.is_done for each in run.erasures):
                run.wrong.append(
                    f"{actor.__name__} at {process.name}: {type(error).__name__}: {error}\n{traceback.format_exc()}"
                )
            world.note("refused", type(error).__name__)


# -- rest ----------------------------------------------------------------------------------------------------------


def _rest(run: Run) -> None:
    """No more faults: what was begun is finished, everything is drained, everybody hears of every erasure."""
    world = run.world
    world.heal()
    _settle(run)
    for process in world.processes:  # each can write still; in the midst of an erasure it could not
        with world.running(process):
            say(run, process, [Said(id=f"last-{process.name}", session="s", principal=None)])
    _settle(run)
    hosts = list({process.host.name: process for process in world.processes}.values())
    for _ in range(2):  # a host that hears of a session may know forks of it, and forgets them
        for process in hosts:
            with world.running(process):
                _read_all(run, process)
                if run.erasures and world.is_bucket:
                    apply_tombstones(process.store, TENANT)
    for process in hosts:  # what another one's erasure has written anew
        with world.running(process):
            _read_all(run, process)
    # A key that was put when its tombstone stood goes with the collection; `Wire` checks that nobody uses it.
    again = {f"{name}.json" for name in world.late | world.doomed}
    left = (world.keys() & world.tombstones()) - again  # before the collection, which would remove them
    run.require(not left, f"{len(left)} keys are left beside their tombstones")
    with world.running(process):
        gc(process.store, now=AFTER_ALL_SECONDS)


def _settle(run: Run) -> None:
    world = run.world
    for _ in range(ROUNDS):
        for process in world.processes:
            world.clock.seconds += 400.0
            with world.running(process):
                for erasing in run.erasures:
                    if not erasing.is_done and erasing.host == process.host.name:
                        try_to_forget(run, process, erasing)
                night(run, process)
                if process.store.write_behind is not None:
                    process.store.write_behind.drainer.hurry = True
                    process.store.write_behind.drainer.run_once()
        if _is_at_rest(run):
            break
    run.require(_is_at_rest(run), f"no rest after {ROUNDS} rounds: {_unrest(run)}")


def _read_all(run: Run, process: Process) -> None:
    if process.store.write_behind is not None:
        findings = process.store.write_behind.all_readable(TENANT)
        run.require(findings == (), f"sessions cannot be read: {findings}")


def _unrest(run: Run) -> list[Any]:
    left: list[Any] = [erasing.what for erasing in run.erasures if not erasing.is_done]
    left += [date for date in NIGHTS if date not in run.nights]
    for process in run.world.processes if run.world.is_bucket else ():
        left += [(process.name, log, process.store.write_behind_status()) for log in process.store.journal.waiting(9)]
    return left


def _is_at_rest(run: Run) -> bool:
    return not _unrest(run)


# -- the oracle ----------------------------------------------------------------------------------------------------


def _check(run: Run) -> None:
    world = run.world
    reader = world.fresh() if world.is_bucket else world.processes[0].store
    with world.running(world.processes[0]):
        _check_logs(run, reader)
        _check_owners(run, reader)
        _check_erasures(run, reader)
        _check_envelopes(run, reader)
        _check_versions(run, reader)
        _check_nights(run, reader)
        found = fsck(reader, tenant=TENANT, read_data=True)
        run.require(found.damage == (), f"fsck: {found.damage}")


def _check_logs(run: Run, reader: Store) -> None:
    """Every acknowledged message stands once, in order, with its words; all machines hold the same."""
    journal = reader.journal
    places: dict[str, list[str]] = {}
    positions: dict[tuple[str, str], int] = {}
    for log in journal.sessions(TENANT):
        records = journal.read(run.key(log), 0)
        session = reader.at(TENANT, log)
        run.require(
            [entry.ordinal for entry in session.entries()] == list(range(1, len(session) + 1)), f"{log}: ordinals"
        )
        for position, record in enumerate(records):
            if record.id is not None:
                places.setdefault(record.id, []).append(log)
                positions[record.id, log] = position
                if '"erased"' not in record.body:
                    text = session.resolve(record.ordinal).text
                    run.require(
                        text == run.said[record.id].text, f"message {record.id} in {log} has the words {text:.40}"
                    )
        for process in run.world.processes if run.world.is_bucket else ():
            same = process.store.journal.read(run.key(log), 0) == records
            run.require(same, f"{process.name} holds another log {log}")
    for said in run.said.values():
        found = places.get(said.id, [])
        family = [log for log in found if log == said.session or log.startswith(f"{said.session}-fork-e")]
        run.require(len(set(found)) == len(found) and family == found, f"message {said.id} stands in {found}")
        if said.acknowledged and not _may_be_gone(run, reader, said):
            run.require(bool(found), f"message {said.id} in {said.session} was acknowledged and is lost")
            run.require(len(found) <= len(said.hosts), f"message {said.id} was sent {said.hosts} and stands in {found}")
        if said.batch and not run.is_touched(said.session):
            whole = [sorted(places.get(id, [])) for id in said.batch]
            alone = all(len(run.said[id].hosts) == 1 for id in said.batch)
            run.require(not alone or len({bool(each) for each in whole}) == 1, f"batch {said.batch} is torn: {whole}")
    for ids in run.order.values():
        _check_order(run, [dict.fromkeys(ids)], positions)


def _check_owners(run: Run, reader: Store) -> None:
    """In the chain of a session, an epoch has one owner."""
    for session in reader.journal.sessions(TENANT) if run.world.is_bucket else ():
        log = SessionLog(reader.objects, reader.keys, reader.vault(TENANT), run.key(session))
        parts = [(link.epoch, part.owner) for link, part in log.entries() if not isinstance(part, Rewrite)]
        run.require(len(dict(parts)) == len(set(parts)), f"session {session}: an epoch has two owners: {parts}")


def _check_order(run: Run, orders: list[dict[str, None]], positions: dict[tuple[str, str], int]) -> None:
    """What a host has acknowledged one after the other stands so in each log."""
    for ids in orders:
        last: dict[str, tuple[int, str]] = {}
        once = [id for id in ids if len(run.said[id].hosts) == 1]
        for id in once:
            for (each, log), position in positions.items():
                if each == id:
                    before = last.get(log, (-1, ""))
                    run.require(before[0] < position, f"{log}: message {id} stands before {before[1]}")
                    last[log] = (position, id)


def _tombstones(reader: Store) -> frozenset[str]:
    return frozenset(reader.vault(TENANT).erased())


def _subjects(run: Run, log: str, principal: str | None) -> Iterator[str]:
    yield log
    yield subject_of(log, principal)


def _may_be_gone(run: Run, reader: Store, said: Said) -> bool:
    """Whether a tombstone covers the message, where it was sent or in a fork of it."""
    stones, vault = _tombstones(reader), reader.vault(TENANT)
    line = [said.session, *({run.branches[said.session]} if said.session in run.branches else ())]
    if any(vault.subject_address(subject) in stones for log in line for subject in _subjects(run, log, said.principal)):
        return True
    return run.is_touched(said.session)


def _check_erasures(run: Run, reader: Store) -> None:
    """Nothing that was erased can be read: not on a disk, not in the object store by any key that is left."""
    world, vault = run.world, reader.vault(TENANT)
    stones = _tombstones(reader)
    reports = [info.key for info in world.bucket.list("reports/")]
    dead = [key for key in reports if key_of(key, world.bucket.get(key)) in stones]
    run.require(not dead, f"reports of destroyed keys are left: {dead}")
    disks = world.words_on_disk()
    stored = "".join(_opened(reader)) if world.is_bucket else ""
    covered = {id for erasing in run.erasures for id in erasing.covered if {erasing.host} == {*run.said[id].hosts}}
    for said in run.said.values():
        logs = [log for log, record in run.standing(reader, said) if '"erased"' not in record.body]
        for log in logs:
            kept = [
                subject for subject in _subjects(run, log, said.principal) if vault.subject_address(subject) in stones
            ]
            run.require(not kept, f"message {said.id} stands in {log}, which was erased for {kept}")
        run.require(not (logs and said.id in covered), f"message {said.id} was forgotten and stands in {logs}")
        if said.acknowledged and not logs:  # else its append may have been torn, which no erasure was asked to clear
            run.require(said.canary.encode() not in disks, f"message {said.id} is gone, and its words are on a disk")
            run.require(said.canary not in stored, f"message {said.id} is gone, and its words can be decrypted")


def _opened(reader: Store) -> Iterator[str]:
    """Everything in reports and in the chains of sessions that a key still opens."""
    vault = reader.fresh_vault(TENANT)
    for session in reader.journal.sessions(TENANT):
        log = SessionLog(reader.objects, reader.keys, vault, Run.key(session))
        yield from (repr(part) for _, part in log.entries())
    for info in reader.objects.list("reports/"):
        with suppress(Erased, ObjectMissing):
            yield repr(read_report(reader.objects, vault, info.key.rpartition("/")[2]))


def _check_envelopes(run: Run, reader: Store) -> None:
    for address, (session, sent) in run.envelopes.items():
        if not run.is_touched(session):
            try:
                manifest = reader.manifest(address, tenant=TENANT)
                at = reader.at(TENANT, manifest["session"], manifest["position"])
                rebuilt = EnvelopeBuilder.from_manifest(manifest | {"tokenizer": CHARS.tokenizer}).rebuild(at)
                again = rebuilt.render("openai-chat")
                run.require(rebuilt.address == address, f"envelope {address[:8]} of {session} has another address")
            except (StoreError, InputError) as error:
                again = {"error": f"{type(error).__name__}: {error}"}
            run.require(again == sent, f"envelope {address[:8]} of {session} rebuilds otherwise: {again}"[:400])


def _check_versions(run: Run, reader: Store) -> None:
    """Every acknowledged commit is one version, in order of time and epoch; a failed one is none."""
    versions = list(reader.profiles(DESK, tenant=TENANT).history())
    run.require([version.number for version in versions] == list(range(1, len(versions) + 1)), "numbers of versions")
    ids = [version.commit_id for version in versions]
    for commit in run.commits:
        count = ids.count(commit.id)
        run.require(count <= 1, f"commit {commit.id} landed {count} times")
        run.require(not (commit.has_failed and count), f"commit {commit.id} failed and landed")
        if commit.number:
            run.require(count == 1, f"commit {commit.id} was acknowledged and is lost")
            run.require(ids.index(commit.id) + 1 == commit.number, f"commit {commit.id} has another number")
        if count:
            version = versions[ids.index(commit.id)]
            texts = {record.text for record in version.profile.meta}
            run.require(texts == {record.text for record in commit.records}, f"version {version.number} holds {texts}")
            run.require(
                commit.parent is None or version.number == commit.parent + 1,
                f"version {version.number}: another parent",
            )
    done = sorted((commit for commit in run.commits if commit.number), key=lambda commit: commit.number)
    for before, after in itertools.pairwise(done):
        run.require(
            after.ended >= before.began, f"version {after.number} was acknowledged before {before.number} began"
        )
    epochs = [version.link.epoch for version in versions]
    run.require(epochs == sorted(epochs), f"epochs of versions: {epochs}")
    _check_leases(run, list(reader.chain(writers_folder(TENANT, DESK), tenant=TENANT).links()))


def _check_leases(run: Run, links: list[Link]) -> None:
    """A lease goes to another writer only after it was released or has expired by the new writer's clock."""
    for before, link in zip([None, *links], links, strict=False):
        held = before is not None and before.body["kind"] != "release"
        if link.body["kind"] == "take":
            run.require(link.epoch == (before.epoch if before else 0) + 1, f"lease {link.number}: epoch {link.epoch}")
            if held and before is not None:
                moment = link.body["expires_seconds"] - LEASE_SECONDS
                run.require(before.body["expires_seconds"] <= moment, f"lease {link.number} was taken before its time")
        else:
            run.require(
                before is not None and (before.epoch, before.body["token"]) == (link.epoch, link.body["token"]),
                f"lease {link.number} was prolonged by a writer that did not hold it",
            )


def _check_nights(run: Run, reader: Store) -> None:
    """The nights end as they do where nothing fails."""
    finals, texts = undisturbed()
    run.require(run.nights == dict(zip(NIGHTS, finals, strict=True)), f"nights came to {run.nights}, not {finals}")
    head = reader.profiles(PROFILE, tenant=TENANT).head()
    found = [record.text for record in head.profile.meta] if head else []
    run.require(found == texts, f"the nights' profile holds {found}")
    if not run.has_partial_night:
        history = [night.night for night in NightChain(reader, TENANT, PROFILE).history()]
        run.require(history == list(NIGHTS), f"nights in the chain: {history}")
        run.require(head is not None and head.number == len(NIGHTS), "a night has committed twice")


@cache
def undisturbed() -> tuple[list[str], list[str]]:
    """Digests of the nights, and the texts of the last version, in a store where nothing fails."""
    store = Store(MemoryJournal(), MemoryObjects(), KEYS, uri="memory:")
    finals = [night_at(store, date).final for date in NIGHTS]
    return finals, [record.text for record in store.profiles(PROFILE, tenant=TENANT).newest().profile.meta]
