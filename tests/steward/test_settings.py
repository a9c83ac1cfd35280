"""Settings of nights: one YAML file, refused with file, line and key."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from ctxsteward.schemas import ContextError
from ctxsteward.schemas.profile_changes import DriftLimits
from ctxsteward.steward.admission import AdmissionPolicy
from ctxsteward.steward.gate.settings import GateSettings, HeadBudgets
from ctxsteward.steward.settings import CanaryLimits, NightSettings, settings_of

WHOLE = """
store: file:desk
profile: support
sources: [logs/chats, store]
internal_tools: [get_order]
canary_share: 0.2
canary: {min_sessions: 50, max_nights: 5}
admission:
  independent_principals: 5
  half_life_days: {fact: 30, policy: null}
drift: {warn_delta: 0.1, window_nights: 14}
gate:
  model: gpt-4o
  budgets: {system_tokens: 600}
  margins: {hit_rate: 0.1}
"""


def test_one_file_holds_places_and_thresholds(tmp_path: Path) -> None:
    (tmp_path / "steward.yaml").write_text(WHOLE)
    found = settings_of(tmp_path / "steward.yaml")

    assert found == NightSettings(
        store="file:desk",
        profile="support",
        sources=("logs/chats", "store"),
        internal_tools=("get_order",),
        canary_share=0.2,
        canary=CanaryLimits(min_sessions=50, max_nights=5),
        admission=AdmissionPolicy(independent_principals=5, half_life_days={"fact": 30.0, "policy": None}),
        drift=DriftLimits(warn_delta=0.1, window_nights=14),
        gate=GateSettings(model="gpt-4o", budgets=HeadBudgets(system_tokens=600), margins={"hit_rate": 0.1}),
    )
    assert found.admission.half_life_days["correction"] == 365.0
    assert NightSettings.model_validate_json(found.model_dump_json()) == found


class Bad(NamedTuple):
    line: str
    names: str


BAD = (
    Bad("profil: x", "profil: no such key; allowed: store, journal"),
    Bad("drift: {warn: 1}", "drift.warn: no such key; allowed: warn_delta"),
    Bad("drift: {warn_delta: 2}", "drift.warn_delta: found the number 2"),
    Bad("drift: [1]", "drift: found a list"),
    Bad("admission: {independent_principals: 1}", "admission.independent_principals: found the number 1"),
    Bad("admission: {half_life_days: {facts: 1}}", "admission.half_life_days.facts"),
    Bad("admission: {half_life_days: {fact: 0}}", "admission.half_life_days.fact: found the number 0"),
    Bad("canary: {share: 0.1}", "canary.share: no such key; allowed: min_sessions"),
    Bad("canary: {min_sessions: many}", "canary.min_sessions: found the text 'many'"),
    Bad("canary: {max_nights: 0}", "canary.max_nights: found the number 0"),
    Bad("canary_share: 2", "canary_share: found the number 2"),
    Bad("gate: {model: gpt-99}", "gate.model: found the text 'gpt-99': no such model is known"),
    Bad("gate: {tokenizer: p50k}", "gate.tokenizer: found the text 'p50k'"),
    Bad("gate: {budgets: {dynamic_tokens: 9}}", "gate.budgets.dynamic_tokens: no such key; allowed: system_tokens"),
    Bad("gate: {budgets: {meta_tokens: 0}}", "gate.budgets.meta_tokens: found the number 0"),
    Bad("gate: {margins: {speed: 0.1}}", "gate.margins: found a mapping: no guard is called 'speed'"),
    Bad("gate: {margins: {hit_rate: 2}}", "gate.margins.hit_rate: found the number 2"),
    Bad("internal_tools: get_order", "internal_tools: found the text 'get_order'"),
    Bad("internal_tools: [{a: 1}]", "internal_tools.0: found a mapping"),
)


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: bad.line)
def test_a_wrong_field_is_named_with_its_line(bad: Bad, tmp_path: Path) -> None:
    path = tmp_path / "steward.yaml"
    path.write_text(f"profile: support\n{bad.line}\n")

    with pytest.raises(ContextError) as refused:
        settings_of(path)
    assert str(refused.value).startswith(f"{path}:2: {bad.names}")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("data", "names"),
    [
        (b"", "nothing; write a mapping"),
        (b"- a", "a list"),
        (b"a: &b 1", "no YAML|anchor|alias"),
        (b"caf\xe9: 1", "byte 3 is not UTF-8; save the file as UTF-8"),
        (b"profile: a\nprofile: b", ":2"),
        (b"x: " + b"[" * 9 + b"]" * 9, "deep|depth|level"),
        (b"a: " + b"x" * 70_000, "bytes"),
    ],
    ids=["empty", "a list", "an anchor", "no UTF-8", "a key twice", "too deep", "too large"],
)
def test_a_file_that_holds_no_settings_is_refused(data: bytes, names: str, tmp_path: Path) -> None:
    (tmp_path / "steward.yaml").write_bytes(data)

    with pytest.raises(ContextError, match=names):
        settings_of(tmp_path / "steward.yaml")


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ContextError, match=r"settings .*nowhere\.yaml: no such file or directory; pass the path of"):
        settings_of(tmp_path / "nowhere.yaml")
