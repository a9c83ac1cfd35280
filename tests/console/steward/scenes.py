"""A small desk with transcripts and people, for the tests of ``ctxsteward steward``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

from click.testing import CliRunner, Result

from ctxsteward.console.cli import cli
from ctxsteward.console.steward.actors import Voucher, add_actor
from ctxsteward.envelope import open_store

QUICK_N = 2
"""Cost of the keys of tokens (`conftest.py`), which a process that a test starts must share."""
PROFILE = "name: desk\npersona: {voice: calm}\npolicies: {returns: {text: Returns within 30 days., locked: true}}\n"


def run(*args: str, code: int | None = 0, input: str | None = None, env: dict[str, str] | None = None) -> Result:
    """Run ``ctxsteward steward ARGS``; nothing is left of a traceback."""
    result = CliRunner().invoke(cli, ["steward", *args], input=input, env=env)
    assert "Traceback" not in result.output
    if code is not None:
        assert result.exit_code == code, (args, result.stdout, result.stderr)
    return result


def value(*args: str, code: int | None = 0, **more: Any) -> Any:
    """What ``--json`` prints."""
    return json.loads(run(*args, "--json", code=code, **more).stdout)


def transcript(path: Path, *said: str, session: str | None = None, principal: str = "ada", **meta: Any) -> Path:
    """A file with one conversation: user and assistant in turn."""
    roles = ("user", "assistant")
    messages = [{"role": roles[at % 2], "content": text} for at, text in enumerate(said)]
    told = {"session": session or path.stem, "principal": principal, **meta}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"ctxsteward": told, "messages": messages}, ensure_ascii=False), encoding="utf-8")
    return path


def people(store: Path) -> dict[str, str]:
    """Ada and Ben review, Otto operates; their tokens."""
    roles = {"ada": ("reviewer",), "ben": ("reviewer",), "otto": ("operator",)}
    path, tokens = store / "actors.yaml", dict[str, str]()
    for name, role in roles.items():
        tokens[name] = add_actor(path, name, role, Voucher("ada", tokens["ada"]) if tokens else None)
    return tokens


class Desk(NamedTuple):
    """A folder with a store after one night on the shipped transcripts, and the tokens of its people."""

    root: Path
    tokens: dict[str, str]

    @property
    def where(self) -> tuple[str, str]:
        return "--store", f"file:{self.root / 'store'}"

    def as_(self, name: str) -> dict[str, str]:
        """How a token is told: on stdin."""
        return {"input": f"{self.tokens[name]}\n"}

    def record(self) -> str:
        """The fix that a person may lift."""
        waiting = value("review", *self.where)["records"]
        return next(str(one["id"]) for one in waiting if one["text"].startswith("`book`"))

    def approve(self, request: str, name: str) -> Result:
        return run("review", request, "--approve", "--token", self.tokens[name], *self.where)

    def head(self) -> Any:
        with open_store(self.where[1]) as store:
            return store.profiles("fernhollow-desk").newest().profile


def fixes(folder: Path, number: int, *, payment: str = "card_1") -> None:
    """A conversation in which a refund fails, and works with what another tool says."""

    def step(name: str, answer: object, **arguments: str) -> list[dict[str, Any]]:
        call = {"name": name, "arguments": json.dumps(arguments)}
        id_ = f"call_{name}_{len(arguments.get('payment_id', ''))}"
        return [
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": id_, "type": "function", "function": call}],
            },
            {
                "role": "tool",
                "tool_call_id": id_,
                "content": answer if isinstance(answer, str) else json.dumps(answer),
            },
        ]

    right = f"gift_card_{number:04}"
    messages = [
        {"role": "user", "content": f"Refund order {number}."},
        *step("get_order", {"payment_id": right, "total": 10 + number}, order_id=f"#W{number}"),
        *step("refund", f"Error: payment method {payment} not found", order_id=f"#W{number}", payment_id=payment),
        *step("refund", {"done": True}, order_id=f"#W{number}", payment_id=right),
        {"role": "assistant", "content": "Done."},
    ]
    folder.mkdir(parents=True, exist_ok=True)
    told = {"session": f"r{number}", "principal": f"user-{number}"}
    (folder / f"r{number}.json").write_text(json.dumps({"ctxsteward": told, "messages": messages}))
