"""Sketches: the same in every process, and good enough to find what is alike."""

from __future__ import annotations

import os
import random
import subprocess
import sys

from rensa import RMinHash

from ctxsteward.steward.reconcile.claims import Claim
from ctxsteward.steward.reconcile.features import claim_features
from ctxsteward.steward.reconcile.sketches import PERMUTATIONS, SEED, SKETCH, bands

KNOWN = [2060749420, 3275998959, 2843248552, 1442783549, 507246097, 1050594273, 3610326662, 3314682196]
"""Of {a, b, 中文} with 8 permutations and seed 7, by rensa 0.5 on x86-64."""


def claim(text: str, **fields: object) -> Claim:
    given = {
        "id": text,
        "family": "said",
        "tool": None,
        "subject": "user",
        "attribute": "note",
        "is_single": False,
        "polarity": "positive",
        "value": None,
        "wording": claim_features(text),
    }
    return Claim(**{**given, **fields})  # type: ignore[arg-type]


def test_the_library_still_computes_what_it_did() -> None:
    assert RMinHash.digests_from_token_sets([["a", "b", "中文"], ["中文", "a", "b", "a"]], 8, 7) == [KNOWN, KNOWN]
    assert f"rminhash/2/{PERMUTATIONS}/2/{SEED}" == SKETCH


def test_bands_do_not_depend_on_the_process() -> None:
    code = (
        "from ctxsteward.steward.reconcile.claims import Claim;"
        "from ctxsteward.steward.reconcile.sketches import bands;"
        "from ctxsteward.steward.reconcile.features import claim_features;"
        "print(bands([Claim(id='x', family='said', tool=None, subject='user',"
        "attribute='note', is_single=False, polarity='positive', value=None,"
        "wording=claim_features('Keep the answers short, 3 lines, 回答简短'))]))"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        ).stdout
        for seed in ("0", "4711")
    }
    assert found == {f"{bands([claim('Keep the answers short, 3 lines, 回答简短')])}\n"}


def test_pairs_that_share_most_words_share_a_band() -> None:
    rng = random.Random(20_261_122)
    found = 0
    for _ in range(400):
        words = ["".join(rng.choices("abcdefghijklmnop", k=7)) for _ in range(10)]
        one, other = " ".join(words[:8]), " ".join(words[2:])  # six of ten in common
        first, second = bands([claim(one), claim(other)])
        found += not set(first).isdisjoint(second)
    assert found >= 0.98 * 400


def test_claims_about_two_tools_share_no_band() -> None:
    first, second = bands([claim("keep it short", tool="book"), claim("keep it short", tool="pay")])
    assert set(first).isdisjoint(second)
