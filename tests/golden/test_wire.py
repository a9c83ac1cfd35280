"""What the shipped conversation becomes is frozen: each envelope, and each provider's request, to the byte.

`wire.json` was written by this file run as a program (`python -m tests.golden.test_wire`). It holds a digest of every
build, so that a change is found whatever it touches, and the last request of each provider in full, so that a change
can be read. A change that is meant is written anew and told in the changelog.
"""

from __future__ import annotations

import hashlib
import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from ctxsteward.envelope import PROVIDERS, Budgets, EnvelopeBuilder, Profile
from ctxsteward.envelope.testing import memory_store

PATH = Path(__file__).with_name("wire.json")
NOW = "2026-11-20T09:00:00+00:00"
BUDGETS = {
    "small": Budgets(dynamic_tokens=900),
    "roomy": Budgets(dynamic_tokens=4000),
    "tight": Budgets(dynamic_tokens=500, compact_at_fraction=0.7),
}
LATER = ("message_shortened", "dynamic_over_budget", "rule_not_visible")
_VOLATILE = ("created_at", "build_ms", "selection_ms")


def played(budgets: Budgets) -> dict[str, Any]:
    data = files("ctxsteward.console") / "data"
    rows = [json.loads(line) for line in (data / "demo.jsonl").read_text(encoding="utf-8").splitlines()]
    profile = Profile.from_text(rows[0]["content"])
    builder = EnvelopeBuilder("gpt-4o", budgets=budgets, now=lambda: NOW)
    digests: dict[str, list[str]] = {kind: [] for kind in ("document", *PROVIDERS)}
    with memory_store() as store:
        session = store.session("golden", profile=profile)
        for row in rows[1:]:
            session.append(row)
            if row["role"] == "assistant":
                continue
            envelope = builder.build(session)
            document = envelope.document()
            # Findings are no part of an envelope's bytes; these kinds came later than the golden file.
            document["findings"] = [one for one in document["findings"] if one["kind"] not in LATER]
            del document["rules"]  # came later, too, and is read back from the requests below
            digests["document"].append(digest(without_times(document)))
            requests = {provider: envelope.render(provider) for provider in PROVIDERS}
            for provider, request in requests.items():
                digests[provider].append(digest(request))
    return {"digests": digests, "last": requests}


def without_times(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: without_times(each) for name, each in value.items() if name not in _VOLATILE}
    return [without_times(each) for each in value] if isinstance(value, list) else value


def digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, ensure_ascii=False).encode()).hexdigest()[:16]


@pytest.mark.parametrize("name", BUDGETS)
def test_every_envelope_and_request_is_what_it_was(name: str) -> None:
    golden = json.loads(PATH.read_text(encoding="utf-8"))[name]
    got = played(BUDGETS[name])
    assert got["last"] == golden["last"]
    assert got["digests"] == golden["digests"]


if __name__ == "__main__":
    written = {name: played(budgets) for name, budgets in BUDGETS.items()}
    PATH.write_text(json.dumps(written, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
