"""`store forget` at the command line: what it says, in words and JSON, and its one-line refusals."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ctxsteward.console.cli import cli
from ctxsteward.envelope import open_store
from ctxsteward.schemas import Erased
from ctxsteward.store.erasure.receipt import verified_receipt

from .scenes import CHARS, fill

TOLD = ["--who", "dpo", "--why", "request 7", "--when", "2026-11-22"]


@pytest.fixture
def uri(tmp_path: Path) -> str:
    with open_store(f"file:{tmp_path / 'store'}") as store:
        fill(store, turns=1)
    return f"file:{tmp_path / 'store'}"


def run(uri: str, *arguments: str) -> Result:
    return command("store", "forget", *arguments, "--store", uri, "--tenant", "acme")


def command(*arguments: str) -> Result:
    # Through the root command, as a user calls it: a subcommand that is called alone keeps another help option.
    return CliRunner().invoke(cli, arguments)


def test_a_session_is_forgotten_and_its_forks_are_counted(uri: str) -> None:
    result = run(uri, "--session", "s-1", *TOLD)
    assert result.exit_code == 0
    assert result.output.splitlines()[0] == "forgot session s-1 and 2 forks of it"
    with open_store(uri) as store, pytest.raises(Erased, match="by dpo on 2026-11-22: request 7"):
        store.session("s-1", tenant="acme", counter=CHARS)


def test_json_has_every_count_and_no_words(uri: str) -> None:
    result = run(uri, "--principal", "ann", "--json", *TOLD)
    document = json.loads(result.output)
    assert document["sessions"][:2] == ["s-1", "s-2"]
    assert (document["messages"], document["who"], document["findings"]) == (10, "dpo", [])
    assert verified_receipt(result.output.encode()).principal == "ann"
    assert "CANARY" not in result.output


def test_a_receipt_without_a_published_key_is_not_called_valid(uri: str, tmp_path: Path) -> None:
    file = tmp_path / "receipt.json"
    published = command("store", "receipt-key", "--store", uri, "--tenant", "acme").output.strip()
    run(uri, "--session", "s-1", "--receipt", str(file), *TOLD)

    unknown = command("store", "verify-receipt", str(file))
    assert (unknown.exit_code, unknown.output.splitlines()[0]) == (
        0,
        "the signature fits the key in the file, but nobody has said whose key that is; pass --key: tenant acme, "
        "by dpo at 2026-11-22: request 7",
    )
    known = command("store", "verify-receipt", str(file), "--key", published)
    assert (known.exit_code, known.output.startswith("valid: tenant acme")) == (0, True)


def test_a_receipt_is_checked_by_somebody_without_the_store(uri: str, tmp_path: Path) -> None:
    file = tmp_path / "receipt.json"
    said = run(uri, "--session", "s-1", "--receipt", str(file), *TOLD).output
    (key,) = [line.split()[-1] for line in said.splitlines() if line.startswith("signed by key ")]
    shutil.rmtree(uri.removeprefix("file:"))
    valid = command("store", "verify-receipt", str(file), "--key", key)
    assert (valid.exit_code, valid.output.splitlines()[0]) == (
        0,
        "valid: tenant acme, by dpo at 2026-11-22: request 7",
    )
    assert command("store", "verify-receipt", str(file), "--json").output == file.read_text()
    other = command("store", "verify-receipt", str(file), "--key", "0" * 64)
    assert (other.exit_code, "another store or tenant" in other.stderr) == (2, True)
    file.write_text(file.read_text().replace("request 7", "request 8"))
    changed = command("store", "verify-receipt", str(file))
    assert (changed.exit_code, changed.stderr) == (
        2,
        "ctxsteward: the receipt was changed after it was signed; ask for it again\n",
    )


@pytest.mark.parametrize("arguments", [[], ["--session", "s-0"], ["--principal", "zoe"]])
def test_what_is_not_there_is_refused_in_one_line(uri: str, arguments: list[str]) -> None:
    result = run(uri, *arguments, *TOLD)
    assert result.exit_code == 2
    assert len(result.stderr.splitlines()) == 1


def test_a_reference_to_what_was_forgotten_says_so_in_one_line(uri: str) -> None:
    run(uri, "--principal", "ann", *TOLD)
    hers = command("resolve", "§6", "--session", "s-1", "--store", uri, "--tenant", "acme")
    run(uri, "--session", "s-1", *TOLD)
    gone = command("resolve", "§1", "--session", "s-1", "--store", uri, "--tenant", "acme")
    for result, what in ((hers, "§6 of session 's-1'"), (gone, "session 's-1'")):
        assert result.exit_code == 2
        assert result.stderr == f"ctxsteward: {what} was erased by dpo on 2026-11-22: request 7\n"


def test_who_and_why_have_to_be_told(uri: str) -> None:
    assert run(uri, "--session", "s-1").exit_code == 2
