"""What documents name exists: names of Python, files, tests, make targets, command lines and modules."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from .named_things import Named, Text, Tree, documents, named_in

OF_OTHERS: dict[str, list[str]] = YAML(typ="safe").load(
    Path(__file__).with_name("names_of_others.yaml").read_text(encoding="utf-8")
)
TREE = Tree()


def test_everything_that_a_document_names_exists() -> None:
    allowed = {name for names in OF_OTHERS.values() for name in names}
    looked_at, missing, used = Counter[str](), [], set()
    for document in documents():
        for named in named_in(document):
            looked_at[named.kind] += 1
            if TREE.has(named):
                continue
            if named.name in allowed:
                used.add(named.name)
            else:
                missing.append(f"{named.where}: {named.kind} {named.name}")
    least = {"dotted": 300, "path": 150, "identifier": 1000, "test": 100, "test name": 100, "command": 100, "make": 30}
    assert {kind: looked_at[kind] for kind, count in least.items() if looked_at[kind] < count} == {}
    assert missing == []
    assert allowed - used == set(), "no document names these any more: take them off the list of names of others"


@pytest.mark.parametrize(
    ("kind", "there", "gone"),
    [
        ("dotted", "ctxsteward.envelope.EnvelopeBuilder", "ctxsteward.envelope.EnvelopeMaker"),
        ("dotted", "release.assignment.profile_for", "release.canary.profile_from"),
        ("dotted", "EnvelopeBuilder.build", "EnvelopeBuilder.make_it"),
        ("dotted", "steward.release.assignment", "steward.release.assignments"),
        ("path", "steward/drift/rules", "steward/drift/no_rules"),
        ("path", "docs/benchmarks.md", "docs/benchmark.md"),
        ("path", "PATH/journal.sqlite", "PATH/journals.sqlite3"),
        ("test", "tests/test_docs.py::test_a_fence_says_what_it_is", "tests/test_docs.py::test_x"),
        ("identifier", "EnvelopeBuilder", "EnvelopeMakerOfOld"),
        ("make", "demo", "demonstration"),
        ("module", "benchmarks.bench", "benchmarks.benches"),
        ("command", "steward log --limit 2", "steward logs"),
        ("command", "evals run verbatim --gate", "evals run verbatim --gates-of-hell"),
    ],
)
def test_what_is_gone_is_found(kind: str, there: str, gone: str) -> None:
    assert TREE.has(Named("page.md", kind, there))
    assert not TREE.has(Named("page.md", kind, gone))


def test_names_are_found_in_prose_and_commands_in_code_blocks() -> None:
    page = "See `a.b` and\n`c/d.py`.\n\n    make demo\n\n```sh\nctxsteward steward log --limit 2 | head\n```\n"
    found = {(named.kind, named.name) for named in named_in(Text("page.md", page, is_page=True))}
    assert found == {("dotted", "a.b"), ("path", "c/d.py"), ("make", "demo"), ("command", "steward log --limit 2")}
