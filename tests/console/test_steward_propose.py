"""``ctxsteward steward propose``: what it stages, what it carries over, what it leaves out, and what it refuses."""

from __future__ import annotations

from pathlib import Path
from shutil import copytree
from typing import Any, NamedTuple

import pytest

from ctxsteward.console.steward import sample as steward_shipped
from ctxsteward.envelope import open_store

from .steward_scenes import people, run, value

KEYS = [
    "outcome", "profile", "parent", "author", "request", "state", "people", "level", "touched", "touches_locked",
    "obstacle", "why", "changes", "drift", "gate", "findings", "dry_run",
]  # fmt: skip
HOURS = "meta:\n  hours: {text: The desk answers until eight in the evening., sources: [SOURCE]}\n"


@pytest.fixture(scope="module")
def night(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store after one night on the shipped transcripts, with people: version 2 has learned something."""
    folder = tmp_path_factory.mktemp("night") / "store"
    run("run", "--store", f"file:{folder}")
    return folder


class Desk(NamedTuple):
    root: Path
    tokens: dict[str, str]

    @property
    def where(self) -> tuple[str, str]:
        return "--store", f"file:{self.root / 'store'}"

    def file(self, *edits: tuple[str, str], more: str = "") -> str:
        """The profile that the chain began with, edited."""
        text = (steward_shipped._shipped_folder() / "profile.yaml").read_text(encoding="utf-8")
        for old, new in edits:
            assert old in text
            text = text.replace(old, new)
        path = self.root / "desk.yaml"
        path.write_text(text + more, encoding="utf-8")
        return str(path)

    def propose(self, *args: str, who: str = "ada", code: int = 0) -> Any:
        return value("propose", *args, "--token", self.tokens[who], *self.where, code=code)

    def agree(self, request: str, *names: str) -> Any:
        for name in names:
            run("review", request, "--approve", "--token", self.tokens[name], *self.where)
        return value("promote", request, "--token", self.tokens["otto"], *self.where)

    def head(self) -> Any:
        with open_store(self.where[1]) as store:
            return store.profiles("fernhollow-desk").newest().profile

    def objects(self) -> dict[Path, bytes]:
        return {path: path.read_bytes() for path in (self.root / "store" / "objects").rglob("*.*") if path.is_file()}


@pytest.fixture
def desk(night: Path, tmp_path: Path) -> Desk:
    folder = Path(copytree(night, tmp_path / "store"))
    return Desk(tmp_path, people(folder))


def test_a_change_of_the_persona_goes_from_a_file_into_force_with_one_other_person(desk: Desk) -> None:
    learned = desk.head().meta
    assert learned, "the night has learned something"
    found = desk.propose(desk.file(("friendly and brief", "calm and brief")), "--note", "warmer words")

    assert list(found) == KEYS
    assert (found["outcome"], found["author"], found["people"], found["touched"]) == (
        "staged", "ada", 1, ["persona.voice"],
    )  # fmt: skip
    assert found["changes"] == [
        "~ persona.voice: friendly and brief; short sentences → calm and brief; short sentences"
    ]
    assert value("review", *desk.where, code=3)["requests"][0]["note"] == "warmer words"
    assert desk.agree(found["request"], "ben")["written"] is True
    head = desk.head()
    assert (head.version, head.persona[0].text, head.meta) == (3, "calm and brief; short sentences", learned)


def test_a_locked_line_asks_two_and_its_author_is_none_of_them(desk: Desk) -> None:
    found = desk.propose(desk.file(("Money goes back the way it came.", "Money goes back the way in which it came.")))

    assert (found["people"], found["touches_locked"]) == (2, True)
    said = run("review", found["request"], "--approve", "--token", desk.tokens["ada"], *desk.where, code=2).stderr
    assert "'ada' made this change; somebody else must approve it" in said
    run("review", found["request"], "--approve", "--token", desk.tokens["ben"], *desk.where)
    waits = value("promote", found["request"], "--token", desk.tokens["otto"], *desk.where, code=3)
    assert waits["why"] == f"1 of 2 must approve request {found['request']} still"


def test_the_same_file_again_stages_nothing_and_makes_no_version(desk: Desk) -> None:
    before, file = desk.objects(), desk.file()

    assert desk.propose(file)["outcome"] == "unchanged"
    assert "says that already; nothing was staged" in run("propose", file, "--dry-run", *desk.where).stdout
    assert value("run", "--profile", file, *desk.where)["version"] == 2
    assert desk.objects().keys() >= before.keys()
    assert len(value("log", *desk.where)) == 2


def test_a_dry_run_says_the_same_asks_nobody_and_keeps_nothing(desk: Desk) -> None:
    before, file = desk.objects(), desk.file(("friendly and brief", "calm and brief"))
    found = value("propose", file, "--dry-run", *desk.where)

    assert (found["dry_run"], found["outcome"], found["author"], found["people"]) == (True, "staged", "nobody", 1)
    assert desk.objects() == before
    assert desk.propose(file)["level"] == found["level"]


def test_sources_that_are_nowhere_keep_a_record_out_unless_people_vouch(desk: Desk) -> None:
    file = desk.file(more=HOURS.replace("SOURCE", "nobody-7§3"))
    found = desk.propose(file)
    assert (found["outcome"], [one["kind"] for one in found["findings"]]) == ("unchanged", ["meta_source_unresolved"])

    vouched = desk.propose(file, "--vouch", "hours")
    assert (vouched["outcome"], vouched["people"]) == ("staged", 1)
    assert (
        "record hours: nobody-7§3 cannot be resolved; it stays because it is vouched for"
        in vouched["findings"][0]["text"]
    )
    run("promote", vouched["request"], "--token", desk.tokens["otto"], *desk.where, code=3)
    desk.agree(vouched["request"], "ben")
    assert desk.head().meta[0].id == "hours"
    assert desk.propose(file)["outcome"] == "unchanged", "what is in force is not asked again"


def test_sources_that_were_harvested_resolve_and_the_record_still_needs_a_person(desk: Desk) -> None:
    source = desk.head().meta[0].sources[0]
    found = desk.propose(desk.file(more=HOURS.replace("SOURCE", source)))

    assert (found["outcome"], found["people"], found["findings"]) == ("staged", 1, [])


def test_a_candidate_of_a_night_becomes_an_entry_in_its_proposers_words(desk: Desk) -> None:
    record = value("review", "--all", *desk.where)["records"]
    shared = next(one for one in record if one["for"] == "everybody")
    words = "Say which order before booking anything."
    found = desk.propose("--record", shared["id"], "--to", "surface.booking", "--text", words, who="otto")

    assert (found["outcome"], found["people"], found["changes"]) == ("staged", 1, [f"+ surface.booking: {words}"])
    learned = desk.head().meta
    desk.agree(found["request"], "ada")
    assert (desk.head().surface[-1].text, desk.head().meta) == (words, learned)
    newest = value("log", *desk.where)[0]
    assert newest["who"] == "otto"
    assert f"from record {shared['id']}" in newest["why"]


def test_a_candidate_on_a_locked_entry_keeps_the_lock_and_asks_two(desk: Desk) -> None:
    shared = next(one for one in value("review", "--all", *desk.where)["records"] if one["for"] == "everybody")
    found = desk.propose(
        "--record", shared["id"], "--to", "policies.refunds", "--text", "Money goes back the way in which it came."
    )
    assert (found["people"], found["touches_locked"]) == (2, True)
    entry = next(line for line in found["changes"] if "policies.refunds" in line)
    assert entry.endswith("(modality must, locked yes)")


class Case(NamedTuple):
    id: str
    args: str
    """`FILE`: a changed profile; `RECORD`: a candidate for all; `PERSONAL`: of one person. The token is that of ada."""
    names: str
    code: int = 2


CASES = [
    Case("nothing", "", "say what to propose: a profile file, or --record"),
    Case("missing file", "nowhere.yaml", "nowhere.yaml: no such file"),
    Case("no profile", "BAD", "bad.yaml:1: personas: unknown key"),
    Case("another profile", "OTHER", "--profile-name sales: no such profile; tenant 'default' has fernhollow-desk"),
    Case("two names", "FILE --profile-name sales", "the file's profile is 'fernhollow-desk'; leave one out"),
    Case("no record", "--record ffff --to surface.x --text Yes.", "ffff: no record has this id"),
    Case("a record and a file", "FILE --record RECORD", "--record goes without a file"),
    Case("no entry told", "--record RECORD --text Yes.", "say which entry it becomes, such as --to surface.length"),
    Case("no words told", "--record RECORD --to surface.x", "write the entry in your own words: --text TEXT"),
    Case("no such block", "--record RECORD --to budgets.x --text Yes.", "'budgets' is no block of a profile"),
    Case("a key that is none", "--record RECORD --to surface.X! --text Yes.", "--to X!: "),
    Case("somebody's own record", "--record PERSONAL --to surface.x --text Yes.", "alone; a profile is for everybody"),
    Case("words without a record", "FILE --text Yes.", "--to and --text go with --record"),
    Case("vouching for nothing", "FILE --vouch hours", "meta.hours: the file has no such record to vouch for"),
    Case("unknown author", "FILE --as eve", "actor 'eve' is not in the configuration"),
    Case("somebody else's token", "FILE --as ben", "the token is not that of actor 'ben'"),
    Case("a token of nobody", "FILE --token 0123456789abcdef0123", "the token is not that of any actor"),
    Case("a long note", "FILE --note " + "x" * 501, "--note: 501 characters; write at most 500"),
    Case("nobody configured", "FILE --store file:alone", "nobody is configured to review"),
    Case("an empty store", "FILE --store file:bare", "make the first version with `ctxsteward steward run"),
]


@pytest.fixture(scope="module")
def still(night: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Desk, dict[str, str]]:
    """A desk that nobody's mistake changes, and what the words of `CASES` stand for."""
    root = tmp_path_factory.mktemp("still")
    copytree(night, root / "alone")
    desk = Desk(root, people(Path(copytree(night, root / "store"))))
    (root / "bad.yaml").write_text("personas: x\n", encoding="utf-8")
    (root / "other.yaml").write_text("name: sales\npersona: Be kind.\n", encoding="utf-8")
    with open_store(f"file:{root / 'bare'}"):
        pass
    records = value("review", "--all", *desk.where)["records"]
    return desk, {
        "FILE": desk.file(("friendly", "calm")), "BAD": "bad.yaml", "OTHER": "other.yaml",
        "RECORD": next(one["id"] for one in records if one["for"] == "everybody"),
        "PERSONAL": next(one["id"] for one in records if one["for"] != "everybody"),
    }  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_mistake_is_one_line_that_names_it(
    case: Case, still: tuple[Desk, dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    desk, words = still
    monkeypatch.chdir(desk.root)
    before = desk.objects()
    args = [words.get(word, word) for word in case.args.split()]
    args += [] if "--token" in args else ["--token", desk.tokens["ada"]]
    args += [] if "--store" in args else list(desk.where)
    result = run("propose", *args, code=case.code)

    assert result.stdout == ""
    assert result.stderr.startswith("ctxsteward: ")
    assert result.stderr.count("\n") == 1
    assert case.names in result.stderr
    assert desk.objects() == before
