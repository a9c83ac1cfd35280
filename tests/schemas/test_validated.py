"""Published documents are held against their schemas where they are written, and what is refused is counted."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pydantic import BaseModel, ValidationError

from ctxsteward.console.terminal.output import print_document
from ctxsteward.envelope import Budgets, EnvelopeBuilder, Profile, open_store
from ctxsteward.envelope.cascade.config import load_cascade
from ctxsteward.envelope.testing import CharTokenizer
from ctxsteward.evals import result_history as history
from ctxsteward.schemas import Bullet, CompressionReport, Finding, InputError, SummarizerInput, Summary
from ctxsteward.schemas.cascade import Cascade
from ctxsteward.schemas.errors import violations
from ctxsteward.schemas.profile import MetaRecord, ProfileDocument
from ctxsteward.schemas.publish import validate, validate_quickly
from ctxsteward.steward import Ledger
from ctxsteward.steward.admission import AdmissionPolicy
from ctxsteward.steward.drift.report import report
from ctxsteward.steward.gate.port import GateReport
from ctxsteward.steward.ledger.records import JudgementContext
from ctxsteward.steward.release.promotion import kept_promotion

from ..evals.suites.made import made, played
from ..steward.scenes import AGENT, TENANT, artifact, memory_store

REPORT = CompressionReport(
    id="a",
    section="dynamic",
    pre_tokens=9,
    post_tokens=3,
    losses=(),
    kept_refs=(),
    policy="p",
    source_addresses=(),
    artifact="a",
    created_at=None,
).model_dump(mode="json")


def test_a_violation_names_file_path_and_what_was_found_and_is_counted() -> None:
    before = violations().get("compression_report", 0)

    with pytest.raises(InputError) as caught:
        validate("compression_report", REPORT | {"pre_tokens": "nine"}, "night.json:3")

    assert str(caught.value) == ('night.json:3: compression_report: at $.pre_tokens: found "nine"; expected integer')
    assert violations()["compression_report"] == before + 1


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param({"pre_tokens": True}, id="a truth value is no number"),
        pytest.param({"more": 1}, id="an unknown field"),
        pytest.param({"section": "tail"}, id="none of the names"),
        pytest.param({"kept_refs": [1]}, id="inside a list"),
        pytest.param({"losses": [{"kind": "url"}]}, id="inside another value"),
    ],
)
def test_what_the_schema_refuses_the_quick_way_does_not_let_pass(wrong: dict[str, object]) -> None:
    validate("compression_report", REPORT)
    with pytest.raises(InputError, match=r"^compression_report: at \$"):
        validate("compression_report", REPORT | wrong)


def test_what_a_schema_wants_written_out_may_not_be_left_to_a_default() -> None:
    finding = Finding(kind="loss", text="…").model_dump(mode="json")
    validate("finding", finding)
    del finding["ref"]

    with pytest.raises(InputError, match=r"finding: at \$: found no 'ref'"):
        validate("finding", finding)


def test_a_command_prints_no_document_that_is_none(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(InputError, match="compression_report: at"):
        print_document("compression_report", [REPORT, {}])
    assert capsys.readouterr().out == ""

    print_document("compression_report", [REPORT])
    assert json.loads(capsys.readouterr().out) == [REPORT]


def test_the_quick_check_of_the_request_path_refuses_with_the_same_words() -> None:
    validate_quickly("compression_report", REPORT)

    with pytest.raises(InputError, match=r"compression_report: at \$.pre_tokens: found \"nine\"; expected integer"):
        validate_quickly("compression_report", REPORT | {"pre_tokens": "nine"})


# -- the doors ---------------------------------------------------------------------------------------------


class Door(NamedTuple):
    """Where a document is read or written, and a bad one."""

    id: str
    document: str
    says: str
    """Place, path and what was found."""
    go: Callable[[Path], object]
    """Takes a bad document through the door; an error that is no exception is raised as one."""


def reads(read: Callable[[Path], object], name: str, text: str) -> Callable[[Path], object]:
    def go(folder: Path) -> object:
        (folder / name).write_text(text)
        return read(folder / name)

    return go


def told(findings: Iterable[Finding]) -> None:
    raise InputError("; ".join(finding.text for finding in findings))


def results(wrong: dict[str, object]) -> str:
    return json.dumps(made(played(0, 10, 10)).model_dump(mode="json") | wrong) + "\n"


def appended(folder: Path) -> None:
    history.append(folder / "history.jsonl", [made(played(0, 10, 10)).model_copy(update={"turns": "many"})])


def promoted(folder: Path) -> None:
    challenger = Profile.from_text("Be calm.", name="support")
    drift = report(None, challenger).model_copy(update={"level": "FINE"})
    gate = GateReport(suite="made", results=(), pairs=(), digests=("", ""))
    with memory_store() as store:
        kept_promotion(store, store.profiles("support"), None, challenger, drift, gate, (), None, "c1")


def judged(folder: Path) -> None:
    with memory_store() as store, Ledger.open(":memory:", store, TENANT, AGENT) as ledger:
        for who in ("ann", "bob"):
            ledger.absorb(artifact(store, f"s-{who}", ["Use metric units."], principal=who, reach="shared"))
        ledger.judged(JudgementContext(run="a b", policy=AdmissionPolicy(independent_principals=2)))


def summarized(folder: Path) -> None:
    def numbers(source: SummarizerInput, *, budget_tokens: int) -> Summary:
        return Summary(bullets=(Bullet.model_construct(text=7, citations=(source.messages[0].ref,)),))

    session = open_store("memory:").session("s")
    budgets = Budgets(dynamic_tokens=400)
    builder = EnvelopeBuilder(tokenizer=CharTokenizer(), budgets=budgets, summarizer=numbers)
    for number in range(30):
        session.append({"role": "user", "content": f"Question {number} about the order."})
        session.append({"role": "assistant", "content": f"Answer {number} about the order."})
    told(builder.build(session).findings)


def cut(folder: Path) -> None:
    records = tuple(
        MetaRecord(id=f"r-{n}", text=f"Insight number {n} of the desk.", sources=("s§1",)) for n in range(5)
    )
    plain = Profile.from_text("Be calm.", name="support").model_copy(update={"meta": records})
    session = open_store("memory:").session("s", profile=Profile.from_document(plain))
    session.append({"role": "user", "content": "Hello."})
    clock: Any = lambda: 7  # noqa: E731
    EnvelopeBuilder(tokenizer="o200k_base", budgets=Budgets(meta_tokens=60), now=clock).build(session)


CASCADE = "cascade_id: c\nphases:\n- name: one\n  instructions: x\n  context: {include_input: 7}\n"
DOORS = [
    Door(
        "a profile read: a wrong type",
        "profile",
        "profile.yaml:3: persona.voice.locked: the number 7",
        reads(Profile.load, "profile.yaml", "persona:\n  voice: {text: calm,\n    locked: 7}\n"),
    ),
    Door(
        "a profile read: an unknown field",
        "profile",
        "profile.yaml:1: persons: ",
        reads(Profile.load, "profile.yaml", "persons: {}\n"),
    ),
    Door(
        "a cascade read",
        "cascade",
        "cascade.yaml:5: phases[0].context.include_input: the number 7",
        reads(load_cascade, "cascade.yaml", CASCADE),
    ),
    Door(
        "a history read: what the model would convert",
        "eval_result",
        'history.jsonl:1: eval_result: at $.turns: found "9"; expected integer',
        reads(history.read, "history.jsonl", results({"turns": "9"})),
    ),
    Door(
        "a history read: what the model refuses",
        "eval_result",
        "history.jsonl:1: not a result (passed: ",
        reads(history.read, "history.jsonl", results({"passed": "perhaps"})),
    ),
    Door(
        "a result written",
        "eval_result",
        'history.jsonl: eval_result: at $.turns: found "many"; expected integer',
        appended,
    ),
    Door(
        "a drift report kept",
        "drift_report",
        'support: commit c1: drift_report: at $.level: found "FINE"; expected INFO, WARN, BLOCK',
        promoted,
    ),
    Door("a record for many", "meta_recommendation", ': meta_recommendation: at $.run: found "a b"', judged),
    Door(
        "a summary",
        "summary",
        "the summarizer returned no summary: summary: at $.bullets[0].text: found 7; expected string",
        summarized,
    ),
    Door(
        "a report of meta",
        "compression_report",
        "session 's': report of meta: compression_report: at $.created_at: found 7; expected string or null",
        cut,
    ),
]


@pytest.mark.parametrize("door", DOORS, ids=[door.id for door in DOORS])
def test_each_door_refuses_a_bad_document_with_place_and_path_and_counts_it_once(door: Door, tmp_path: Path) -> None:
    before = Counter(violations())

    with pytest.raises(InputError) as caught:
        door.go(tmp_path)

    assert door.says in str(caught.value)
    assert Counter(violations()) - before == {door.document: 1}


def test_a_chat_service_tells_how_many_documents_were_refused() -> None:
    done = subprocess.run([sys.executable, "-c", SERVICE], capture_output=True, text=True, timeout=60, check=True)

    assert done.stdout.split() == ["False", "0", "1"]


SERVICE = """
import sys
from ctxsteward.envelope import instruments
from ctxsteward.store.profiles.text import Profile
from opentelemetry import metrics
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

