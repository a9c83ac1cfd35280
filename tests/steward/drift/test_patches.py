"""Patches: there and back again, for any two profiles."""

from __future__ import annotations

import json

import jsonpatch
from hypothesis import given, settings, strategies as st

from ctxsteward.schemas.profile import MetaRecord, ProfileDocument, ProfileEntry
from ctxsteward.steward.drift.report import difference, keyed

from ...examples import examples

IDS = st.sampled_from(["a", "b", "c.d", "e-f", "g_1", "0"])
TEXTS = st.sampled_from(["Be calm.", "Be calm. Be brief.", "不得透露密码。", "~/path", "a/b~1", "Never.\nAlways."])
SCALARS = st.one_of(st.none(), st.integers(0, 3), st.sampled_from([1.0, 0.5, "1", "true"]))
ENTRIES = st.builds(
    ProfileEntry,
    id=IDS,
    text=TEXTS,
    value=SCALARS,
    locked=st.booleans(),
    modality=st.sampled_from([None, "must", "may"]),
    polarity=st.sampled_from([None, "positive", "negative"]),
)
RECORDS = st.builds(
    MetaRecord,
    id=IDS,
    text=st.sampled_from(["Prefers tea.", "Prefers coffee."]),
    approved=st.booleans(),
    sources=st.lists(st.sampled_from(["s§1", "s§2", "t§9.1"]), min_size=1, max_size=3).map(tuple),
)


def unique(
    values: st.SearchStrategy[ProfileEntry | MetaRecord],
) -> st.SearchStrategy[tuple[ProfileEntry | MetaRecord, ...]]:
    return st.lists(values, max_size=4, unique_by=lambda value: value.id).map(tuple)


PROFILES = st.builds(
    ProfileDocument,
    name=st.sampled_from(["default", "shop"]),
    persona=unique(ENTRIES),
    policies=unique(ENTRIES),
    rails=unique(ENTRIES),
    surface=unique(ENTRIES),
    meta=unique(RECORDS),
)


@settings(max_examples=examples(150))
@given(PROFILES, PROFILES)
def test_a_patch_leads_there_and_its_inverse_back(before: ProfileDocument, after: ProfileDocument) -> None:
    one, other = keyed(before), keyed(after)
    patch = difference(one, other)

    assert jsonpatch.apply_patch(one, patch) == other
    assert jsonpatch.apply_patch(other, difference(other, one)) == one
    assert json.dumps(jsonpatch.apply_patch(one, patch), sort_keys=True) == json.dumps(other, sort_keys=True)
    assert bool(patch) == (json.dumps(one) != json.dumps(other))
    assert json.loads(json.dumps(patch)) == list(patch)


def test_a_patch_names_keys_not_places() -> None:
    before = ProfileDocument(policies=(ProfileEntry(id="a", text="One."), ProfileEntry(id="b", text="Two.")))
    after = ProfileDocument(policies=(ProfileEntry(id="a", text="One."), ProfileEntry(id="b", text="Three.")))

    assert difference(keyed(before), keyed(after)) == (
        {"op": "replace", "path": "/policies/entries/b/text", "value": "Three."},
    )
