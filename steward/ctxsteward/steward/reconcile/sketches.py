"""Sketches: which claims are worth comparing. The one module here that needs `rensa`, of the extra ``steward``.

A MinHash sketch of a claim's words is cut into bands (locality-sensitive hashing); claims that share a band are worth
comparing. With 12 bands of two permutations, a pair that shares half of its words is found in 97 of 100 cases, six
tenths in 995 of 1,000, a tenth in 11 of 100. Sketches do not depend on the process, the platform or the order of words:
seed and algorithm are fixed, and `SKETCH` names both, so that an index made with other ones is made anew.

A ledger is opened and read without `rensa`; `bands`, which enters and removes claims, needs it.

Source: Broder 1997; Leskovec, Rajaraman, Ullman, Mining of Massive Datasets, chapter 3; `rensa` (R-MinHash).
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable, Sequence

from ctxsteward.schemas import InputError
from ctxsteward.store.profiles.version_codec import canonical

from .claims import Claim

PERMUTATIONS = 24
ROWS = 2
SEED = 20_261_122
_DIGEST = struct.Struct(f">{PERMUTATIONS}I")
_BAND_BYTES = 4 * ROWS
_PLACES = tuple((at.to_bytes(4, "big"), 4 * at) for at in range(0, PERMUTATIONS, ROWS))
"""Of each band: what tells it apart, and where it begins in a digest."""
ALGORITHM_VERSION = 2
"""Of R-MinHash. Written down, so that a ledger is read where `rensa` is not installed; `bands` compares."""
SKETCH = f"rminhash/{ALGORITHM_VERSION}/{PERMUTATIONS}/{ROWS}/{SEED}"


def bands(claims: Sequence[Claim]) -> list[tuple[int, ...]]:
    """The bands of each claim, as 64-bit numbers: in blocks that a pair must have in common anyway.

    Raises ImportError without the extra ``steward``, where there is any claim.
    """
    if not claims:
        return []
    from rensa import RMinHash

    if RMinHash.ALGORITHM_VERSION != ALGORITHM_VERSION:
        raise InputError(
            f"the installed rensa makes sketches of version {RMinHash.ALGORITHM_VERSION}, ledgers have version "
            f"{ALGORITHM_VERSION}; pip install 'ctxsteward[steward]' brings one that fits"
        )
    wordings = [sorted(claim.wording.content) if claim.wording is not None else [] for claim in claims]
    digests = RMinHash.digests_from_token_sets(wordings, PERMUTATIONS, SEED)
    blocks = {about: canonical(about) for about in {_about(claim) for claim in claims}}
    return [tuple(_bands(claim, digest, blocks[_about(claim)])) for claim, digest in zip(claims, digests, strict=True)]


def _about(claim: Claim) -> tuple[str | None, ...]:
    """What a pair must have in common."""
    return (claim.tool, claim.subject)


def _bands(claim: Claim, digest: Sequence[int], block: bytes) -> Iterable[int]:
    if claim.wording is None:
        return
    if claim.value is not None:
        yield _number(block + canonical(["value", claim.attribute, claim.value]))
    block += canonical(sorted(claim.wording.values)) if claim.wording.values else b"[]"
    if not claim.wording.content:
        yield _number(block + canonical(claim.wording.tokens))
        return
    start, rows = hashlib.blake2b(block, digest_size=8), _DIGEST.pack(*digest)
    for place, at in _PLACES:
        band = start.copy()
        band.update(place + rows[at : at + _BAND_BYTES])
        yield int.from_bytes(band.digest(), "big", signed=True)


def _number(data: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "big", signed=True)
