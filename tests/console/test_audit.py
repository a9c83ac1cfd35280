"""``ctxsteward audit``: clean, found, refused; and what it recognizes from the store alone."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner

from ctxsteward.console.cli import cli
from ctxsteward.envelope import PROVIDERS, open_store, rebuild
from ctxsteward.envelope.audit import sealed_request

from .commands import run

DATA = files("ctxsteward.console") / "data"
DEMO = str(DATA / "demo.jsonl")
PROFILE = str(DATA / "demo-profile.yaml")
FORGED = "0f" * 32


class Stage(NamedTuple):
    folder: Path
    store: str
    addresses: list[str]
    """Of every call of the demo's session, oldest first."""
    foreign: str
    """The last envelope of another tenant's session."""

    def payload(self, address: str, provider: str = "openai-chat", tenant: str = "default") -> Any:
        with open_store(self.store) as store:
            return rebuild(store, address, tenant=tenant).render(provider)  # type: ignore[arg-type]

    def write(self, value: object) -> str:
        path = self.folder / "sent.json"
        path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
        return str(path)


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Stage:
    folder = tmp_path_factory.mktemp("audit")
    store = f"file:{folder / 'store'}"
    common = ("--profile", PROFILE, "--budget", "dynamic_tokens=2000", "--store", store, "--json")
    calls = run("replay", DEMO, *common).stdout.splitlines()
    lines = Path(DEMO).read_text(encoding="utf-8").splitlines()
    (folder / "other.jsonl").write_text("\n".join(lines[30:90]) + "\n", encoding="utf-8")
    foreign = run("build", str(folder / "other.jsonl"), *common, "--tenant", "globex").stdout
    return Stage(folder, store, [json.loads(line)["envelope"] for line in calls], json.loads(foreign)["address"])


def audited(stage: Stage, sent: object, *more: str, expected: str | None = None, code: int = 1) -> list[Any]:
    where = ("--expected", expected or stage.addresses[-1], "--sent", stage.write(sent), "--store", stage.store)
    found: list[Any] = json.loads(run("audit", *where, "--json", *more, code=code).stdout)
    return found


@pytest.mark.parametrize("provider", PROVIDERS)
def test_what_was_sent_as_built_gives_no_finding(provider: str, stage: Stage) -> None:
    payload = stage.payload(stage.addresses[-1], provider)
    assert audited(stage, payload | {"model": "m", "temperature": 0}, code=0) == []
    assert audited(stage, payload, "--provider", provider, expected=stage.addresses[-1][:12], code=0) == []
    with open_store(stage.store) as store:
        log = sealed_request(rebuild(store, stage.addresses[-1]), provider)  # type: ignore[arg-type]
    assert log["seal"] is not None
    assert audited(stage, log, code=0) == []


def test_a_change_is_found_with_stable_keys(stage: Stage) -> None:
    payload = stage.payload(stage.addresses[-1])
    payload["messages"][0] = {**payload["messages"][0], "content": "You are a pirate."}
    (found,) = audited(stage, payload)
    assert list(found) == ["kind", "ref", "field", "text"]
    assert (found["kind"], found["ref"], found["field"]) == ("altered_text", None, "messages[0].content")


def test_an_older_envelope_and_another_tenant_s_are_recognized_from_the_store(stage: Stage) -> None:
    assert audited(stage, stage.payload(stage.addresses[-9]))[0]["kind"] == "replayed_envelope"
    assert audited(stage, stage.payload(stage.foreign, tenant="globex"))[0]["kind"] == "wrong_tenant"


def test_people_get_a_table_and_programs_a_pipe(stage: Stage) -> None:
    payload = stage.payload(stage.addresses[-1])
    where = ("audit", "--expected", stage.addresses[-1], "--sent", "-", "--store", stage.store)
    assert run(*where, stdin=json.dumps(payload)).stdout.startswith("sent as built: ")
    del payload["messages"][0]
    shown = run(*where, stdin=json.dumps(payload), code=1).stdout
    assert "missing_section" in shown
    assert "not there at all" in shown


class Case(NamedTuple):
    id: str
    sent: object
    says: str
    expected: str = ""
    more: tuple[str, ...] = ()


REFUSED = [
    Case("no address", {}, "--expected demo: not an envelope's address", expected="demo"),
    Case("a forged address", {"messages": []}, f"--expected {FORGED}: no such envelope", expected=FORGED),
    Case("another tenant", {"messages": []}, "no such envelope of tenant 'globex'", more=("--tenant", "globex")),
    Case("no such store", {"messages": []}, "no such folder", more=("--store", "file:none")),
    Case("an unknown provider", {"messages": []}, "--provider acme", more=("--provider", "acme")),
    Case("no JSON", "You are …", "not JSON"),
    Case("nothing", "", "the JSON ends too early"),
    Case("cut off", '{"messages": [', "the JSON ends too early"),
    Case("a key twice", '{"messages": [], "messages": []}', "the same key twice"),
    Case("NaN", '{"messages": [], "temperature": NaN}', "NaN, which is not JSON"),
    Case("a lone surrogate", '{"messages": [{"role": "user", "content": "\\ud800"}]}', "a lone surrogate"),
    Case("very deep", '{"messages": ' + "[" * 300 + "]" * 300 + "}", "levels"),
    Case("a list", [{"role": "user", "content": "hi"}], "found a list"),
    Case("a number", 3, "found int"),
    Case("no request", {"model": "gpt-4o"}, "no request of a known provider"),
    Case("a payload that is none", {"payload": [], "provider": "text"}, "`payload` is a list"),
    Case("a log of an unknown provider", {"payload": {"messages": []}, "provider": "x"}, "unknown provider 'x'"),
    Case("a forged seal", {"payload": {"messages": []}, "seal": {"alg": "none", "trust": 1}}, "seal.alg"),
    Case("tools that are none", {"messages": [], "tools": "all"}, "`tools` is str"),
]


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.id)
def test_bad_input_is_one_line_and_exit_code_2(case: Case, stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(stage.folder)
    where = ("--expected", case.expected or stage.addresses[-1], "--sent", stage.write(case.sent))
    result = run("audit", *where, "--store", stage.store, *case.more, code=2)
    assert case.says in result.stderr
    assert (result.stdout, result.stderr.count("\n")) == ("", 1)


@pytest.mark.parametrize(
    "args", [(), ("--expected", FORGED), ("--sent", "x.json"), ("--expected", FORGED, "--sent", ".")]
)
def test_missing_options_and_files_are_bad_usage(args: tuple[str, ...], tmp_path: Path) -> None:
    result = CliRunner().invoke(cli, ["audit", *args, "--store", f"file:{tmp_path}"])
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (2, "", 1)
