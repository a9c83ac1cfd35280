"""LiteLLM's SDK, router and proxy hooks, in an environment of its own (``make integrations``)."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from ctxsteward.envelope import open_store
from ctxsteward.envelope.integrations.litellm import session_handler
from ctxsteward.schemas import InputError

from ...needs import FRAMEWORKS

ROOT = Path(__file__).parents[3]
PYTHON = ROOT / ".venv-integrations" / "bin" / "python"
ROOMS = ("schemas", "envelope", "summarizers", "steward", "evals", "flows", "console")
needs_litellm = pytest.mark.skipif(not PYTHON.exists(), reason=FRAMEWORKS)


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("litellm")
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(map(str, (ROOT, *(ROOT / room for room in ROOMS)))),
        "HOME": str(folder),
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    }
    done = subprocess.run(
        [PYTHON, Path(__file__).with_name("litellm_run.py"), folder],
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told


@needs_litellm
def test_twenty_turns_with_tools_whole_and_streamed(ran: dict[str, Any]) -> None:
    assert ran["kept"]
    assert ran["faults"] == []
    assert ran["calls"] >= 24
    assert ran["reports"] > 0
    assert ran["longest"] < 5_000
    assert ran["cached"]


@needs_litellm
def test_every_kind_of_call_is_kept_in_the_session_it_names(ran: dict[str, Any]) -> None:
    here = {name: length for name, length in ran["lengths"].items() if not name.startswith(("key-", "team-"))}
    assert here.pop("default/chat") > 40
    assert here == {
        "default/items": 6,
        "default/claude": 6,
        "default/routed": 2,
        "default/sync": 8,
        "acme/through-a-chat": 2,
    }
    assert ran["unnamed"]
    assert ran["people"] == ["None", "ada"]


@needs_litellm
def test_in_a_proxy_the_key_decides_whose_session_it_is(ran: dict[str, Any]) -> None:
    """All three name the same session, and one claims another's team."""
    there = sorted(name for name in ran["lengths"] if name.startswith(("key-", "team-")))
    assert [name.partition("-")[0] for name in there] == ["key", "key", "team"]
    assert {name.rpartition("/")[2] for name in there} == {"same"}
    assert {ran["lengths"][name] for name in there} == {2}


@needs_litellm
def test_the_proxys_own_way_to_the_handler(ran: dict[str, Any]) -> None:
    assert ran["proxy"] == {
        "is_one": True,
        "uri": True,
        "dynamic_tokens": 700,
        "hooks": ["async_pre_call_hook", "async_pre_call_deployment_hook", "async_log_success_event"],
    }


@needs_litellm
def test_the_example_prints_what_is_written_here(ran: dict[str, Any]) -> None:
    assert ran["printed"] == [
        "compacted: True",
        "in the log, word for word: Bicycle 7 has frame number FN-5173 and squeaks.",
    ]


def test_without_litellm_one_line_says_what_to_do() -> None:
    with open_store("memory:") as store, pytest.raises(InputError) as error:
        session_handler(store)
    assert str(error.value) == "litellm is not installed; pip install 'litellm>=1.109'"


@pytest.mark.parametrize(
    ("variables", "says"),
    [
        ({}, "CTXSTEWARD_STORE is not set; the proxy's store is named there, such as file:/var/lib/ctxsteward"),
        (
            {"CTXSTEWARD_STORE": "memory:", "CTXSTEWARD_DYNAMIC_TOKENS": "many"},
            "CTXSTEWARD_DYNAMIC_TOKENS is 'many'; write a number of tokens",
        ),
    ],
)
def test_a_proxy_that_is_not_told_its_store(
    variables: dict[str, str], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ctxsteward.envelope.integrations import litellm

    for name in ("CTXSTEWARD_STORE", "CTXSTEWARD_DYNAMIC_TOKENS"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(InputError) as error:
        litellm.proxy_handler  # noqa: B018  # the door makes it
    assert str(error.value) == says
