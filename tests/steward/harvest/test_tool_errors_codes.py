"""Which answers are errors, and which code they have."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxsteward.steward.harvest.tools.error_codes import ERROR_CODES, SPAN_CHARS, failure

ERRORS = (
    # JSON
    ('{"error": {"code": 404, "message": "no such order"}}', "not_found"),
    ('{"error": "rate limit reached"}', "rate_limited"),
    ('{"status": "failed", "message": "nope"}', "other"),
    ('{"success": false, "msg": "日期格式不正确"}', "invalid_argument"),
    ('{"exit_code": 127, "stderr": "bash: foo: command not found"}', "unknown_tool"),
    ('{"errors": [{"message": "Field required", "loc": ["body", "date"]}]}', "missing_argument"),
    ('{"statusCode": 402, "title": "declined"}', "payment"),
    ('{"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}', "unavailable"),
    ('{"isError": true, "message": "Permission denied"}', "permission"),
    ('{"errcode": 40001, "errmsg": "参数错误"}', "invalid_argument"),
    ("{'error': 'user not found'}", "not_found"),
    # plain text, English
    ("Error: payment method not found", "payment"),
    ("Error: not enough seats on flight", "insufficient"),
    ("Error: certificate cannot be used to update reservation", "state"),
    ("User not found", "not_found"),
    ("Error: no such file", "not_found"),
    ("Error: none of the fields is valid", "other"),
    ("Invalid date format. Use YYYY-MM-DD", "invalid_argument"),
    ("HTTP 503 Service Unavailable", "unavailable"),
    ("Request failed with status code 429", "rate_limited"),
    ("Cannot process: order already cancelled", "state"),
    ("Error executing tool foo: connection refused", "connection"),
    ("Error: Unknown tool: frobnicate", "unknown_tool"),
    ("401 Client Error: Unauthorized for url", "authentication"),
    ("Error: email already exists", "conflict"),
    ("Error: the file is too large", "too_large"),
    ("Error: you are not allowed to do that", "permission"),
    ("<error>timed out</error>", "timeout"),
    # Python
    ("TypeError: f() got an unexpected keyword argument 'x'", "unexpected_argument"),
    ("f() missing 1 required positional argument: 'b'", "missing_argument"),
    ("Traceback (most recent call last):\n  File 'a'\nValueError: could not convert string", "invalid_argument"),
    ("running\nTraceback (most recent call last):\n  File 'a'\nModuleNotFoundError: No module named 'x'\n$", "import"),
    ("=== 2 failed, 1 passed in 3s ===", "assertion"),
    ("psycopg2.errors.UniqueViolation: duplicate key", "conflict"),
    # shells and compilers
    ("bash: foo: command not found", "unknown_tool"),
    ("ls: cannot access x: No such file or directory", "not_found"),
    ("main.c:3:5: error: expected ';'", "invalid_argument"),
    ("usage: x [-h]\nx: error: unrecognized arguments: --foo", "unexpected_argument"),
    ("Your proposed edit has introduced new syntax error(s).\nERRORS:\n- E999", "syntax"),
    ("EXECUTION TIMED OUT", "timeout"),
    ("cp: cannot create regular file: Permission denied", "permission"),
    # Chinese
    ("错误：余额不足", "payment"),
    ("错误：库存不足", "insufficient"),
    ("订单不存在", "not_found"),
    ("操作失败：请先登录", "state"),
    ("缺少参数 date", "missing_argument"),
    ("请求失败：网络超时", "timeout"),
    ("异常：权限不足", "permission"),
    ("错误：语法错误，第 3 行", "syntax"),
)
FINE = (
    "", "[]", "null", "0", "OK", "Transfer successful",
    '{"error": null, "data": 1}', '{"errors": [], "items": []}', '{"code": 0, "message": "ok"}', '{"error": "none"}',
    '{"id": 3, "name": "job", "owner": "ann", "queue": "q", "status": "failed"}',
    '{"exit_code": 0, "stdout": "error handling is in errors.py"}',
    "No errors: all fine", "Error: 0", "errors: none", "errors: 0, warnings: 2", "Found 3 errors: see log",
    "0 failed, 12 passed",
    "Subject: Error in your invoice\nDear Ann, we found a mistake in the invoice of May.",
    "The payment failed because the card was old, so we sent a letter in which all of it was told.\n" * 3,
    "[File: a.py (3 lines total)]\n1:def f():\n2:    raise ValueError('no such file')\n3:\n",
    "Script completed successfully, no errors. Result: True",
    "查询成功：共 3 条，无错误",
)  # fmt: skip


@pytest.mark.parametrize(("text", "code"), ERRORS, ids=[text[:40] for text, _ in ERRORS])
def test_errors_have_a_code(text: str, code: str) -> None:
    found = failure(text)
    assert found is not None
    assert found.code == code


@pytest.mark.parametrize("text", FINE, ids=[text[:40] for text in FINE])
def test_words_of_errors_in_other_text_are_no_error(text: str) -> None:
    assert failure(text) is None


def test_a_flagged_answer_is_an_error_even_if_empty() -> None:
    assert failure("all went well", is_error=True) is not None
    empty = failure("", is_error=True)
    assert empty is not None
    assert (empty.code, empty.start, empty.stop) == ("other", 0, 0)


def test_an_error_at_the_end_of_a_long_log_is_found_and_one_in_its_middle_is_not() -> None:
    log = "line of a log\n" * 20_000
    assert failure(f"{log}Error: disk not found\n") is not None
    assert failure(f"{log}Error: disk not found\n{log}") is None


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


@given(st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner)))
def test_any_json_is_judged(value: object) -> None:
    failure(json.dumps(value))
