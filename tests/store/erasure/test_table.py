"""The erasure table: every way in which words come in, and what forgetting a session or a principal does to them.

Each way has a word of its own, said by Ann in a session of its own. All of them are brought into one store, all is
forgotten at once, and every byte below the test's folder and in the database is searched. The table in
`docs/durability.md` is this one; its last rows are tested by `test_out_of_reach`.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Literal, NamedTuple

import psycopg
import pytest
from openai import OpenAI

from ctxsteward.envelope import Budgets, Profile, Store, open_store, wrap
from ctxsteward.envelope.building.snapshots import Snapshots
from ctxsteward.envelope.cards import cards_of
from ctxsteward.envelope.history.tool_groups import NewMessage
from ctxsteward.steward.erasure import StewardRecords
from ctxsteward.steward.setup import ledger_path
from ctxsteward.store.crypto.keyring import file_keys
from ctxsteward.store.erasure.forget import forget
from ctxsteward.store.erasure.receipt import receipt_key, verified_receipt
from ctxsteward.store.journal.erasures import Erasure
from ctxsteward.store.postgres_database import PostgresUri

from ...console.service.serving import FREE, served
from ...examples import Proved
from ...model_server import ModelServer, Reply
from ...postgres import PostgresServer
from ...steward.night import desk
from .scenes import CHARS, builder, contents_of, hits

Promise = Literal["erased", "stays"]
TENANT = "default"
TOLD = {"tenant": TENANT, "who": "dpo", "why": "request 7", "when": "2026-11-23T00:00:00Z"}
DOCUMENT = Path(__file__).parents[3] / "docs" / "durability.md"
_databases = count(1)


class Entry(NamedTuple):
    """A way in which words come in."""

    way: str
    session: Promise
    principal: Promise
    bring: Callable[[Store, str, str], None]
    """Brings a word into a session of this name."""
    remark: str = ""


def user(word: str) -> dict[str, str]:
    return {"role": "user", "content": f"{word} is my number"}


def append(store: Store, session: str, word: str) -> None:
    store.session(session, tenant=TENANT, counter=CHARS).append(user(word), principal="ann")


def extend(store: Store, session: str, word: str) -> None:
    rows = [NewMessage(message=user(word), principal="ann"), NewMessage(message={"role": "assistant", "content": "ok"})]
    store.session(session, tenant=TENANT, counter=CHARS).extend(rows)


def tool(store: Store, session: str, word: str) -> None:
    function = {"name": "look_up", "arguments": json.dumps({"q": word})}
    said = (
        {"role": "user", "content": "look it up"},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "c1", "type": "function", "function": function}]},
        {"role": "tool", "tool_call_id": "c1", "content": f"found {word}"},
    )
    opened = store.session(session, tenant=TENANT, counter=CHARS)
    opened.extend(NewMessage(message=message, principal="ann") for message in said)


def note(store: Store, session: str, word: str) -> None:
    opened = store.session(session, tenant=TENANT, counter=CHARS)
    opened.append({"role": "user", "content": "hello"}, principal="ann")
    opened.note("plan", f"{word} is her number")


def follow(store: Store, session: str, word: str) -> None:
    opened = store.session(session, tenant=TENANT, counter=CHARS)
    history = [user(word), {"role": "assistant", "content": "ok"}]
    opened.follow(history, principal="ann")
    opened.follow([*history, {"role": "user", "content": f"again {word}"}], principal="ann")


def edited(store: Store, session: str, word: str) -> None:
    opened = store.session(session, tenant=TENANT, counter=CHARS)
    opened.follow([{"role": "user", "content": "first"}, {"role": "assistant", "content": "ok"}], principal="ann")
    opened.follow([user(word)], principal="ann")


def fork(store: Store, session: str, word: str) -> None:
    opened = store.session(session, tenant=TENANT, counter=CHARS)
    opened.append(user(word), principal="ann")
    opened.fork(id=f"{session}-fork").append(user(word), principal="ann")


def compaction(store: Store, session: str, word: str) -> None:
    opened = store.session(session, tenant=TENANT, counter=CHARS)
    for turn in range(8):
        opened.append({"role": "user", "content": f"{word} is my number, {turn} times " + "x" * 200}, principal="ann")
        opened.append({"role": "assistant", "content": f"noted, {turn} " + "y" * 200})
        builder(1_200).build(opened)
    assert any(row.kind == "compaction" for row in store.journal.read(opened.key, 0))


def cards(store: Store, session: str, word: str) -> None:
    append(store, session, word)
    assert word in str(cards_of(store.session(session, tenant=TENANT)).cards)


def wrapped(store: Store, session: str, word: str) -> None:
    with ModelServer(lambda request: Reply(text="fine")) as server:
        plain = OpenAI(base_url=f"{server.url}/v1", api_key="none")
        client = wrap(
            plain, store, session=session, tenant=TENANT, principal="ann", budgets=Budgets(dynamic_tokens=900)
        )
        client.chat.completions.create(model="gpt-4o", messages=[user(word)])  # type: ignore[list-item]
        plain.close()


def http_messages(store: Store, session: str, word: str) -> None:
    rows = [{"message": user(word), "principal": "ann"}]
    served(store, limits=FREE).post(f"/api/sessions/{session}/messages", {"messages": rows})


def http_follow(store: Store, session: str, word: str) -> None:
    rows = [{"message": user(word), "principal": "ann"}]
    body = {"messages": rows, "follow": True}
    served(store, limits=FREE).post(f"/api/sessions/{session}/messages", body)


def http_history(store: Store, session: str, word: str) -> None:
    on = served(store, limits=FREE)
    rows = [{"message": {"role": "user", "content": "hello"}, "principal": "ann"}]
    on.post(f"/api/sessions/{session}/messages", {"messages": rows})
    history = [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "hi"}, user(word)]
    on.post(f"/api/sessions/{session}/build", {"history": history, "principal": "ann"})


def others(store: Store, session: str, word: str) -> None:
    opened = store.session(session, tenant=TENANT, counter=CHARS)
    opened.append({"role": "user", "content": "hello"}, principal="ann")
    opened.append({"role": "assistant", "content": f"you said {word}"})


def harvested(store: Store, session: str, word: str) -> None:
    """A night reads it after all have spoken; see `filled`."""
    opened = store.session(session, tenant=TENANT)
    for role, text in (("user", f"No, the table {word} costs 7 EUR, not 9 EUR."), ("assistant", "Noted.")):
        opened.append({"role": role, "content": text}, principal="ann" if role == "user" else None)


def outside(store: Store, session: str, word: str) -> None:
    """A transcript from outside, in the folder that the night reads; `filled` deletes it where it lies."""


def profile(store: Store, session: str, word: str) -> None:
    """A profile with a snapshot, as `ctxsteward backfill` takes it; the operator wrote the word into it."""
    written = Profile.from_text(f"persona: {{role: 'Ask for {word}.'}}", name=session)
    note = {name: TOLD[name] for name in ("who", "why", "when")}
    version = store.profiles(session, tenant=TENANT).commit(written, **note)
    Snapshots(store, TENANT).take(version, builder(), who="backfill", when=TOLD["when"])


TABLE = (
    Entry("`session.append`", "erased", "erased", append),
    Entry("`session.extend`", "erased", "erased", extend),
    Entry("tool calls and results", "erased", "erased", tool, "if appended under the principal"),
    Entry("`session.note`", "erased", "erased", note, "all notes of a session in which the principal spoke"),
    Entry("`session.follow`", "erased", "erased", follow),
    Entry("edited histories", "erased", "erased", edited),
    Entry("`session.fork`", "erased", "erased", fork),
    Entry("compactions with bullets and losses", "erased", "erased", compaction),
    Entry("context cards", "erased", "erased", cards),
    Entry(
        "`wrap`, and the framework integrations", "erased", "erased", wrapped, "the session continues under another id"
    ),
    Entry("messages over HTTP", "erased", "erased", http_messages),
    Entry("`follow` over HTTP", "erased", "erased", http_follow),
    Entry("`history` over HTTP", "erased", "erased", http_history),
    Entry("what others said, the model included", "erased", "stays", others, "erased if appended under the principal"),
    Entry("records, drafts and facts of nights, the ledger", "erased", "erased", harvested),
    Entry("nights over outside transcripts", "erased", "erased", outside),
    Entry(
        "profiles and their snapshots (`backfill`)",
        "stays",
        "stays",
        profile,
        "the operator's text; records made from erased words are withdrawn",
    ),
)
OUT_OF_REACH = (
    ("a session started with a handoff (`handoff --start`)", "stays, named", "forget that session, too"),
    ("exported pages, reports, timelines", "out of reach, named", "delete the files"),
    ("transcripts outside the store", "out of reach, named", "delete them, or mark them deleted"),
    ("recordings of model calls and of cascade runs; handoffs", "out of reach, named", "delete the files"),
    ("suites drafted from transcripts, kept eval runs, replay reports", "out of reach, named", "delete the files"),
    ("Prefect's persisted results", "skipped", "nothing: no words are in them"),
    (
        "requests to a provider, logs, traces",
        "out of reach, named by call",
        "pass an eraser (`erasers=[…]`) for those that you hold",
    ),
    ("prompt caches of providers", "out of reach, named until when", "delete caches that you named yourself"),
    ("logs of providers", "out of reach, named by call", "see your contract"),
    ("backups, snapshots of disks, replicas of a bucket", "out of reach, named", "let them expire"),
)


def word_of(number: int) -> str:
    return f"MARKERann{7000 + number}q"


@pytest.fixture(scope="module")
def postgres_place(whom: str, shared_postgres: PostgresServer) -> tuple[str, Path]:
    plain, name = shared_postgres.uri("a"), f"table{next(_databases)}"
    with psycopg.connect(PostgresUri.parse(plain).conninfo, autocommit=True) as db:
        db.execute(f"CREATE DATABASE {name}")  # type: ignore[arg-type]
        ((oid,),) = db.execute("SELECT oid FROM pg_database WHERE datname = %s", (name,)).fetchall()
    return plain.replace("/postgres?", f"/{name}?"), shared_postgres.home / "data/base" / str(oid)


COUNTED = {
    "messages",
    "compactions: bullets, losses, reports",
    "notes",
    "data keys: drained sessions, stored reports, harvest",
}
"""Places in which something of the table lay, in every store."""


class Forgotten(NamedTuple):
    """What is left of each word, by way, before and after."""

    before: dict[str, list[str]]
    after: dict[str, list[str]]
    erasures: tuple[Erasure, ...]
    ledger: Path
    key: str
    """The public one, for receipts."""


@pytest.fixture(scope="module", params=["file", "postgres"])
def where(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module", params=["session", "principal"])
def whom(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def forgotten(
    where: str, whom: str, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Forgotten]:
    root = tmp_path_factory.mktemp("table")
    if where == "postgres":  # before the temporary folder moves: a server has one of its own
        request.getfixturevalue("postgres_place")
    with pytest.MonkeyPatch.context() as patch:
        (root / "tmp").mkdir()
        patch.setattr(tempfile, "tempdir", str(root / "tmp"))
        patch.setenv("SQLITE_TMPDIR", str(root / "tmp"))
        patch.chdir(root)
        yield _filled(where, whom, root, request)


def _filled(where: str, whom: str, root: Path, request: pytest.FixtureRequest) -> Forgotten:
    database: Path | None = None
    uri = f"file:{root / 'store'}"
    keys = file_keys(root / "keys")
    if where == "postgres":
        uri, database = request.getfixturevalue("postgres_place")
        uri += f"&keys={root / 'keys'}"
    journal = root / "journal" if where == "postgres" else None
    settings = desk.settings_of(
        root,
        store=uri,
        journal=None if journal is None else str(journal),
        sources=("store", str(root / "in")),
        tenant=TENANT,
    )
    with open_store(uri, journal=journal, keys=keys if where == "postgres" else None) as store:
        for number, entry in enumerate(TABLE):
            entry.bring(store, f"s-{number}", word_of(number))
    number = next(n for n, entry in enumerate(TABLE) if entry.bring is outside)
    text = f"No, the table {word_of(number)} costs 7 EUR, not 9 EUR."
    transcript = desk.say(root / "in", f"s-{number}", text, principal="ann")
    desk.fill(root / "in", 3)
    desk.night(settings)
    transcript.unlink()
    words = tuple(word_of(n) for n in range(len(TABLE)))

    def left(store: Store) -> dict[str, list[str]]:
        if database is not None:
            store.journal.database.execute("CHECKPOINT")  # type: ignore[attr-defined]
        found = contents_of(store, root)
        if database is not None:
            found |= {str(path): path.read_bytes() for path in sorted(database.rglob("*")) if path.is_file()}
        return hits(found, words)

    with open_store(uri, journal=journal, keys=keys if where == "postgres" else None) as store:
        before = left(store)
        if whom == "principal":
            done = [forget(store, principal="ann", **TOLD)]
        else:
            harvest = list(_sessions(store))
            done = [forget(store, session=name, **TOLD) for name in harvest]
        return Forgotten(before, left(store), tuple(done), ledger_path(settings), receipt_key(store.keys, TENANT))


def _sessions(store: Store) -> Iterator[str]:
    """Those of the table, and the one that the night knows from outside."""
    known, findings = StewardRecords(store, TENANT).subjects()
    assert findings == []
    forks = {name for name in store.journal.sessions(TENANT) if "fork" in name}
    return iter(sorted({*known, *store.journal.sessions(TENANT)} - forks))


@pytest.mark.parametrize("number", range(len(TABLE)), ids=[entry.way for entry in TABLE])
def test_what_the_table_promises_is_done(number: int, forgotten: Forgotten, whom: str) -> None:
    entry, word = TABLE[number], word_of(number)
    assert forgotten.before.get(word)  # it was there
    promise = entry.session if whom == "session" else entry.principal
    assert bool(forgotten.after.get(word)) == (promise == "stays"), forgotten.after.get(word)


def test_the_receipts_count_what_was_there_and_leave_nothing_unnamed(
    forgotten: Forgotten, whom: str, record_property: Proved
) -> None:
    """Whatever is left after the erasure stands in a row of the table that says so, and in the receipt."""
    before: dict[str, int] = {}
    for done in forgotten.erasures:
        assert verified_receipt(done.receipt.encode(), forgotten.key) == done
        assert [place for place in done.places if place.after] == []
        assert {place for place, promise, _ in OUT_OF_REACH if "named" in promise} <= {
            one.place for one in done.remains
        }
        for place in done.places:
            before[place.place] = before.get(place.place, 0) + place.before
    assert {place for place, number in before.items() if number} >= COUNTED
    assert sum(len(left.calls) for done in forgotten.erasures for left in done.remains) > 0
    promised = {
        word_of(n) for n, row in enumerate(TABLE) if (row.session if whom == "session" else row.principal) == "stays"
    }
    record_property("proved", f"{len(set(forgotten.after) - promised)} of {len(TABLE)} ways in")
    assert set(forgotten.after) == promised


def test_the_erasure_is_complete_and_the_ledger_was_among_what_it_reached(forgotten: Forgotten) -> None:
    assert [done.findings for done in forgotten.erasures if not done.complete] == []
    assert any(str(forgotten.ledger) in places for places in forgotten.before.values())


def grouped(head: str, rows: Iterator[tuple[str, str]]) -> str:
    """Return a table with one row for all names that have the same cells."""
    names: dict[str, list[str]] = {}
    for name, cells in rows:
        names.setdefault(cells, []).append(name)
    lines = [f"| {', '.join(alike)} | {cells} |" for cells, alike in names.items()]
    return "\n".join([head, "|---" * (head.count("|") - 1) + "|", *lines])


def test_the_document_has_these_tables() -> None:
    page, head = DOCUMENT.read_text("utf-8"), "| words come in by | forget a session | forget a principal | remark |"
    assert grouped(head, ((one.way, f"{one.session} | {one.principal} | {one.remark}") for one in TABLE)) in page
    assert grouped("| out of reach | what to do |", ((place, todo) for place, _, todo in OUT_OF_REACH)) in page


def test_an_erasure_without_the_ledger_s_folder_is_not_complete_until_the_ledger_was_told(tmp_path: Path) -> None:
    """Nights with one journal folder, an erasure from Python that names none."""
    settings = desk.settings_of(
        tmp_path, journal=str(tmp_path / "journal"), sources=(str(tmp_path / "in"),), tenant=TENANT
    )
    path = desk.say(tmp_path / "in", "t", "No, the table MARKERann1q costs 7 EUR, not 9 EUR.", principal="ann")
    desk.fill(tmp_path / "in", 3)
    desk.night(settings)
    path.unlink()
    with open_store(settings.store) as store:
        done = forget(store, principal="ann", **TOLD)
    assert not done.complete
    assert [finding.kind for finding in done.findings] == ["ledger_elsewhere"]
    assert hits({str(p): p.read_bytes() for p in [ledger_path(settings)]}, ("MARKERann1q",))