reader = InMemoryMetricReader()
metrics.set_meter_provider(MeterProvider(metric_readers=[reader]))
instruments.board().offer()

def refused():
    (scope,) = reader.get_metrics_data().resource_metrics[0].scope_metrics
    (found,) = [metric for metric in scope.metrics if metric.name == "schema_violation.count"]
    return {point.attributes["what"]: point.value for point in found.data.data_points}["document"]

before = refused()
try:
    Profile.from_yaml("persona: {voice: {text: 7}}")
except ValueError:
    pass
print("ctxsteward.steward" in sys.modules, before, refused())
"""


# -- why a profile or a cascade that was read needs no second check -------------------------------------------


PROFILE: Any = {
    "name": "support",
    "version": 3,
    "policies": [
        {
            "id": "refunds",
            "text": "Up to 50.",
            "modality": "may",
            "polarity": "positive",
            "value": 50,
            "unit": "EUR",
            "locked": True,
        }
    ],
    "meta": [
        {
            "id": "pool",
            "text": "Pool exhaustion precedes 504s.",
            "sources": ["s-1§4"],
            "approved": False,
            "ts": "2026-11-22",
        }
    ],
}
RUN: Any = {
    "cascade_id": "c",
    "phases": [
        {"name": "one", "instructions": "x", "rules": {"max_turns": 3}},
        {
            "name": "two",
            "instructions": "y",
            "context": {
                "from": [{"phase": "one", "include": ["output"], "images_count": 2, "filter": "all"}],
                "include_input": False,
            },
        },
    ],
}
OTHERS = ("7", "true", 7, 1, 1.0, 0.5, True, None, [], ["7"], [7], {}, {"7": 7})


def changed(value: Any) -> Iterator[Any]:
    """The same document with one place of it replaced by each of `OTHERS`."""
    yield from OTHERS
    places = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in places:
        for other in changed(inner):
            copy = value.copy()
            copy[key] = other
            yield copy


@pytest.mark.parametrize(
    ("name", "model", "sample"),
    [
        ("profile", ProfileDocument, PROFILE),
        ("cascade", Cascade, RUN),
    ],
)
def test_what_the_model_of_a_file_lets_pass_its_schema_lets_pass(
    name: str, model: type[BaseModel], sample: Any
) -> None:
    model.model_validate(sample)
    passed = []
    for document in changed(sample):
        with suppress(ValidationError):
            model.model_validate(document)
            passed.append(document)

    assert len(passed) > 10
    for document in passed:
        validate(name, document)
