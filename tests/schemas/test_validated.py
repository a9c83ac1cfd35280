"""Published documents are held against their schemas where they are written, and what is refused is counted."""

from __future__ import annotations

import json

import pytest

from ctxsteward.console.output import print_document
from ctxsteward.schemas import CompressionReport, Finding, InputError
from ctxsteward.schemas.publish import validate, validate_quickly, violations

REPORT = CompressionReport(
    id="a", section="dynamic", pre_tokens=9, post_tokens=3, losses=(), kept_refs=(), policy="p", source_addresses=(),
    artifact="a", created_at=None,
).model_dump(mode="json")  # fmt: skip


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
