"""A session goes into a file and into another store, and nothing of it differs; what is not as written is refused."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given, settings, strategies as st

from ctxsteward.console.cli import cli
from ctxsteward.envelope import PROVIDERS, Budgets, EnvelopeBuilder, Profile, Store, open_store, rebuild
from ctxsteward.envelope.building.bundle import MAX_BUNDLE_BYTES, bundle_lines, import_bundle
from ctxsteward.schemas import Erased, InputError, ReferenceNotFound
from ctxsteward.schemas.errors import Damaged, InputTooLarge, InvalidDocument, UnsupportedVersion
from ctxsteward.schemas.profile import MetaRecord
from ctxsteward.schemas.publish import validate
from ctxsteward.store.crypto.keyring import MasterKeys
from ctxsteward.store.erasure.forget import forget
from ctxsteward.store.journal.port import SessionKey
from ctxsteward.store.maintenance.fsck import fsck

from ...examples import Proved, examples

WHEN = "2026-11-24T00:00:00Z"
KEY, OTHER_KEY = b"k" * 32, b"o" * 32
SAID = (
    "A week in Kyoto, please; we decided on 3 days for Nara.",
    "Never book a flight before 10:00.",
    "My sister Hana joins us on day 3; her key 4417 opens the shed.",
    "Which days are left for Uji, and which key opens the shed?",
    "Change of plan: my budget is 120,000 yen, not 90,000.",
)
PROFILE = Profile.from_yaml(
    "name: trips\npersona: You plan trips.\npolicies:\n  early: {text: No flight before 9:00., locked: true}\n"
)


def memory(key: bytes = KEY) -> Store:
    from ctxsteward.envelope.testing import memory_store

    return memory_store(key=key)


def builder() -> EnvelopeBuilder:
    return EnvelopeBuilder("gpt-4o", budgets=Budgets(dynamic_tokens=240))


def talk(store: Store, turns: int = 14, session: str = "trip") -> None:
    """Let a session go on for some turns of two people, with a build in each."""
    log, by = store.session(session, profile=PROFILE), builder()
    for turn in range(turns):
        log.append(
            {"role": "user", "content": f"{SAID[turn % 5]} ({turn})"}, principal="wei" if turn % 5 == 2 else "ann"
        )
        by.build(log)
        log.append(
            {"role": "assistant", "content": f"Noted: {turn}. Gion, a temple, tea, and a walk by the river. " * 3}
        )


def written(store: Store, folder: Path, session: str = "trip", *, tenant: str = "default") -> Path:
    path = folder / f"{session}.jsonl"
    path.write_bytes(b"".join(bundle_lines(store, session, tenant=tenant)))
    return path


def original(store: Store, tenant: str, session: str, ordinal: int) -> Any:
    try:
        return store.at(tenant, session).resolve(ordinal).wire
    except Erased as error:
        return str(error)


def shown(store: Store, session: str, addresses: Sequence[str], tenant: str = "default") -> list[Any]:
    """All that a reader sees of a session: originals, requests of every provider, reports, findings, state of pins."""
    read = store.at(tenant, session)
    originals = [(original(store, tenant, session, n), read.shown(n).event.principal) for n in range(1, len(read) + 1)]
    calls = []
    for address in addresses:
        envelope = rebuild(store, address, tenant=tenant)
        rendered = {provider: envelope.render(provider) for provider in PROVIDERS}
        reports = [report.model_dump(exclude={"source_addresses"}) for report in envelope.reports]
        rules = [
            rule._replace(ref=rule.ref.partition("@")[0]) for rule in envelope.standing
        ]  # @: the profile's address
        calls.append((rendered, reports, envelope.findings, rules, envelope.address == address))
    made = [(c.report.model_dump(exclude={"source_addresses"}), c.bullets, c.kept) for c in read.compactions()]
    state = read.state
    return [originals, calls, made, state.notes, state.pins, state.head, read.origins(), state.turns]


def calls_of(store: Store, session: str, tenant: str = "default") -> list[str]:
    return [
        one.address for one in store.journal.manifests(SessionKey(tenant, session)) if "meta_report" not in one.body
    ]


def assert_the_same(source: Store, target: Store, session: str, moved: dict[str, str], tenant: str = "default") -> None:
    before = calls_of(source, session)
    after = [moved.get(address, address) for address in before]
    assert calls_of(target, session, tenant) == after
    assert shown(target, session, after, tenant) == shown(source, session, before)


# -- the round trip ----------------------------------------------------------------------------------------


MOVES = st.lists(
    st.one_of(
        st.tuples(st.just("user"), st.sampled_from(SAID), st.sampled_from(("ann", "wei", None))),
        st.tuples(st.just("reply"), st.sampled_from(SAID), st.integers(1, 6)),
        st.tuples(st.just("build")),
        st.tuples(st.just("note"), st.sampled_from(SAID)),
        st.tuples(st.just("pin"), st.integers(1, 30)),
        st.tuples(st.just("fork"), st.integers(1, 30)),
        st.tuples(st.just("forget"), st.sampled_from(("ann", "wei"))),
    ),
    min_size=8,
    max_size=60,
)


@settings(max_examples=examples(150), deadline=None)
@given(moves=MOVES, other_keys=st.booleans())
def test_a_generated_session_and_its_forks_come_back_with_no_difference(
    tmp_path_factory: pytest.TempPathFactory, moves: list[tuple[Any, ...]], other_keys: bool
) -> None:
    source, folder, by = memory(), tmp_path_factory.mktemp("bundle"), builder()
    log = source.session("trip", profile=PROFILE)
    names, gone = ["trip"], set[str]()
    for kind, *drawn in moves:
        if kind == "user" and drawn[1] not in gone:
            log.append({"role": "user", "content": drawn[0]}, principal=drawn[1])
        elif kind == "reply":
            log.append({"role": "assistant", "content": f"{drawn[0]} " * drawn[1]})
        elif kind == "build":
            by.build(log)
        elif kind == "note":
            log.note("plan", drawn[0])
        elif kind == "pin" and drawn[0] <= len(log):
            log.pin(f"§{drawn[0]}")
        elif kind == "fork" and drawn[0] <= len(log) and len(names) < 4:
            log = log.fork(drawn[0], id=f"fork-{len(names)}")
            names.append(log.id)
        elif kind == "forget" and any(entry.event.principal == drawn[0] for entry in log.entries()):
            forget(source, principal=drawn[0], who="dpo", why="asked", when=WHEN)
            gone.add(drawn[0])
            log = source.session(log.id)
    target = memory(OTHER_KEY if other_keys else KEY)

    name = names[-1]
    path = written(source, folder, name)

    done = import_bundle(target, path)

    assert (done.same_keys, done.was_here, bool(done.addresses) <= other_keys) == (not other_keys, False, True)
    assert_the_same(source, target, name, dict(done.addresses))
    assert import_bundle(target, path).was_here
    assert [line[:9] for line in bundle_lines(target, name)] == [line[:9] for line in bundle_lines(source, name)]
    assert not fsck(target, read_data=True).damaged
    for principal in (str(note.principal) for note in source.journal.forgotten("default", name)):
        assert principal.encode() in path.read_bytes()
        with pytest.raises(Erased):
            target.session(name).append({"role": "user", "content": "Me again."}, principal=principal)


@pytest.mark.parametrize("key", [KEY, OTHER_KEY], ids=["same key", "other key"])
def test_a_long_session_comes_back_with_its_calls_reports_and_losses(
    tmp_path: Path, key: bytes, record_property: Proved
) -> None:
    source, target = memory(), memory(key)
    talk(source, 40)

    done = import_bundle(target, written(source, tmp_path), tenant="elsewhere")

    assert (done.messages, done.calls, done.was_here) == (80, 40, False)
    assert_the_same(source, target, "trip", dict(done.addresses), "elsewhere")
    read = target.at("elsewhere", "trip")
    assert len(read.compactions()) > 2
    losses = sum(len(made.report.losses) for made in read.compactions())
    assert losses > 10
    going_on = source.session("trip", profile=PROFILE), target.session("trip", tenant="elsewhere", profile=PROFILE)
    for session in going_on:
        session.append({"role": "user", "content": "Which key opens the shed?"}, principal="ann")
    here, there = (builder().build(session).render("openai-chat") for session in going_on)
    assert here == there
    record_property("proved", f"0 in {done.messages} messages, {done.calls} calls, {losses} losses")


def test_under_the_same_key_in_a_folder_every_address_stays_and_the_next_process_reads_it(tmp_path: Path) -> None:
    keys = MasterKeys(KEY)
    with open_store(tmp_path / "a", keys=keys) as source:
        talk(source, 12)
        path, addresses = written(source, tmp_path), calls_of(source, "trip")
    with open_store(tmp_path / "b", keys=keys) as target:
        done = import_bundle(target, path)
    with open_store(tmp_path / "b", keys=keys) as again:
        assert (done.same_keys, dict(done.addresses), calls_of(again, "trip")) == (True, {}, addresses)
        assert [rebuild(again, address).address for address in addresses] == addresses
        assert not fsck(again, read_data=True).damaged


def test_lines_of_earlier_sessions_come_along_and_go_with_the_session_that_they_are_of(tmp_path: Path) -> None:
    source, target = memory(), memory(OTHER_KEY)
    source.session("first").append({"role": "user", "content": "I am allergic to peanuts."}, principal="ann")
    asked = source.session("second", memory="principal")
    asked.append({"role": "user", "content": "What am I allergic to?"}, principal="ann")
    for reply in range(12):  # of one turn, so that its line goes into the checkpoint of a compaction
        assert "peanuts" in builder().build(asked).render("text")["prompt"]
        asked.append({"role": "assistant", "content": f"Step {reply}: I read the card of a restaurant in Gion. " * 3})
    assert any(made.checkpoint["selection"][7:] for made in asked.compactions())

    done = import_bundle(target, written(source, tmp_path, "second"))

    assert_the_same(source, target, "second", dict(done.addresses))
    assert b"peanuts" not in b"".join(row.body.encode() for row in target.journal.read(("default", "second"), 0))
    forgotten = memory(OTHER_KEY)
    talk(forgotten, 1, "first")
    forget(forgotten, session="first", who="dpo", why="asked", when=WHEN)
    import_bundle(forgotten, tmp_path / "second.jsonl")
    assert "peanuts" not in rebuild(forgotten, calls_of(forgotten, "second")[0]).render("text")["prompt"]


def test_the_governed_memory_that_was_shown_comes_along_to_be_read_and_is_not_committed(tmp_path: Path) -> None:
    source, target = memory(), memory(OTHER_KEY)
    record = MetaRecord(id="early-riser", text="Ann rises early on travel days.", sources=("s-1§4",))
    versions = source.profiles("trips")
    versions.commit(PROFILE, who="ada", why="first", when=WHEN)
    versions.commit(
        PROFILE.model_copy(update={"meta": (record,)}), who="bo", why="night", when=WHEN, promotion={"approvals": []}
    )
    log = source.session("trip", profile=versions.newest().profile)
    log.append({"role": "user", "content": "A week in Kyoto."}, principal="ann")
    builder().build(log)

    done = import_bundle(target, written(source, tmp_path))

    (version,) = done.versions
    assert (version.profile.meta, version.changelog.who, version.promotion) == ((record,), "bo", {"approvals": []})
    assert target.profiles("trips").head() is None
    assert_the_same(source, target, "trip", dict(done.addresses))


def test_every_line_fits_the_published_schema(tmp_path: Path) -> None:
    source = memory()
    source.profiles("trips").commit(PROFILE, who="ada", why="first", when=WHEN)
    log = source.session("trip", profile=source.profiles("trips").newest().profile)
    log.append({"role": "user", "content": "A week in Kyoto."}, principal="ann")
    builder().build(log)

    lines = list(bundle_lines(source, "trip"))

    assert len(lines) == 1 + 3 + 1 + 1
    for line in lines:
        validate("session_bundle", json.loads(line))


# -- what is refused ---------------------------------------------------------------------------------------


Change = Callable[[list[dict[str, Any]]], None]


def recoded(lines: list[bytes]) -> bytes:
    """The lines with checksums that fit, as somebody writes them who means it."""
    header, *rest = map(json.loads, lines)
    for part in (*header["logs"], header["calls"], header["versions"]):
        taken, rest = rest[: part["lines"]], rest[part["lines"] :]
        part["sha256"] = sha256(b"".join(json.dumps(one).encode() + b"\n" for one in taken)).hexdigest()
    return b"".join(
        [json.dumps(header).encode() + b"\n", *(json.dumps(json.loads(one)).encode() + b"\n" for one in lines[1:])]
    )


ALTERED: dict[str, tuple[Callable[[bytes], bytes], type[Exception], str]] = {
    "cut off in a line": (lambda data: data[:-40], InvalidDocument, "ends too early"),
    "cut off between lines": (lambda data: data[: data[:-1].rindex(b"\n") + 1], InvalidDocument, "cut off"),
    "without its last line break": (lambda data: data[:-1], InvalidDocument, "are not what was written"),
    "one byte of a message altered": (lambda data: data.replace(b"Hana", b"Hans", 1), InvalidDocument, "are not what"),
    "a line more": (lambda data: data + b"{}\n", InvalidDocument, "more lines than its header says"),
    "a later version": (
        lambda data: data.replace(b'"schema_version":1', b'"schema_version":2', 1),
        UnsupportedVersion,
        "2",
    ),
    "compressed": (lambda data: b"\x1f\x8b" + data, InvalidDocument, "gzip data"),
    "zipped": (lambda data: b"PK\x03\x04" + data, InvalidDocument, "a zip archive"),
    "empty": (lambda data: b"", InvalidDocument, "cut off"),
    "a transcript": (lambda data: b'{"role": "user", "content": "hi"}\n', InvalidDocument, "line 1"),
    "nested too deep": (lambda data: b"[" * 100_000, InvalidDocument, "line 1"),
    "other words, checksums to fit": (
        lambda data: recoded(data.replace(b"Hana", b"Hans").splitlines(keepends=True)),
        InvalidDocument,
        "laid out otherwise than it was sent",
    ),
    "records out of order": (
        lambda data: recoded([*(lines := data.splitlines(keepends=True))[:3], lines[4], lines[3], *lines[5:]]),
        InvalidDocument,
        "out of order",
    ),
    "a record of another program": (
        lambda data: recoded(data.replace(b'"kind":"head"', b'"kind":"foot"').splitlines(keepends=True)),
        UnsupportedVersion,
        "foot",
    ),
    "a record that says nothing": (
        lambda data: recoded(data.replace(b'"kind":"head"', b'"kind":"pin"').splitlines(keepends=True)),
        InvalidDocument,
        "export session` writes no such file",
    ),
}


@pytest.mark.parametrize("case", ALTERED)
def test_a_file_that_is_not_as_written_is_refused_and_nothing_is_written(tmp_path: Path, case: str) -> None:
    alter, error, says = ALTERED[case]
    source, target = memory(), memory(OTHER_KEY)
    talk(source, 8)
    path = written(source, tmp_path)
    path.write_bytes(alter(path.read_bytes()))

    with pytest.raises(error, match=says):
        import_bundle(target, path)

    assert target.sessions() == []


def test_under_the_same_key_another_author_is_found_even_where_the_checksums_fit(tmp_path: Path) -> None:
    source, target = memory(), memory()
    source.session("trip").append({"role": "user", "content": "Hana pays."}, principal="ann")
    path = written(source, tmp_path)
    path.write_bytes(recoded(path.read_bytes().replace(b"Hana", b"Hans").splitlines(keepends=True)))

    with pytest.raises(InvalidDocument, match="it is not what a holder of the tenant's key wrote"):
        import_bundle(target, path)


def test_a_file_beyond_the_limit_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "huge.jsonl"
    with path.open("wb") as stream:
        stream.truncate(MAX_BUNDLE_BYTES + 1)  # a sparse file

    with pytest.raises(InputTooLarge, match="1,073,741,825 bytes"):
        import_bundle(memory(), path)


def test_a_session_of_that_name_stays_as_it_is_and_another_tenant_takes_the_bundle(tmp_path: Path) -> None:
    source, target = memory(), memory(OTHER_KEY)
    talk(source, 3)
    talk(target, 1)
    path = written(source, tmp_path)
    before = target.journal.read(SessionKey("default", "trip"), 0)

    with pytest.raises(InputError, match=r"here with 4 records and differs from the bundle's 8.*--tenant"):
        import_bundle(target, path)

    assert target.journal.read(SessionKey("default", "trip"), 0) == before
    assert import_bundle(target, path, tenant="copies").messages == 6


def test_a_session_that_has_gone_on_since_its_import_is_not_replaced(tmp_path: Path) -> None:
    source, target = memory(), memory(OTHER_KEY)
    talk(source, 3)
    path = written(source, tmp_path)
    import_bundle(target, path)
    talk(target, 1)

    with pytest.raises(InputError, match="differs"):
        import_bundle(target, path)


def test_an_import_that_was_interrupted_is_completed_by_the_same_file(tmp_path: Path) -> None:
    source, target = memory(), memory(OTHER_KEY)
    talk(source, 3)
    path = written(source, tmp_path)
    done = import_bundle(target, path)
    target.journal.drop_manifests(SessionKey("default", "trip"))

    assert import_bundle(target, path).was_here
    assert_the_same(source, target, "trip", dict(done.addresses))


@pytest.mark.parametrize("principal", [None, "wei"], ids=["the session", "a principal"])
def test_what_was_forgotten_in_the_target_does_not_come_back(tmp_path: Path, principal: str | None) -> None:
    store = memory()
    talk(store, 6)
    path = written(store, tmp_path)
    forget(store, session="trip", principal=principal, who="dpo", why="request 7", when=WHEN)
    before = store.journal.read(SessionKey("default", "trip"), 0)

    with pytest.raises(Erased, match="was erased by dpo on 2026-11-24T00:00:00Z: request 7"):
        import_bundle(store, path)

    assert store.journal.read(SessionKey("default", "trip"), 0) == before


def test_a_forgotten_word_is_not_in_the_bundle_and_a_forgotten_session_has_none(tmp_path: Path) -> None:
    store = memory()
    talk(store, 6)
    forget(store, principal="wei", who="dpo", why="asked", when=WHEN)
    assert b"4417" not in written(store, tmp_path).read_bytes()

    forget(store, session="trip", who="dpo", why="asked", when=WHEN)
    with pytest.raises(Erased):
        written(store, tmp_path)


def test_an_unknown_session_and_a_damaged_one_have_no_bundle(tmp_path: Path) -> None:
    store = memory()
    with pytest.raises(ReferenceNotFound, match="it has no record"):
        written(store, tmp_path, "nobody")

    talk(store, 2)
    key = SessionKey("default", "trip")
    row = store.journal.read(key, 2, 3)[0]
    store.journal.rewrite(key, {2: row._replace(wire=str(row.wire).replace("Kyoto", "Osaka"))})
    with pytest.raises(Damaged, match="is not what its address says"):
        written(store, tmp_path)


def test_the_commands_carry_a_session_from_store_to_store_in_a_file_for_its_owner(tmp_path: Path) -> None:
    with open_store(tmp_path / "a") as source:
        talk(source, 3)
    out, to = str(tmp_path / "trip.jsonl"), f"file:{tmp_path}/b"

    sent = CliRunner().invoke(cli, ["export", "session", "trip", "--to", out, "--store", f"file:{tmp_path}/a"])
    read = CliRunner().invoke(cli, ["import", out, "--store", to])
    again = CliRunner().invoke(cli, ["import", out, "--store", to, "--json"])

    assert (sent.exit_code, Path(out).stat().st_mode & 0o777) == (0, 0o600)
    assert read.stdout.splitlines() == [
        "session trip is here: 6 messages, 3 calls as they were",
        "written under other keys: its author is not checked, 3 calls have new addresses",
    ]
    facts = json.loads(again.stdout)
    assert (facts["was_here"], facts["messages"], len(facts["addresses"])) == (True, 6, 3)
    with open_store(tmp_path / "b") as target:
        assert len(target.at("default", "trip")) == 6
