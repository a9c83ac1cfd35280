"""Redaction: what goes, what stays, and that nothing structural depends on it."""

from __future__ import annotations

import base64
import json
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from ctxsteward.envelope.transcripts.files import read_transcripts
from ctxsteward.schemas.message import take_wire
from ctxsteward.steward.ingest.redaction import Redactor, redacted_json

from ...examples import examples
from ...needs import PUBLIC_DATA

DATA = Path(__file__).parents[3] / "../shared/data"
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason=PUBLIC_DATA)
REDACT = Redactor()


def part(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


JWT = f"{part({'alg': 'HS256', 'typ': 'JWT'})}.{part({'sub': '1234567890'})}.{'k' * 43}"
KEY = f"-----BEGIN RSA PRIVATE KEY-----\n{'Ab+/' * 40}\n{'Cd09' * 40}\n-----END RSA PRIVATE KEY-----"


@dataclass(frozen=True)
class Case:
    id: str
    text: str
    becomes: str


GOES = (
    Case("email", "write to ada.lovelace+x@mail.example.co.uk, please", "write to [redacted:email], please"),
    Case("email in JSON", '{"email": "mia@example.com"}', '{"email": "[redacted:email]"}'),
    Case("email in Chinese", "我的邮箱是wei.zhang@example.cn，谢谢", "我的邮箱是[redacted:email]，谢谢"),
    Case("two emails", "a1@example.com b2@example.com", "[redacted:email] [redacted:email]"),
    Case("phone with brackets", "call (415) 555-2671 today", "call [redacted:phone] today"),
    Case("phone with dashes", "it is 212-736-5000.", "it is [redacted:phone]."),
    Case("phone with dots", "fax 212.736.5000", "fax [redacted:phone]"),
    Case("phone abroad", "ring +44 20 7946 0958 or +8613812345678", "ring [redacted:phone] or [redacted:phone]"),
    Case("bare phone after its word", "my phone number is 2127365000", "my phone number is [redacted:phone]"),
    Case("mobile", "手机13812345678，周三前", "手机[redacted:phone]，周三前"),
    Case("mobile with gaps", "联系我 138 1234 5678", "联系我 [redacted:phone]"),
    Case("mobile with dashes", "138-1234-5678", "[redacted:phone]"),
    Case("landline", "公司电话：010-62345678", "公司电话：[redacted:phone]"),
    Case("card", "pay with 4111 1111 1111 1111 now", "pay with [redacted:card] now"),
    Case("bare card", "card 5500005555555559", "card [redacted:card]"),
    Case("amex", "3782-822463-10005", "[redacted:card]"),
    Case("union pay", "卡号6225880137706868", "卡号[redacted:card]"),
    Case("ssn", "my SSN: 536-22-1234", "my SSN: [redacted:ssn]"),
    Case("bare ssn after its word", "social security number 536221234", "social security number [redacted:ssn]"),
    Case("resident number", "身份证号11010519491231002X。", "身份证号[redacted:national_id]。"),
    Case("aws", "AKIAIOSFODNN7EXAMPLE leaked", "[redacted:secret] leaked"),
    Case(
        "aws secret",
        "aws_secret_access_key = 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY'",
        "aws_secret_access_key = '[redacted:secret]'",
    ),
    Case("github", f"token ghp_{'a1B2' * 9}", "token [redacted:secret]"),
    Case("gitlab", f"use glpat-{'a1B2' * 5}", "use [redacted:secret]"),
    Case("slack", "xoxb-123456789012-abcdefABCDEF", "[redacted:secret]"),
    Case("stripe", "sk_live_" + "4eC39HqLyjWDarjtT1zdp7dc", "[redacted:secret]"),
    Case("openai", f"sk-proj-{'aB3d' * 12}", "[redacted:secret]"),
    Case("anthropic", f"key sk-ant-api03-{'aB3_' * 20}", "key [redacted:secret]"),
    Case("jwt", f"Authorization: Bearer {JWT}", "Authorization: Bearer [redacted:secret]"),
    Case("jwt alone", f"cookie={JWT};", "cookie=[redacted:secret];"),
    Case("telegram", f"12345678:{'AAbbCCddEE' * 3}fghij", "[redacted:secret]"),
    Case("twilio", f"AC{'0a1b2c3d' * 4}", "[redacted:secret]"),
    Case(
        "url with password", "postgres://app:s3cr3tpw@db.internal/x", "postgres://app:[redacted:secret]@db.internal/x"
    ),
    Case("private key", f"see\n{KEY}\nend", "see\n[redacted:private_key]\nend"),
    Case("private key cut off", KEY[:150], "[redacted:private_key]"),
    Case("assigned", 'db_password = "hunter2!"', 'db_password = "[redacted:secret]"'),
    Case("yaml", "api_key: 9f8e7d6c5b4a", "api_key: [redacted:secret]"),
    Case("said", "my password is Tr0ub4dor&3 ok", "my password is [redacted:secret] ok"),
    Case("said in Chinese", "密码是abc12345，别忘了", "密码是[redacted:secret]，别忘了"),
    Case("said with colon in Chinese", "口令：x9K2mm77", "口令：[redacted:secret]"),
)

STAYS = (
    Case("prose", "I prefer short answers, in metric units.", ""),
    Case("iso date", "from 2024-05-20 to 2024-05-27T10:30:00", ""),
    Case("date of birth", '{"dob": "1985-04-12", "zip": "94105-1234"}', ""),
    Case("order number", "order 1234567890 and #W2611340, item 9523456873", ""),
    Case("16-digit order number", "order 1234567890123456 was shipped", ""),
    Case("reservation", "reservation 3JA7XV, payment credit_card_4421486, gift_card_3112961", ""),
    Case("flight", "HAT136 and HAT039 cost 1200 and 1350", ""),
    Case("commit", "fixed in e3b0c44298fc1c149afbf4c8996fb92427ae41e4", ""),
    Case("short commit", "Merge 1458 from 8da1bdf into 1.458.0-dev13", ""),
    Case("sha256", "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", ""),
    Case("uuid", "id 550e8400-e29b-41d4-a716-446655440000", ""),
    Case("epoch", "at 1714521600 and 1714521600123 ms", ""),
    Case("numbers", "values 415 555 26 711 1000 2000 3000 4000", ""),
    Case("version", "python 3.11.4, numpy 1.26.4, 127.0.0.1:8080", ""),
    Case("amount", "it costs 1,234,567.89 or 12345678.90", ""),
    Case("path", "/usr/lib/python3.11/site-packages/marshmallow/fields.py:1474", ""),
    Case("talk of passwords", "I forgot my password, please reset the password for me", ""),
    Case("code about passwords", "def check(password, secret): return password == secret.strip()", ""),
    Case("code with tokens", "token = tokens[0]; next_token = self.tokenizer.next()", ""),
    Case("decorator", "@property\n@functools.lru_cache(maxsize=None)\ndef x(self): ...", ""),
    Case("at sign", "meet @ noon, user@host without a top", ""),
    Case("Chinese", "订单号是202405201234，请在周三前处理，共3件", ""),
    Case("Chinese password talk", "我忘记密码了，怎么重置密码？", ""),
    Case("not a card", "4111 1111 1111 1112", ""),
    Case("not a resident number", "110105194912310021", ""),
    Case("not an ssn", "000-12-3456 and 666-12-3456 and 900-12-3456", ""),
    Case("ref", "§128 and §7.2 and tool:3", ""),
)


@pytest.mark.parametrize("case", GOES, ids=lambda case: case.id)
def test_what_is_secret_or_personal_goes(case: Case) -> None:
    assert REDACT(case.text) == case.becomes


@pytest.mark.parametrize("case", STAYS, ids=lambda case: case.id)
def test_what_ordinary_transcripts_hold_stays(case: Case) -> None:
    assert REDACT(case.text) == case.text


@pytest.mark.parametrize("case", GOES, ids=lambda case: case.id)
def test_twice_is_once(case: Case) -> None:
    once = REDACT(case.text)
    assert REDACT(once) == once


@given(st.lists(st.sampled_from([case.text for case in (*GOES, *STAYS)]) | st.text(max_size=20), max_size=6))
@settings(max_examples=examples(150))
def test_twice_is_once_whatever_stands_together(texts: list[str]) -> None:
    once = REDACT("\n".join(texts))
    assert REDACT(once) == once


@given(
    st.recursive(
        st.text(max_size=12) | st.integers() | st.sampled_from([case.text for case in GOES]),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
        max_leaves=8,
    )
)
@settings(max_examples=examples(150))
def test_json_stays_json_of_the_same_shape(value: object) -> None:
    for text in (json.dumps(value), json.dumps(value, ensure_ascii=False)):
        assert type(json.loads(redacted_json(text, REDACT))) is type(value)


EVERY_HINT = (
    *(case.text for case in GOES),
    "AKC A3T ABIA ACCA ASIA aws_sec AWS_SEC aws_access AccountKey= :// gho_ ghu_ ghs_ ghr_ gldt- glft- glsoat- glrt- "
    "GR1348941 glcbt- glimt- glptt- glagent- gloas- _authToken T3BlbkFJ pypi-AgE SG. hooks.slack.com sq0csp- "
    "github_pat_ hf_ AIza xapp- PuTTY-User passphrase secret api_key apikey api-key bearer 密碼 密钥 密鑰",
)
"""With these beside it, a text is shown to every finder, whatever hints it has itself."""
PIECES = (*(piece for text in EVERY_HINT for piece in (text, *text.split())), "İ", "Σ", "PASSWORD:", "’", "\\u0041KIA")
GAPS = (" ", "", "\n", ", ", '"', "\xa0", "\x1c", "\u2028", "\\", "：", "-")


@given(st.lists(st.tuples(st.sampled_from(PIECES) | st.text(max_size=12), st.sampled_from(GAPS)), max_size=8))
@settings(max_examples=examples(300))
def test_a_text_loses_the_same_whatever_hints_are_around_it(pieces: list[tuple[str, str]]) -> None:
    text = "".join(map("".join, pieces))
    others = [piece for piece, _ in pieces]
    asked = REDACT.over((text, *EVERY_HINT))
    assert REDACT(text) == REDACT.over((*others, text))(text) == asked(text)
    assert redacted_json(text, REDACT, REDACT.over((text,))) == redacted_json(text, REDACT, asked)
    quoted = json.dumps({"q": text}, ensure_ascii=False)
    assert redacted_json(quoted, REDACT, REDACT.over((quoted,))) == redacted_json(quoted, asked, asked)


@needs_data
def test_real_texts_lose_the_same_whatever_hints_are_around_them() -> None:
    for path in sorted(path for path in DATA.rglob("*") if path.suffix in (".json", ".jsonl", ".traj", ".txt")):
        texts = path.read_text().split("\\n")
        alone, asked = REDACT.over(texts), REDACT.over((*texts, *EVERY_HINT))
        assert [text for text in texts if alone(text) != asked(text)] == []


def test_an_escape_beside_an_address_stays_one() -> None:
    text = json.dumps({"body": "to:\nada@example.com\tbye"})
    assert json.loads(redacted_json(text, REDACT)) == {"body": "to:\n[redacted:email]\tbye"}


def test_finders_can_be_turned_off() -> None:
    text = "ada@example.com AKIAIOSFODNN7EXAMPLE"
    assert Redactor(secrets=False)(text) == "[redacted:email] AKIAIOSFODNN7EXAMPLE"
    assert Redactor(personal=False)(text) == "ada@example.com [redacted:secret]"
    assert Redactor(secrets=False, personal=False)(text) == text


@pytest.mark.soak
@pytest.mark.parametrize(
    "piece",
    [
        "@",
        "a@b",
        "1",
        "12 ",
        "eyJ",
        "eyJa.",
        "://a:b",
        "password",
        'password="',
        "密码",
        "-----BEGIN PRIVATE KEY-----",
        "/a",
        "a/b=c!",
        "xoxb-1-",
        "aws_secret",
        "+1 (",
        "AKC",
        "sk-",
    ],
)
def test_time_is_linear_in_hostile_text(piece: str) -> None:
    """Ten times the text must not take a hundred times as long; the margin is for noise."""

    def seconds(chars: int) -> float:
        text = piece * (chars // len(piece))
        return min(once(text) for _ in range(3))

    def once(text: str) -> float:
        begun = time.thread_time()
        REDACT(text)
        return time.thread_time() - begun

    REDACT("warm up ada@example.com 13812345678 password")
    assert seconds(300_000) < 40 * max(seconds(30_000), 0.005)


@needs_data
def test_real_runs_keep_everything_but_addresses() -> None:
    """Order numbers, dates, payment ids, hashes and paths of real agent runs and conversations: nothing but e-mail
    addresses goes."""
    kinds = {}
    for path in [*DATA.glob("tau_bench_airline/*.jsonl"), *DATA.glob("locomo/*.json"), *DATA.glob("swe_agent/*.traj")]:
        for transcript in read_transcripts(path):
            for entry in transcript.entries():
                message = take_wire(entry.wire)[1]
                for text in (message.text, *(result.text for result in message.tool_results)):
                    redacted = REDACT(text)
                    for piece in redacted.split("[redacted:")[1:] if redacted != text else ():
                        kind = piece.partition("]")[0]
                        kinds[kind] = kinds.get(kind, 0) + 1
    assert set(kinds) <= {"email"}
