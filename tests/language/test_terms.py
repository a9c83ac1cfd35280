"""Index terms: stems, bigrams where a script has no blanks, identifiers whole and in parts, always the same."""

from __future__ import annotations

import unicodedata
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import pytest
from hypothesis import given, strategies as st

from ctxsteward.language.words import INDEX_STOP, MAX_TERM_CHARS, MAX_TEXT_CHARS, snowball_stem, terms


class Case(NamedTuple):
    id: str
    text: str
    expected: list[str]


CASES = [
    Case("stems", "painted paints painting", ["paint", "paint", "paint"]),
    Case("stop words go", "What did she do with it", []),
    Case("a sentence's marks are none of a word", "Go. Stop, now!", ["go", "stop", "now"]),
    Case("possessive", "Caroline's painting", ["carolin", "paint"]),
    Case("hyphenated words are words", "self-care and/or rest", ["self", "care", "rest"]),
    Case("no blank after a full stop", "done.Next", ["done", "next"]),
    Case("snake case", "user_id", ["user_id", "user", "id"]),
    Case("camel case", "getUserName", ["getusername", "get", "user", "name"]),
    Case("an acronym inside", "parseHTMLText", ["parsehtmltext", "pars", "html", "text"]),
    Case("an error code", "ERR-4521", ["err-4521", "err", "4521"]),
    Case("an address", "10.0.0.7", ["10.0.0.7", "10", "0", "0", "7"]),
    Case("a version", "v1.2", ["v1.2", "v1", "2"]),
    Case("upper case is the same word", "PORT Port port", ["port", "port", "port"]),
    Case("Chinese", "我喜欢北京", ["我喜", "喜欢", "欢北", "北京"]),
    Case("one Chinese character", "好", ["好"]),
    Case("Chinese among Latin", "端口8443改了", ["端口", "8443", "改了"]),
    Case("Japanese", "東京タワー", ["東京", "京タ", "タワ", "ワー"]),
    Case("Korean", "서울 날씨", ["서울", "날씨"]),
    Case("Thai", "สวัสดี", ["สว", "วั", "ัส", "สด", "ดี"]),
    Case("full width is the same", "ＡＢＣ１２", terms("ABC12")),
    Case("a composed accent is the same", unicodedata.normalize("NFD", "café"), ["café"]),
    Case("emoji and marks say nothing", "🙂 … !?", []),
    Case("nothing", "", []),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_text_has_these_terms(case: Case) -> None:
    assert terms(case.text) == case.expected


@given(st.text(max_size=300))
def test_terms_are_short_and_never_empty_and_the_same_again(text: str) -> None:
    found = terms(text)
    assert found == terms(text)
    assert all(0 < len(term) <= MAX_TERM_CHARS for term in found)
    assert not INDEX_STOP & {term for term in found if term.isalpha() and snowball_stem(term) != term}


@given(st.text(alphabet=st.characters(max_codepoint=0x10FFFF, categories=("Cs", "Lu", "Ll", "Lo", "Nd", "Po"))))
def test_half_surrogates_and_any_script_are_read(text: str) -> None:
    assert isinstance(terms(text), list)


@pytest.mark.parametrize(
    "text", ["x" * 10**6, "x_" * 500_000, "é" * 10**6, "好" * 10**6, "ﷺ" * 200_000, "a.1" * 300_000]
)
def test_a_megabyte_is_cut(text: str) -> None:
    found = terms(text)
    assert len(found) <= 2 * MAX_TEXT_CHARS
    assert all(len(term) <= MAX_TERM_CHARS for term in found)


def test_threads_stem_alike() -> None:
    words = [f"{root}{end}" for root in ("paint", "nation", "argu", "run", "relat") for end in ("ing", "ed", "ational")]
    snowball_stem.cache_clear()
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: [snowball_stem.__wrapped__(word) for word in words * 50], range(8)))
    assert all(one == found[0] for one in found)
