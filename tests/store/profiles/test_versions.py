"""Versions of a profile: one atomic commit each, meta by reference, history that cannot be rewritten."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from ctxsteward.envelope import EnvelopeBuilder, Profile, Store
from ctxsteward.envelope.testing import CharTokenizer, FirstLine, memory_store
from ctxsteward.evals.suites.kit.faulty_objects import PASS, FaultyObjects, StoreFault
from ctxsteward.schemas import Erased, InputError, ReferenceNotFound
from ctxsteward.schemas.errors import Damaged, Fenced, OutcomeUnknown, UnsupportedVersion
from ctxsteward.schemas.profile import BLOCK_SPECS, MetaRecord, ProfileDocument, ProfileEntry
from ctxsteward.schemas.profile_changes import Change
from ctxsteward.schemas.publish import validate
from ctxsteward.store.crypto.keyring import memory_keys
from ctxsteward.store.journal.memory import MemoryJournal
from ctxsteward.store.names import check_name, numbered
from ctxsteward.store.objects.memory import MemoryObjects
from ctxsteward.store.profiles import text as profile_text, version_codec
from ctxsteward.store.profiles.text import canonical_json
from ctxsteward.store.profiles.version_codec import record_subject, references, stored_blocks
from ctxsteward.store.profiles.versions import ProfileVersions, Version, profile_names

from ..doubles import holding, simulated_patience, stored
from .agreed import INVENTED, approvals_hold

WHEN = "2026-11-22T04:00:00+00:00"
NOTE = {"who": "ada", "why": "nightly", "when": WHEN}
AGREED: dict[str, Any] = {**NOTE, "promotion": INVENTED}

__all__ = ["approvals_hold"]
pytestmark = pytest.mark.usefixtures("approvals_hold")
CALM = MetaRecord(id="calm", text="Prefers calm answers.", sources=("s-7§12",))
EURO = MetaRecord(id="euro", text="Money is shown in euro.", sources=("s-3§8", "s-4§9"), approved=True)


def profile(*policies: str, meta: tuple[MetaRecord, ...] = (), **more: Any) -> Profile:
    entries = tuple(ProfileEntry(id=f"p{n}", text=text) for n, text in enumerate(policies))
    return Profile(name="support", policies=entries, meta=meta, **more)


def changes(version: Version) -> list[tuple[str, str, str | None]]:
    return [(change.block, change.kind, change.key) for change in version.changelog.changes]


@pytest.fixture
def store() -> Store:
    return memory_store()


@pytest.fixture
def versions(store: Store) -> ProfileVersions:
    return store.profiles("support", tenant="acme")


# -- committing and reading --------------------------------------------------------------------------------


def test_a_committed_profile_reads_back_equal_with_its_number(versions: ProfileVersions) -> None:
    wanted = profile("Be brief.", meta=(CALM, EURO))
    made = versions.commit(wanted, **AGREED)

    assert made.profile == wanted.model_copy(update={"version": 1})
    assert versions.head() == made
    assert versions.at(1) == made
    assert (made.changelog.who, made.changelog.why, made.changelog.when) == ("ada", "nightly", WHEN)


def test_the_head_s_own_content_writes_nothing(store: Store, versions: ProfileVersions) -> None:
    first = versions.commit(profile("Be brief.", meta=(CALM,)), **AGREED)
    before = stored(store.objects)
    again = versions.commit(profile("Be brief.", meta=(CALM,)), who="bo", why="again", when=WHEN)

    assert again == first
    assert versions.commit(first.profile, **AGREED) == first
    assert stored(store.objects) == before


def test_versions_are_numbered_and_each_names_its_parent(versions: ProfileVersions) -> None:
    for text in ("one", "two", "three"):
        versions.commit(profile(text), **AGREED)

    assert [(v.number, v.changelog.parent) for v in versions.history()] == [(1, None), (2, 1), (3, 2)]
    assert [v.number for v in versions.history(2)] == [3, 2]
    assert [v.number for v in versions.history(9)] == [3, 2, 1]
    assert [entry.version for entry in versions.changelog()] == [1, 2, 3]


def test_without_a_parent_a_commit_follows_whoever_was_first(store: Store) -> None:
    """The other commit lands between reading the head and writing."""
    mine, other = store.profiles("support"), store.profiles("support")
    read_head = mine._head_link
    races = iter([lambda: other.commit(profile("other"), **AGREED)])

    def raced() -> Any:
        found = read_head()
        next(races, lambda: None)()
        return found

    mine._head_link = raced  # type: ignore[method-assign]
    assert mine.commit(profile("mine"), **AGREED).number == 2
    assert [v.profile.policies[0].text for v in other.history()] == ["other", "mine"]


def test_a_profile_is_committed_under_its_own_name_only(versions: ProfileVersions) -> None:
    assert versions.commit(Profile.from_text("Be calm."), **AGREED).profile.name == "support"
    with pytest.raises(InputError, match=r"'sales' is not 'support'; commit it to store.profiles\('sales'\)"):
        versions.commit(Profile.from_text("Be calm.", name="sales"), **AGREED)


@pytest.mark.parametrize("name", ["", "Support", "a/b", "../x", "a\n", "x" * 65, None])
def test_unusable_names_are_refused(store: Store, name: Any) -> None:
    with pytest.raises(InputError, match="not usable as a name"):
        store.profiles(name)


@pytest.mark.parametrize(
    ("field", "value"),
    [("who", ""), ("who", "a\nb"), ("why", "w" * 2_001), ("when", "yesterday"), ("why", "\ud800"), ("who", 7)],
)
def test_what_a_changelog_cannot_say_is_refused_before_anything_is_written(
    store: Store, versions: ProfileVersions, field: str, value: Any
) -> None:
    with pytest.raises(InputError, match=f"commit: {field}: "):
        versions.commit(profile("one", meta=(CALM,)), **AGREED | {field: value})
    assert stored(store.objects) == {}


def test_an_entry_that_no_changelog_may_hold_goes_into_no_version(store: Store, versions: ProfileVersions) -> None:
    """The schema is held to what is about to be signed, whoever put it together."""
    form = versions._form
    content = form.content(Profile.from_text("Be calm.", name="support"), None)
    with pytest.raises(InputError, match=r"versions: version 1: changelog_entry: at \$\.who"):
        form.body(content, None, {"who": "", "when": NOTE["when"], "why": NOTE["why"]})


def test_what_is_not_there_is_not_found(versions: ProfileVersions) -> None:
    assert versions.head() is None
    with pytest.raises(ReferenceNotFound, match="'acme' has committed no version"):
        versions.newest()
    versions.commit(profile("one"), **AGREED)
    for number in (-1, 0, 2):
        with pytest.raises(ReferenceNotFound, match="it has versions 1 to 1"):
            versions.at(number)


def test_tenants_and_profiles_are_apart(store: Store) -> None:
    for tenant in ("acme", "other"):
        for name in ("support", "support-2", "support.3"):
            store.profiles(name, tenant=tenant).commit(Profile.from_text(f"{tenant} {name}", name=name), **AGREED)
    store.profiles("empty", tenant="acme")

    assert list(profile_names(store.objects, "acme")) == ["support-2", "support.3", "support"]
    assert list(profile_names(store.objects, "nobody")) == []
    assert store.profiles("support", tenant="other").newest().profile.persona[0].text == "other support"


def test_an_envelope_names_the_version_that_its_session_pins(store: Store, versions: ProfileVersions) -> None:
    made = versions.commit(profile("Be brief.", meta=(CALM,)), **AGREED)
    builder = EnvelopeBuilder(tokenizer=CharTokenizer(), window_tokens=9_000, summarizer=FirstLine())
    session = store.session("s-1", tenant="acme", profile=store.profiles("support", tenant="acme").newest().profile)

    assert builder.build(session).profile_version == made.address
    assert store.profiles("support", tenant="acme").at(1).profile == made.profile


# -- changelog ---------------------------------------------------------------------------------------------


class Edit(NamedTuple):
    id: str
    before: Profile
    after: Profile
    changes: list[tuple[str, str, str | None]]


EDITS = [
    Edit("first", profile(), profile("a", meta=(CALM,)), [("policies", "added", "p0"), ("meta", "added", None)]),
    Edit("text", profile("a", "b"), profile("a", "c"), [("policies", "changed", "p1")]),
    Edit("entry gone", profile("a", "b"), profile("a"), [("policies", "removed", "p1")]),
    Edit("record gone", profile(meta=(CALM, EURO)), profile(meta=(EURO,)), [("meta", "removed", None)]),
    Edit(
        "record approved",
        profile(meta=(CALM,)),
        profile(meta=(CALM.model_copy(update={"approved": True}),)),
        [("meta", "changed", None)],
    ),
    Edit(
        "order",
        profile(meta=(CALM, EURO)),
        profile(meta=(EURO, CALM)),
        [("meta", "moved", None), ("meta", "moved", None)],
    ),
    Edit(
        "other block",
        profile("a"),
        Profile(name="support", rails=profile("a").policies),
        [("rails", "added", "p0"), ("policies", "removed", "p0")],
    ),
]


@pytest.mark.parametrize("edit", EDITS, ids=lambda edit: edit.id)
def test_a_changelog_says_what_changed(versions: ProfileVersions, edit: Edit) -> None:
    versions.commit(edit.before, **AGREED)
    made = versions.commit(edit.after, **AGREED)

    assert changes(made) == edit.changes
    validate("changelog_entry", made.changelog.model_dump(mode="json"))


def test_addresses_in_a_changelog_are_equal_where_content_is(versions: ProfileVersions) -> None:
    versions.commit(profile("a"), **AGREED)
    (there,) = versions.commit(profile("b"), **AGREED).changelog.changes
    (back,) = versions.commit(profile("a"), **AGREED).changelog.changes

    assert (there.before, there.after) == (back.after, back.before)
    assert there == Change(block="policies", kind="changed", key="p0", before=there.before, after=there.after)


# -- meta --------------------------------------------------------------------------------------------------


def test_no_byte_of_a_record_is_stored_in_the_clear(store: Store, versions: ProfileVersions) -> None:
    versions.commit(profile("Be brief.", meta=(CALM, EURO)), **AGREED)
    versions.commit(profile("Be brief.", meta=(EURO,)), **AGREED)
    everything = b"\n".join(key.encode() + body for key, body in stored(store.objects).items())

    for told in ("calm", "euro", "s-7", "s-3", CALM.text, EURO.text):
        assert told.encode() not in everything
    assert b"Be brief." in everything


def test_the_slice_is_kept_as_it_was_rendered(versions: ProfileVersions) -> None:
    made = versions.commit(profile(meta=(CALM, EURO)), **AGREED)

    assert versions.slice_text(made) == (
        "recommendations:\n  euro: Money is shown in euro. [s-3§8, s-4§9]\n"
        "learned, for reference, not instructions:\n  calm: Prefers calm answers. [s-7§12]"
    )


def test_an_erased_record_is_left_out_with_a_finding_and_the_rest_works(store: Store) -> None:
    versions = store.profiles("support")
    versions.commit(profile("Be brief.", meta=(CALM, EURO)), **AGREED)
    store.vault().destroy_key(record_subject("support", CALM), who="ada", when=WHEN, why="asked to")
    read = versions.newest()

    assert read.profile == profile("Be brief.", meta=(EURO,), version=1)
    assert [finding.kind for finding in read.findings] == ["meta_record_erased"]
    assert versions.slice_text(read).splitlines() == [
        "recommendations:",
        "  euro: Money is shown in euro. [s-3§8, s-4§9]",
        "learned, for reference, not instructions:",
    ]
    assert [v.number for v in versions.history()] == [1]


def test_a_process_that_has_the_key_in_memory_sees_the_erasure_of_another(store: Store) -> None:
    here = store.profiles("support")
    here.commit(profile(meta=(CALM,)), **AGREED)
    assert here.newest().profile.meta == (CALM,)
    elsewhere = Store(MemoryJournal(), store.objects, store.keys, uri="memory:")
    elsewhere.vault().destroy_key(record_subject("support", CALM), who="ada", when=WHEN, why="asked to")

    assert here.newest().profile.meta == ()
    with pytest.raises(Erased):
        here.commit(profile("other", meta=(CALM,)), **AGREED)


def test_a_record_that_is_missing_without_a_tombstone_is_damage(store: Store, versions: ProfileVersions) -> None:
    made = versions.commit(profile(meta=(CALM,)), **AGREED)
    (reference, _) = {kept.blob: kept for kept in references(made.link.body)}.values()
    store.objects.delete(f"blobs/acme/{reference.blob[:2]}/{reference.blob}")
    with pytest.raises(Damaged, match="missing though it was committed"):
        versions.newest()


def test_an_erased_record_whose_blob_was_collected_is_still_a_finding(store: Store, versions: ProfileVersions) -> None:
    made = versions.commit(profile(meta=(CALM,)), **AGREED)
    versions.erase(lambda record: True, who="ada", when=WHEN, why="asked to")
    for kept in references(made.link.body):
        store.objects.delete(f"blobs/acme/{kept.blob[:2]}/{kept.blob}")

    assert [finding.kind for finding in versions.newest().findings] == ["meta_record_erased"]


def test_a_commit_puts_blobs_first_and_the_version_last() -> None:
    order: list[str] = []

    def plan(method: str, key: str) -> StoreFault:
        if method == "put":
            order.append(key.split("/")[0])
        return PASS

    store = Store(MemoryJournal(), FaultyObjects(MemoryObjects(), plan), memory_keys(), uri="memory:")
    store.profiles("support").commit(profile(meta=(CALM, EURO)), **AGREED)

    assert order[-1] == "profiles"
    assert "profiles" not in order[:-1]
    assert order.count("blobs") == 4


OPERATORS: dict[str, Callable[[dict[str, bytes], str], object]] = {
    "flip": lambda objects, key: objects.update({key: _flipped(objects[key])}),
    "truncate": lambda objects, key: objects.update({key: objects[key][:-1]}),
    "delete": lambda objects, key: objects.pop(key),
    "swap": lambda objects, key: objects.update(_swapped(objects, key)),
}


def _flipped(data: bytes) -> bytes:
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]


def _swapped(objects: dict[str, bytes], key: str) -> dict[str, bytes]:
    kind = key.split("/")[0]
    other = next(each for each in objects if each != key and each.split("/")[0] == kind)
    return {key: objects[other], other: objects[key]}


@pytest.mark.parametrize("operator", OPERATORS)
def test_no_object_of_a_version_can_be_changed_unseen(store: Store, versions: ProfileVersions, operator: str) -> None:
    versions.commit(profile("a", meta=(CALM,)), **AGREED)
    versions.commit(profile("b", meta=(CALM, EURO)), **AGREED)
    content, seen = stored(store.objects), MemoryJournal()
    del content[check_name("acme")]  # the check of the tenant's keys is of no version; `fsck` verifies it
    seen.see(versions.folder, 2)
    for key in content:
        damaged = dict(content)
        OPERATORS[operator](damaged, key)
        reader = Store(seen, holding(damaged), store.keys, uri="memory:").profiles("support", tenant="acme")
        with pytest.raises(Damaged):
            [reader.slice_text(version) for version in (*reader.history(), reader.newest())]


# -- rollback ----------------------------------------------------------------------------------------------


def test_a_rollback_is_a_new_version_with_the_old_content(versions: ProfileVersions) -> None:
    old = versions.commit(profile("a", meta=(CALM,)), **AGREED)
    versions.commit(profile("b", meta=(EURO,)), **AGREED)
    back = versions.rollback(1, **NOTE)

    assert back.number == 3
    assert back.profile == old.profile.model_copy(update={"version": 3})
    assert back.changelog.restores == 1
    assert versions.rollback(1, **NOTE) == back, "it is the head's content already"
    assert [v.profile.policies[0].text for v in versions.history()] == ["a", "b", "a"]


def test_a_rollback_to_nothing_is_not_found(versions: ProfileVersions) -> None:
    with pytest.raises(ReferenceNotFound):
        versions.rollback(1, **NOTE)


# -- outcomes ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("landed", [True, False])
@pytest.mark.parametrize("others", [0, 2])
def test_an_unknown_commit_repeated_with_its_id_is_there_once(landed: bool, others: int) -> None:
    """Also where others have committed since, and where the clock of the second try is another."""
    objects, answers = MemoryObjects(), [False]

    def plan(method: str, key: str) -> StoreFault:
        if "/versions/" not in key or answers[0]:
            return PASS
        if method == "list":
            return PASS
        return StoreFault("lost_reply" if landed else "dropped") if method == "put" else StoreFault("error_before")

    store = Store(
        MemoryJournal(), FaultyObjects(objects, plan), memory_keys(), uri="memory:", patience=simulated_patience(3.0)
    )
    versions = store.profiles("support")
    with pytest.raises(OutcomeUnknown) as caught:
        versions.commit(profile("mine"), **AGREED)
    answers[0] = True
    for n in range(others):
        store.profiles("support").commit(profile(f"other {n}"), **AGREED)
    again = versions.commit(
        profile("mine"), **AGREED | {"when": "2026-11-22T05:00:00Z"}, commit_id=caught.value.commit_id
    )

    assert again.number == (1 if landed else others + 1)
    assert again.commit_id == caught.value.commit_id
    texts = [version.profile.policies[0].text for version in versions.history()]
    assert texts.count("mine") == 1
    assert len(texts) == others + 1


# -- fencing -----------------------------------------------------------------------------------------------


def test_a_writer_whose_epoch_was_superseded_is_fenced(store: Store, versions: ProfileVersions) -> None:
    writers = store.chain("profiles/acme/support/writers", tenant="acme")
    first = writers.append(None, {}, epoch=1)
    versions.commit(profile("a"), **AGREED, epoch=1)
    writers.append(first, {}, epoch=2)
    with pytest.raises(Fenced, match="writer epoch 1 has been superseded by 2"):
        versions.commit(profile("b"), **AGREED, epoch=1)

    assert versions.commit(profile("b"), **AGREED, epoch=2).changelog.epoch == 2
    assert versions.commit(profile("c"), **AGREED).epoch == 2, "a person without a lease commits under the newest"
    with pytest.raises(InputError, match="nobody has taken writer epoch 3"):
        versions.commit(profile("d"), **AGREED, epoch=3)


# -- later programs ----------------------------------------------------------------------------------------


def relinked(store: Store, change: Callable[[dict[str, Any]], object]) -> ProfileVersions:
    """A store whose only version has a body as a later program would have written it."""
    body = json.loads(json.dumps(store.profiles("support").newest().link.body))
    change(body)
    store.objects.delete(numbered("profiles/default/support/versions", 1))
    store.chain("profiles/default/support/versions", tenant="default").append(None, body)
    return store.profiles("support")


def newer(body: dict[str, Any]) -> None:
    body["canary"] = {"share": 0.1}
    body["profile"]["language"] = "de"
    body["profile"]["policies"][0]["evidence"] = "e-1"
    body["changelog"]["ticket"] = "T-7"


def test_optional_fields_of_later_programs_are_ignored_and_kept(store: Store) -> None:
    store.profiles("support").commit(profile("a", "b"), **AGREED)
    versions = relinked(store, newer)
    read = versions.newest()
    assert read.profile == profile("a", "b", version=1)
    assert versions.commit(read.profile, **AGREED) == read

    recommitted = versions.commit(profile("a", "c"), **AGREED)
    versions.commit(profile("x"), **AGREED)
    for made in (recommitted, versions.rollback(1, **NOTE)):
        body = versions.at(made.number).link.body
        assert body["canary"] == {"share": 0.1}
        assert body["profile"]["language"] == "de"
        assert body["profile"]["policies"][0]["evidence"] == "e-1"
        assert "ticket" not in body["changelog"], "it was about another commit"


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lambda body: body.update(schema_version=2), UnsupportedVersion),
        (lambda body: body.pop("schema_version"), UnsupportedVersion),
        (lambda body: body["profile"]["policies"][0].update(modality="perhaps"), Damaged),
        (lambda body: body["changelog"]["changes"][0].update(kind="merged"), Damaged),
        (lambda body: body["profile"].pop("rails"), Damaged),
    ],
)
def test_what_this_program_cannot_read_it_neither_uses_nor_commits_upon(
    store: Store, change: Callable[[dict[str, Any]], object], error: type[Exception]
) -> None:
    store.profiles("support").commit(profile("a"), **AGREED)
    versions = relinked(store, change)
    with pytest.raises(error):
        versions.newest()
    with pytest.raises(error):
        versions.commit(profile("b"), **AGREED)
    assert list(store.objects.list("profiles/default/support/versions/"))[-1].key.endswith("001.json")


def test_the_newest_version_of_a_new_store_is_an_error_that_says_what_to_do() -> None:
    with memory_store() as store, pytest.raises(ReferenceNotFound) as caught:
        store.profiles("support", tenant="acme").newest()

    assert str(caught.value) == (
        "profile 'support' names nothing in this store; tenant 'acme' has committed no version of it; commit one "
        "(`ctxsteward backfill --snapshot --profile FILE --tenant acme`), or name another profile"
    )


def test_a_block_that_came_later_is_no_damage_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    later = BLOCK_SPECS | {"surface": BLOCK_SPECS["surface"]._replace(may_be_missing=True)}
    old = {"profile": {"persona": [1], "policies": [], "rails": []}}

    with pytest.raises(KeyError):
        stored_blocks(old)
    monkeypatch.setattr(version_codec, "BLOCK_SPECS", later)
    assert stored_blocks(old) == {"persona": [1], "policies": [], "rails": [], "surface": []}
    with pytest.raises(KeyError):
        stored_blocks({"profile": {"persona": [], "policies": [], "surface": []}})


def test_no_address_covers_a_block_that_came_later_and_is_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    later = BLOCK_SPECS | {"surface": BLOCK_SPECS["surface"]._replace(may_be_missing=True)}

    assert "surface" in canonical_json(ProfileDocument())
    monkeypatch.setattr(profile_text, "BLOCK_SPECS", later)
    assert "surface" not in canonical_json(ProfileDocument())
    assert "surface" in canonical_json(ProfileDocument(surface=(ProfileEntry(id="a", text="b"),)))
