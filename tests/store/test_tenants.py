"""A thousand ways of asking for somebody else's content, none of which answers: tenants, sessions, principals.

Two tenants and two sessions of one of them hold the same, known content. The prober is one of them, knows every text,
and has seen everything that reports, manifests, envelopes and file names show of the others. Each kind of probe is
made on the prober's own content too, where it has to hit: a probe that cannot hit shows nothing.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from ctxsteward.envelope import Budgets, EnvelopeBuilder, Session, Store, open_store, rebuild
from ctxsteward.envelope.recall.model_tools import resolve_reference
from ctxsteward.envelope.testing import CharTokenizer, FirstLine
from ctxsteward.envelope.tokens.tokenizer import Counter
from ctxsteward.schemas import ContextError
from ctxsteward.schemas.errors import Damaged
from ctxsteward.store.crypto.hash_chain import Chain
from ctxsteward.store.crypto.keyring import address_of, subject_of
from ctxsteward.store.journal.events import WindowCompacted
from ctxsteward.store.journal.port import SessionKey
from ctxsteward.store.names import blob_name, data_key_name, part_of, session_folder, versions_folder

from .doubles import copied_store

CHARS = Counter(CharTokenizer())
TEXTS = tuple(f"the door code of house {n} is {n}{n}{n}{n}, said in confidence" for n in range(40))
OWN_ONLY = "only the prober says this"


class Seen(NamedTuple):
    """What is known of one session from outside."""

    tenant: str
    session: str
    addresses: tuple[str, ...]
    """Of messages, compactions, envelopes, blobs."""


def builder() -> EnvelopeBuilder:
    return EnvelopeBuilder(tokenizer="o200k_base", budgets=Budgets(dynamic_tokens=400), summarizer=FirstLine())


def fill(store: Store, tenant: str, id: str, principal: str | None = None) -> Seen:
    """The same content in every session."""
    session, made, found = store.session(id, tenant=tenant, counter=CHARS), builder(), []
    for n, text in enumerate(TEXTS):
        entry = session.append({"role": "user", "content": text}, principal=principal, id=f"m{n}")
        found.append(entry.event.address)
        session.append({"role": "assistant", "content": "noted"})
        found.append(made.build(session).address)
    session.note("plan", TEXTS[0])
    found += [event.report.id for event in session.reports()]
    found += [store.vault(tenant).put(subject_of(id, principal), "note", text.encode()) for text in TEXTS]
    return Seen(tenant, id, tuple(dict.fromkeys(found)))


@pytest.fixture(scope="module", params=["memory:", "file:"])
def filled(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Store, list[Seen]]:
    """A closed store. The prober first; then a neighbour session, another tenant with the same names, a longer name."""
    uri = request.param if request.param == "memory:" else f"file:{tmp_path_factory.mktemp('filled')}"
    with open_store(uri) as store:
        everyone = [
            fill(store, "acme", "s-1"),
            fill(store, "acme", "s-2", "ann"),
            fill(store, "bcme", "s-1"),
            fill(store, "acme/x", "s-1"),
        ]
    return store, everyone


@pytest.fixture
def store(filled: tuple[Store, list[Seen]], tmp_path: Path) -> Iterator[Store]:
    """A copy of it."""
    full = filled[0]
    if full.uri == "memory:":
        yield copied_store(full)
        return
    shutil.copytree(full.uri.removeprefix("file:"), tmp_path / "store")
    with open_store(f"file:{tmp_path / 'store'}") as opened:
        yield opened


@pytest.fixture
def everyone(filled: tuple[Store, list[Seen]]) -> list[Seen]:
    return filled[1]


def answer(ask: Callable[[], object]) -> str:
    """What a probe gives back; nothing where it is refused."""
    try:
        return repr(ask())
    except ContextError as error:
        return str(error) if any(text in str(error) for text in TEXTS) else ""


def by_address(store: Store, tenant: str, address: str) -> Iterator[Callable[[], object]]:
    """Every way of asking a store for what an address names."""
    yield lambda: store.manifest(address, tenant=tenant)
    yield lambda: store.compaction(address, tenant=tenant)
    yield lambda: rebuild(store, address, tenant=tenant).address
    yield lambda: store.vault(tenant).get(address)
    yield lambda: [found for found in [store.journal.get_manifest(tenant, address)] if found]
    yield lambda: [found for found in [store.journal.find(tenant, address)] if found]


def hits(store: Store, tenant: str, address: str) -> int:
    return sum(answer(ask) not in ("", "[]", "None") for ask in by_address(store, tenant, address))


def test_an_address_of_another_tenant_answers_nothing_whole_or_by_prefix(store: Store, everyone: list[Seen]) -> None:
    prober, probes = everyone[0], 0
    for other in everyone[2:]:
        for address in other.addresses:
            assert hits(store, prober.tenant, address) == 0
            probes += 6
            for digits in (8, 12, 32, 63):
                assert store.address(address[:digits], tenant=prober.tenant) == address[:digits]
                assert store.journal.matching(prober.tenant, address[:digits]) == []
                probes += 2
    assert probes > 2_500
    assert sum(hits(store, prober.tenant, address) > 0 for address in prober.addresses) > len(TEXTS)
    envelope = next(a for a in prober.addresses if store.journal.get_manifest("acme", a))
    assert store.address(envelope[:12], tenant="acme") == envelope


def test_the_same_content_has_no_address_in_common(everyone: list[Seen]) -> None:
    addresses = [address for seen in everyone for address in seen.addresses]
    assert len(addresses) == len(set(addresses))


def test_a_ref_resolves_in_its_own_session_only(store: Store, everyone: list[Seen]) -> None:
    prober = store.session("s-1", tenant="acme", counter=CHARS)
    prober.append({"role": "user", "content": OWN_ONLY})
    last, probes = len(prober), 0
    for other in everyone[1:]:
        theirs = store.session(other.session, tenant=other.tenant, counter=CHARS)
        theirs.append({"role": "user", "content": f"a secret of {other}"})
        for ref in _refs(other, last, len(theirs)):
            for ask in (lambda: prober.resolve(ref), lambda: prober.entry(ref), lambda: resolve_reference(prober, ref)):  # noqa: B023 - called at once
                probes += 1
                found = _asked(ask)
                assert "a secret of" not in found, (other, ref)
    assert probes > 1_000
    assert prober.resolve(f"§{last}").text == OWN_ONLY
    found = {prober.resolve(n).text for n in range(1, last + 1)}
    assert found == {*TEXTS, "noted", OWN_ONLY}


def _refs(other: Seen, last: int, theirs: int) -> Iterator[str]:
    for n in (1, 2, theirs, last, last + 1):
        yield from (
            f"{other.session}§{n}",
            f"{other.tenant}/{other.session}§{n}",
            f"§{n}@{other.session}",
            f"tool:{n}",
            f"{other.session}:{n}",
            f"§{n}.1",
            f"§{n}§{n}",
            f"../{other.session}/§{n}",
            f"§{n}\x00{other.session}",
            f"§{n + theirs}",
            f"§-{n}",
            f"§{n}e3",
        )
    yield from other.addresses[:60]
    yield from (address[:12] for address in other.addresses[:20])


def _asked(ask: Callable[[], object]) -> str:
    try:
        found = ask()
    except ContextError as error:
        return f"error: {error}"
    return found if isinstance(found, str) else str(getattr(found, "text", None) or getattr(found, "message", ""))


def test_whoever_guesses_content_right_finds_no_name_that_confirms_it(
    store: Store, everyone: list[Seen], tmp_path: Path
) -> None:
    """Hashes of known texts, plain and under every key the prober has, name nothing of the others."""
    prober = everyone[0]
    names = " ".join(info.key for info in store.objects.list(""))
    names += " ".join(str(path) for path in tmp_path.rglob("*"))
    theirs = " ".join(address for other in everyone[1:] for address in other.addresses)
    key = store.keys.address_key(prober.tenant)
    probes = own = 0
    for text in TEXTS:
        wire = json.dumps({"role": "user", "content": text}, ensure_ascii=False)
        for data in (text.encode(), wire.encode(), json.dumps(text).encode(), (text + "\n").encode()):
            for digest in (hashlib.sha256(data), hashlib.sha1(data), hashlib.md5(data), hashlib.blake2b(data)):
                probes += 1
                assert digest.hexdigest() not in names + theirs
            for other in everyone[1:]:
                for subject in (other.session, subject_of(other.session, None), "", other.tenant):
                    for kind in ("message", "note", "compaction", ""):
                        probes += 1
                        assert address_of(key, subject, kind, data) not in theirs
            probes += 1
            assert hmac.digest(key, data, "sha256").hex() not in names + theirs
            own += address_of(key, prober.session, "message", data) in prober.addresses
            own += address_of(key, prober.session, "note", data) in prober.addresses
    assert probes > 5_000
    assert own == 2 * len(TEXTS)  # the prober's own guesses about its own session are right


def test_another_tenant_s_objects_brought_home_are_damaged_not_content(store: Store, everyone: list[Seen]) -> None:
    prober, probes = everyone[0], 0
    for other in everyone[2:]:
        vault = store.vault(other.tenant)
        name = vault.subject_address(other.session)
        for address in other.addresses[-len(TEXTS) :]:
            body = store.objects.get(blob_name(other.tenant, address))
            assert store.objects.put(blob_name(prober.tenant, address), body) == "committed"
            assert answer(lambda: store.vault(prober.tenant).get(address)) == ""  # noqa: B023 - called at once
            store.objects.delete(blob_name(prober.tenant, address))
            probes += 1
        key = data_key_name(prober.tenant, name)
        assert store.objects.put(key, store.objects.get(data_key_name(other.tenant, name))) == "committed"
        with pytest.raises(Damaged):
            store.vault(prober.tenant).known_key(name)
        address = other.addresses[-1]
        store.objects.put(blob_name(prober.tenant, address), store.objects.get(blob_name(other.tenant, address)))
        assert answer(lambda: store.vault(prober.tenant).get(address)) == ""  # noqa: B023 - key and blob together
        probes += 2
    assert probes == 2 * (len(TEXTS) + 2)


def test_links_of_another_tenant_s_chain_do_not_verify(store: Store) -> None:
    folder = versions_folder("bcme", "support")
    theirs = store.chain(folder, tenant="bcme")
    for n in range(20):
        theirs.append(theirs.head(), {"persona": TEXTS[n]})
    assert theirs.read(20).body == {"persona": TEXTS[19]}
    for number in range(1, 21):
        with pytest.raises(Damaged):
            store.chain(folder, tenant="acme").read(number)
        home = versions_folder("acme", "support")
        store.objects.put(f"{home}/{number:012d}.json", store.objects.get(f"{folder}/{number:012d}.json"))
        for tenant in ("acme", "bcme"):
            with pytest.raises(Damaged):
                Chain(store.objects, home, store.keys.address_key(tenant)).read(number)


def test_rows_of_another_session_s_journal_brought_home_are_never_shown(store: Store, everyone: list[Seen]) -> None:
    for other in everyone[1:]:
        rows = store.journal.read(SessionKey(other.tenant, other.session), 0)
        home = SessionKey("acme", f"stolen-{everyone.index(other)}")
        store.journal.append(home, 0, [row for row in rows if row.kind != "compaction"])
        shown = ""
        try:
            stolen = store.session(home.session, tenant="acme", counter=CHARS)
            shown = _shown(stolen)
        except ContextError:
            pass
        assert not any(text in shown for text in TEXTS)


def _shown(session: Session) -> str:
    found = json.dumps(builder().build(session).render("openai-chat"), ensure_ascii=False)
    for n in range(1, len(session) + 1):
        found += _asked(lambda: session.resolve(n))  # noqa: B023 - called at once
    return found


def test_names_on_disk_and_in_the_store_tell_nothing_of_sessions_people_or_texts(
    store: Store, everyone: list[Seen], tmp_path: Path
) -> None:
    store.session("wife of Bob Miller", tenant="acme").append({"role": "user", "content": "x"}, principal="dr. no")
    store.vault("acme").put(subject_of("wife of Bob Miller", "dr. no"), "note", b"x")
    names = [info.key for info in store.objects.list("")]
    names += [str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")]
    for word in ("Miller", "dr. no", "dr.%20no", "wife", "door", "ann", "s-1", "s-2"):
        assert not any(word in name.split("/", 2)[-1] for name in names if "/" in name), word
    assert session_folder("acme", store.vault("acme").subject_address("s-1")) not in names


@pytest.mark.parametrize(
    "tenant", ["../bcme", "bcme/../acme", "acme/", "/acme", "acme%2Fx", "ACME", "acme ", "acme.", "ａcme", "acme/x/s-1"]
)
def test_a_tenant_s_name_that_looks_like_another_s_reaches_nothing_of_it(
    store: Store, everyone: list[Seen], tenant: str
) -> None:
    real = {seen.tenant for seen in everyone}
    assert tenant not in real
    assert part_of(tenant) not in {part_of(name) for name in real}
    assert answer(lambda: store.sessions(tenant=tenant)) in ("", "[]")
    for seen in everyone:
        assert sum(hits(store, tenant, address) for address in seen.addresses[::7]) == 0


def test_two_principals_of_one_session_share_no_key_and_no_address(store: Store) -> None:
    vault = store.vault("acme")
    pairs = [(subject_of("s-1", name), text) for name in (None, "ann", "bob") for text in TEXTS]
    addresses = [vault.put(subject, "note", text.encode()) for subject, text in pairs]
    assert len(set(addresses)) == len(pairs)
    assert len({vault.data_key(subject).secret for subject, _ in pairs}) == 3


def test_a_compaction_found_by_address_is_of_this_tenant(store: Store, everyone: list[Seen]) -> None:
    for seen in everyone:
        found = [a for a in seen.addresses if store.journal.find(seen.tenant, a)]
        assert found
        for address in found:
            assert isinstance(store.compaction(address, tenant=seen.tenant), WindowCompacted)
