"""Recommendations whose sources are all gone go too, from every version; those with one source left stay."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ctxsteward.envelope import Profile, Store
from ctxsteward.schemas import StoreError
from ctxsteward.store.erasure.forget import forget

from ..governed.agreed import PROMOTION
from .scenes import ANN, STORES, TOLD, contents_of, fill, hits

HERS = f"Prefers short answers {ANN[0]}"
RECORDS = """
name: support
persona: You are a calm assistant.
meta:
  hers: {text: "HERS", sources: ["s-2§1", "s-2§2"]}
  shared: {text: Asks for sources, sources: ["s-2§1", "s-3§1"]}
  his: {text: Writes at night, sources: ["s-2§6"]}
  far: {text: Lives abroad, sources: ["s-99§1"]}
""".replace("HERS", HERS)
FIRST = Profile.from_yaml(RECORDS)
SECOND = Profile.from_yaml(RECORDS.replace("calm", "brief"))
NIGHT: dict[str, Any] = {"who": "steward", "why": "night", "when": "2026-11-21", "promotion": PROMOTION}


def texts(store: Store) -> set[str]:
    return {record.text for record in store.profiles("support", tenant="acme").newest().profile.meta}


@pytest.mark.parametrize("kind", ["memory", "file"])
def test_a_recommendation_goes_with_the_last_of_its_sources_from_all_versions(tmp_path: Path, kind: str) -> None:
    with STORES[kind](tmp_path) as (store, root):
        fill(store, turns=2)
        versions = store.profiles("support", tenant="acme")
        versions.commit(FIRST, **NIGHT)
        versions.commit(SECOND, **NIGHT)
        assert len(texts(store)) == 4

        done = forget(store, tenant="acme", principal="ann", **TOLD)
        assert done.recommendations == 1
        assert texts(store) == {"Asks for sources", "Writes at night", "Lives abroad"}
        assert HERS not in {record.text for record in versions.at(1).profile.meta}
        assert hits(contents_of(store, root), (HERS,)) == {}

        done = forget(store, tenant="acme", session="s-2", **TOLD)
        assert done.recommendations == 1
        assert texts(store) == {"Asks for sources", "Lives abroad"}

        done = forget(store, tenant="acme", session="s-3", **TOLD)
        assert done.recommendations == 1
        assert texts(store) == {"Lives abroad"}  # of a session that this machine knows nothing of
        assert forget(store, tenant="acme", session="s-3", **TOLD).recommendations == 0


def test_a_withdrawn_recommendation_cannot_come_back(tmp_path: Path) -> None:
    with STORES["memory"](tmp_path) as (store, _):
        fill(store, turns=1)
        versions = store.profiles("support", tenant="acme")
        versions.commit(FIRST, **NIGHT)
        forget(store, tenant="acme", session="s-2", **TOLD)
        with pytest.raises(StoreError):
            versions.commit(SECOND, **NIGHT)
        assert HERS not in texts(store)
