"""Which answers are errors, and which code they have."""

from __future__ import annotations

import json
from pathlib import Path

from hypothesis import given, settings, strategies as st
from ruamel.yaml import YAML

from ctxsteward.steward.harvest.tools.error_codes import ERROR_CODES, SPAN_CHARS, failure

from ....examples import examples

ANSWERS = YAML(typ="safe").load(Path(__file__).with_name("answers.yaml"))


def test_errors_have_a_code_and_their_words_in_other_text_are_no_error() -> None:
    found = {text: failure(text) for text in [*(text for _, text in ANSWERS["errors"]), *ANSWERS["fine"]]}
    codes = {text: failed and failed.code for text, failed in found.items()}
    assert codes == {text: code for code, text in ANSWERS["errors"]} | dict.fromkeys(ANSWERS["fine"])


def test_a_flagged_answer_is_an_error_even_if_empty() -> None:
    assert failure("all went well", is_error=True) is not None
    empty = failure("", is_error=True)
    assert empty is not None
    assert (empty.code, empty.start, empty.stop) == ("other", 0, 0)


def test_an_error_at_the_end_of_a_long_log_is_found_and_one_in_its_middle_is_not() -> None:
    log = "line of a log\n" * 20_000
    assert failure(f"{log}Error: disk not found\n") is not None
    assert failure(f"{log}Error: disk not found\n{log}") is None


@settings(max_examples=examples(100))
@given(
    st.text(), st.sampled_from(("", "Error: ", '{"error": "', "Traceback (most recent call last):\n")), st.booleans()
)
def test_a_span_lies_in_its_answer_and_is_short(text: str, lead: str, flagged: bool) -> None:
    found = failure(lead + text, is_error=flagged)
    if found is not None:
        assert 0 <= found.start <= found.stop <= len(lead + text)
        assert found.stop - found.start <= SPAN_CHARS
        assert found.code in ERROR_CODES


KEYS = st.sampled_from(("error", "status", "code", "message", "x"))
SCALARS = st.none() | st.booleans() | st.integers() | st.text()


@settings(max_examples=examples(100))
@given(st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner)))
def test_any_json_is_judged(value: object) -> None:
    failure(json.dumps(value))
