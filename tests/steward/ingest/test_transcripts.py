"""Metadata beside the messages: a closed model whose refusals name the field."""

from __future__ import annotations

import json

import pytest

from ctxsteward.schemas.errors import InvalidTranscript
from ctxsteward.steward.ingest.transcripts import UNKNOWN, SessionMeta, read_metadata

WHOLE = {
    "schema_version": 1,
    "session": "s-42",
    "principal": "ada",
    "project": "apollo",
    "status": "closed",
    "origin": "support-desk",
    "profile_version": 7,
    "shown": ["pref-1", "fix-2"],
    "eval_failures": ["recall: 0.2 below 0.5"],
    "started": "2026-11-20T09:00:00+01:00",
    "succeeded": False,
    "outcome": {"succeeded": None, "reward": 0.5, "thumbs": "down", "resolved": False, "escalated": True},
    "task": "refund-7",
}


def test_all_of_it_is_read() -> None:
    meta = read_metadata(json.dumps(WHOLE).encode(), "x")
    assert meta.model_dump(mode="json") == WHOLE
    assert set(WHOLE) == set(SessionMeta.model_fields)


def test_nothing_is_nothing_known() -> None:
    assert read_metadata(b"{}", "x") == UNKNOWN


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("", ""),
        ("[]", ""),
        ("{", ""),
        ('{"principal": "a", "principal": "b"}', "principal"),
        ('{"principal": 5}', "principal"),
        ('{"principal": ""}', "principal"),
        ('{"principal": "two\\nlines"}', "principal"),
        ('{"status": "gone"}', "status"),
        ('{"outcome": {}}', "outcome"),
        ('{"outcome": true}', "outcome"),
        ('{"outcome": {"reward": "1"}}', "outcome.reward"),
        ('{"outcome": {"reward": true}}', "outcome.reward"),
        ('{"outcome": {"thumbs": "sideways"}}', "outcome.thumbs"),
        ('{"outcome": {"resolved": 1}}', "outcome.resolved"),
        ('{"outcome": {"happy": true}}', "outcome.happy"),
        ('{"task": ""}', "task"),
        ('{"succeeded": 1}', "succeeded"),
        ('{"succeeded": "yes"}', "succeeded"),
        ('{"profile_version": 0}', "profile_version"),
        ('{"profile_version": "7"}', "profile_version"),
        ('{"shown": ["Not An Id"]}', "shown.0"),
        ('{"shown": "pref-1"}', "shown"),
        ('{"started": "yesterday"}', "started"),
        ('{"eval_failures": [""]}', "eval_failures.0"),
        ('{"trust": "operator"}', "trust"),
        ('{"budgets": {"meta_tokens": 9000}}', "budgets"),
        ('{"schema_version": 2}', "schema_version"),
        ('{"principal": "\\ud800"}', "principal"),
    ],
)
def test_what_is_wrong_is_refused_with_its_field(text: str, place: str) -> None:
    with pytest.raises(InvalidTranscript) as refused:
        read_metadata(text.encode(), "chat.json.session.json")
    assert refused.value.source == "chat.json.session.json"
    assert place in refused.value.where or place in str(refused.value)


def test_an_unknown_key_is_told_the_known_ones() -> None:
    with pytest.raises(InvalidTranscript, match="the keys are schema_version, session, principal"):
        read_metadata(b'{"trust": "operator"}', "x")
