"""``ctxsteward run`` plays a cascade against a script or a model, and prices it. ``handoff`` states how far the work of
a session has come, and can start a new session that continues it.

Only options make ``run`` call a model. ``--base-url`` names the model that answers; its key is `CTXSTEWARD_API_KEY` of
the environment, and goes over plain HTTP to this machine alone. ``--summary-model`` names a model that structures
compactions in the background; its key is `CTXSTEWARD_MODEL_KEY`. Tools and validators come from ``--tool`` and
``--validator``, else from the entry points `ctxsteward.tools` and `ctxsteward.validators`, else from the script.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click
from rich.console import Console

from ctxsteward.envelope import EnvelopeBuilder, Prices, SummaryAhead, model_info
from ctxsteward.envelope.cascade import CascadeRunner, handoff_of, resume
from ctxsteward.envelope.cascade.auto_selection import Strategies
from ctxsteward.envelope.cascade.config import load_tree, selection
from ctxsteward.envelope.cascade.continuity import Workspace, opening_of
from ctxsteward.envelope.cascade.run import recorded_of
from ctxsteward.envelope.cascade.runner import RunEnd, every_cascade, progress_of, recording_of
from ctxsteward.envelope.cascade.script import (
    FunctionPlayer,
    ModelAnswer,
    ModelRequest,
    ModelScript,
    load_script,
    tool_schema,
)
from ctxsteward.envelope.cascade.turns import RunLedger
from ctxsteward.envelope.telemetry.spans import spanned
from ctxsteward.evals.run_cost import efficiency_of
from ctxsteward.evals.subjects.http import post_json
from ctxsteward.evals.subjects.registry import named_object
from ctxsteward.schemas import InputError
from ctxsteward.schemas.cascade import MANIFEST, Cascade
from ctxsteward.summarizers.models import GovernedModel, ModelSummarizer, SpendingLedger, model_at

from ..terminal.failures import FOUND
from ..terminal.options import (
    budget_option,
    common,
    model_option,
    price_option,
    read_builder,
    read_input,
    read_profile,
    telemetry,
    utc_now,
)
from ..terminal.output import note, print_document, print_result, progress
from ..terminal.stores import open_stored, open_uri, stored_session
from ..terminal.tables import grid, shown

KEY_VARIABLE = "CTXSTEWARD_API_KEY"
SUMMARY_KEY_VARIABLE = "CTXSTEWARD_MODEL_KEY"
ANSWER_SECONDS = 300.0
_HERE = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatEndpoint:
    """A model behind any server of OpenAI's chat completions."""

    address: str
    """Address of the API, such as ``http://127.0.0.1:8000/v1``."""
    model: str
    key: str | None = field(default=None, repr=False)

    def answer(self, request: ModelRequest) -> ModelAnswer:
        headers = {"Authorization": f"Bearer {self.key}"} if self.key else {}
        body = {"model": self.model, **request.request}
        raw = post_json(f"{self.address}/chat/completions", body, headers, answer_seconds=ANSWER_SECONDS)
        try:
            answer = json.loads(raw)
            reply = answer["choices"][0]["message"]
            message = {key: reply[key] for key in ("content", "tool_calls") if reply.get(key)}
            usage = answer.get("usage") or {}
            counts = {name: count for name, count in usage.items() if type(count) is int}
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise InputError(f"{self.address}: its answer is no chat completion: {raw[:60]!r}") from error
        wire = {"role": "assistant", "content": None if message else "", **message}
        return ModelAnswer(wire, counts)

    def ask(self, prompt: str) -> str:
        """Return the model's reply to one prompt, in the form that selection strategies call."""
        request = {"messages": [{"role": "user", "content": prompt}]}
        return str(self.answer(ModelRequest("", "", None, 1, "phase", request)).message["content"] or "")


def chat_endpoint(address: str, model: str, key: str | None) -> ChatEndpoint:
    """Return the endpoint at ``URL`` or ``URL#MODEL``; raise `InputError` for a bad address or key."""
    place, _, named = address.partition("#")
    if "@" in place:
        raise InputError(f"--base-url: a name or password stands in it (before @); set {KEY_VARIABLE} instead")
    try:
        parts = urlsplit(place)
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        is_address = False
    if not is_address:
        raise InputError(f"--base-url {address:.80}: not an address; write one such as http://127.0.0.1:8000/v1#MODEL")
    key = (key or "").strip()
    if any(not char.isprintable() or ord(char) > 0xFF for char in key):
        raise InputError(f"{KEY_VARIABLE}: it holds a character that no HTTP header takes; set it anew")
    if key and parts.scheme == "http" and parts.hostname not in _HERE:
        raise InputError(f"--base-url {place}: a key over plain HTTP can be read on its way; use https")
    return ChatEndpoint(address=place.rstrip("/"), model=named or model, key=key or None)


def selecting(cascade: Cascade, endpoint: ChatEndpoint) -> Strategies:
    """Return selection strategies whose models the endpoint serves: its own, and each `selector_model` of a phase."""
    names = [endpoint.model]
    for each in every_cascade(cascade):
        names += [name for phase in each.phases if (name := selection(each, phase).selector_model)]
    return Strategies(models={name: replace(endpoint, model=name).ask for name in names})


class Functions:
    """Tools or validators by name: those of the command line, else entry points; the script may have others."""

    def __init__(self, option: str, given: Sequence[str], group: str) -> None:
        self._option, self._group = option, group
        self.named: dict[str, Callable[..., object]] = {}
        for text in given:
            name, separator, path = text.partition("=")
            if not separator or not name:
                raise InputError(f"{option} {text:.80}: write NAME=MODULE:FUNCTION")
            self.named[name] = self._checked(name, named_object(option, path))

    def find(self, name: str) -> Callable[..., object] | None:
        """Return the function of this name, or None."""
        if name not in self.named:
            for point in entry_points(group=self._group, name=name):
                self.named[name] = self._checked(name, point.load())
        return self.named.get(name)

    def _checked(self, name: str, function: Any) -> Callable[..., object]:
        if not callable(function):
            raise InputError(f"{self._option} {name}: {function!r:.60} is no function")
        return function  # type: ignore[no-any-return]


@click.command()
@click.argument("file", metavar="CASCADE", type=click.Path())
@click.option("--script", metavar="FILE", type=click.Path(), help="Scripted replies of the model (YAML or JSONL).")
@click.option("--base-url", metavar="URL[#MODEL]", help="Ask the model behind this OpenAI-compatible address.")
@click.option("--summary-model", metavar="ADDRESS", help="Model that writes the compactions: https://HOST/v1#MODEL.")
@click.option("--session", "run_id", metavar="RUN", help="Name of the run; an unfinished run continues.")
@click.option("--input", "given", metavar="JSON", help="The cascade's input; @FILE reads it from a file.")
@click.option("--system", multiple=True, metavar="TEXT", help="System text for every phase; repeatable.")
@click.option("--profile", type=click.Path(), metavar="FILE", help="Profile (YAML) of the head.")
@click.option("--tool", "tools", multiple=True, metavar="NAME=MODULE:FUNCTION", help="Tool for the model; repeatable.")
@click.option("--validator", "validators", multiple=True, metavar="NAME=MODULE:FUNCTION", help="For `loop_until`.")
@click.option("--evaluator", metavar="MODULE:FUNCTION", help="Chooses a sounding: (phase, attempts) -> number.")
@click.option(
    "--record", metavar="FILE", type=click.Path(path_type=Path), help="Write a script (JSONL) that replays the run."
)
@click.option("--max-calls", type=click.IntRange(1), metavar="N", help="Most calls of the model.")
@click.option("--workers", type=click.IntRange(1, 32), default=4, show_default=True, help="Soundings run at once.")
@click.option("--scratchpad/--no-scratchpad", default=True, show_default=True, help="Tell the model how to keep one.")
@price_option
@click.option("--cached-price", type=float, default=0.1, show_default=True, help="Price of a cached token.")
@click.option("--write-price", type=float, default=1.25, show_default=True, help="Price of a cache write.")
@model_option("Whose tokens, window and cache count.")
@budget_option("A field of Budgets, such as dynamic_tokens=4000; repeatable.")
@telemetry
@common
def run(
    file: str,
    script: str | None,
    base_url: str | None,
    summary_model: str | None,
    run_id: str | None,
    given: str | None,
    system: tuple[str, ...],
    profile: str | None,
    tools: tuple[str, ...],
    validators: tuple[str, ...],
    evaluator: str | None,
    record: Path | None,
    max_calls: int | None,
    workers: int,
    scratchpad: bool,
    price: float | None,
    cached_price: float,
    write_price: float,
    model: str,
    budgets: tuple[str, ...],
    as_json: bool,
    store: str,
    tenant: str,
) -> int:
    """Run CASCADE (YAML or JSON), and compare its price with the price of sending everything.

    An `input` in the file is used if --input is not given; a recorded run in the file is ignored.

    An interrupted run continues when the command is repeated. Exit code 1: a phase failed.
    """
    if (script is None) == (base_url is None):
        raise InputError("run: say who answers: --script FILE, or --base-url URL")
    if record is not None:
        record.open("a", encoding="utf-8").close()  # raises before any model call
    recorded, replies = recorded_of(load_tree(file)), None if script is None else load_script(script)
    cascade = recorded.cascade
    asked = read_builder(model, budgets)
    prices = Prices(cached=cached_price, write=write_price, block_tokens=model_info(model).prices.block_tokens)
    judge = None if evaluator is None else named_object("--evaluator", evaluator)
    if evaluator is not None and not callable(judge):
        raise InputError(f"--evaluator {evaluator}: {judge!r:.60} is no function")
    functions = Functions("--tool", tools, "ctxsteward.tools")
    judges = Functions("--validator", validators, "ctxsteward.validators")
    strategies: Strategies | None = None
    if base_url is not None:
        endpoint = chat_endpoint(base_url, model, os.environ.get(KEY_VARIABLE) or None)
        strategies, answer = selecting(cascade, endpoint), endpoint.answer
    else:
        assert replies is not None
        answer = replies.answer
    phases = [phase for each in every_cascade(cascade) for phase in each.phases]
    tool_names = [name for phase in phases if phase.tackle != MANIFEST for name in phase.tackle]
    named = {name: functions.find(name) for name in (*functions.named, *tool_names)}
    for tool, function in named.items():
        tool_schema(tool, function)  # raises before any model call
    _check_functions(cascade, replies, named, judges)
    name = run_id or re.sub(r"[^\w.-]", "-", cascade.cascade_id)[:100]
    spending = SpendingLedger()
    summaries: dict[str, Any] = {}  # builder arguments with which a model structures compactions
    if summary_model is not None:
        key = os.environ.get(SUMMARY_KEY_VARIABLE) or None
        writer = ModelSummarizer(GovernedModel(model_at(summary_model, key), spending=spending), sections=True)
        summaries = {"summarizer": "structured", "ahead": SummaryAhead(writer)}
    with open_uri(store, tenant) as opened, progress("run", shown=not as_json) as tell:
        runner = CascadeRunner(
            store=opened,
            cascade=cascade,
            run=name,
            player=FunctionPlayer(
                model=answer,
                tools=named,
                validators=judges.named,
                evaluate=judge,
                script=replies,
            ),
            tenant=tenant,
            system=system,
            builder=lambda policy: EnvelopeBuilder(
                model=model, budgets=asked.budgets if budgets else None, policy=policy, now=utc_now, **summaries
            ),
            input=recorded.input if given is None else read_input(given),
            profile=read_profile(profile),
            tools=named,
            max_calls=max_calls,
            workers=workers,
            scratchpad=scratchpad,
            strategies=strategies,
            tell=tell,
        )
        end = runner.play()
        rows = efficiency_of(opened, cascade, name, counter=asked.counter, prices=prices, tenant=tenant)
        RunLedger(opened, name, tenant).put("efficiency", rows[-1].document())
        script_rows = list(recording_of(opened, cascade, name, tenant=tenant)) if record is not None else []
    if record is not None:
        record.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in script_rows), encoding="utf-8")
    for row in rows:
        figures = {f"context.efficiency.{key}": value for key, value in row.document().items()}
        with spanned("context.efficiency", {"context.cascade": cascade.cascade_id, **figures}):
            pass
    document = {**end_document(end), "efficiency": [row.document(price) for row in rows]}
    if summary_model is not None:
        document["summaries"] = [
            {"session": spent.name, "calls": spent.calls, "failures": spent.failures, **spent.usage.model_dump()}
            for spent in spending.rows()
            if spent.account == "session"
        ]
    print_result(document, _show, as_json=as_json)
    return FOUND if end.status == "failed" else 0


def end_document(end: RunEnd) -> dict[str, Any]:
    """Return a run's end as JSON values with stable keys."""
    return {
        "run": end.run,
        "status": end.status,
        "phases": [
            {**phase._asdict(), "findings": [{"kind": kind, "text": text} for kind, text in phase.findings]}
            for phase in end.phases
        ],
        "state": end.state,
    }


def _check_functions(
    cascade: Cascade, replies: ModelScript | None, tools: Mapping[str, object], judges: Functions
) -> None:
    """Raise `InputError` before the first call if a tool or validator without a function would stop the run later."""
    validators = [
        (phase.name, name)
        for each in every_cascade(cascade)
        for phase in each.phases
        if (name := phase.rules.loop_until) is not None and judges.find(name) is None
    ]
    if replies is not None:
        return
    for name, function in tools.items():
        if function is None:
            raise InputError(f"{cascade.cascade_id}: tool {name!r} has no function; add --tool {name}=MODULE:FUNCTION")
    for phase, validator in validators:
        hint = f"add --validator {validator}=MODULE:FUNCTION"
        raise InputError(f"{cascade.cascade_id}: validator {validator!r} of {phase!r} has no function; {hint}")


def _show(console: Console, document: dict[str, Any]) -> None:
    console.print(shown(f"run {document['run']}: {document['status']}"))
    rows = [
        (
            phase["phase"],
            phase["status"],
            str(phase["calls"]),
            str(phase["tries"]),
            str(phase["attempts"]) if phase["chosen"] is None else f"{phase['attempts']}, #{phase['chosen']}",
            " ".join((phase["reason"] or phase["text"]).split())[:200],
        )
        for phase in document["phases"]
    ]
    columns: tuple[str, ...] = ("calls", "tries", "attempts")
    console.print(grid("phase", "status", *columns, "output", rows=rows, numbers=columns))
    costs = document["efficiency"]
    sent = [
        (
            row["phase"],
            f"{row['calls']:,}",
            f"{row['compactions']:,}",
            f"{row['sent_tokens']:,}",
            f"{row['everything_tokens']:,}",
            f"{100 * row['saved']:.1f} %",
        )
        for row in costs
    ]
    columns = ("calls", "compactions", "sent", "everything", "saved")
    console.print(grid("phase", *columns, rows=sent, numbers=columns))
    both, dollars = ("sent_priced", "everything_priced"), any("dollars" in row for row in costs)
    priced = [
        (
            row["phase"],
            *(f"{row[name]:,.0f}" for name in both),
            f"{row['priced_ratio']:.2f}",
            *(f"{row['dollars'][name]:.4f}" for name in both if dollars),
        )
        for row in costs
    ]
    columns = ("cache-priced", "everything", "ratio", *(("$ sent", "$ everything") if dollars else ()))
    console.print(grid("phase", *columns, rows=priced, numbers=columns))
    for row in document.get("summaries", ()):
        calls = f"{row['calls']:,} calls for summaries, {row['failures']:,} without an answer"
        tokens = f"{row['prompt_tokens']:,} tokens read, {row['output_tokens']:,} written"
        console.print(shown(f"{row['session']}: {calls}; {tokens}"))
    for phase in document["phases"]:
        for finding in phase["findings"]:
            console.print(shown(f"{phase['phase']}: {finding['kind']}: {finding['text']}"))


# -- handing over ---------------------------------------------------------------------------------------------------


@click.command()
@click.argument("session")
@click.option("--start", metavar="ID", help="Start this new session with the handoff.")
@click.option("--role", metavar="NAME", help="Role of the worker; default: the phase.")
@click.option(
    "--workspace",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(),
    metavar="FOLDER",
    help="Folder whose git branch, head and changed files are included; default: this one.",
)
@common
def handoff(
    session: str, start: str | None, role: str | None, workspace: Path, as_json: bool, store: str, tenant: str
) -> None:
    """Print where the work of SESSION stands: goal, plan, what is done, open, decided and blocked.

    SESSION may be a run of `ctxsteward run`. --json prints the published document `handoff`. --start begins a new
    session that opens with the handoff.
    """
    with open_stored(store, tenant) as opened:
        progress = progress_of(opened, session, tenant=tenant)
        read = session if progress is None or progress.session is None else progress.session
        document = handoff_of(
            stored_session(opened, read, tenant),
            workspace=git_workspace(workspace),
            now=utc_now,
            notes=progress.notes if progress else None,
            role=role or (progress.left[0] if progress and progress.left else None),
            completed=[f"phase {name}" for name in progress.ended] if progress else (),
            remaining=[f"phase {name}" for name in progress.left] if progress else (),
        )
        if start is not None:
            head = opened.at(tenant, read).state.head
            resume(opened, document, start, tenant=tenant, system=list(head.system), tools=list(head.tools))
    if as_json:
        print_document("handoff", document.model_dump(mode="json"))
    else:
        click.echo(shown(opening_of(document)).plain)
    if start is not None:
        note(f"session {start} begins with it")


def git_workspace(folder: Path) -> Workspace:
    """Return git's branch, head and changed files of a folder; empty if it is not under version control."""
    branch = _git(folder, "rev-parse", "--abbrev-ref", "HEAD")
    if branch is None:
        return Workspace()
    modified: list[str] = []
    created: list[str] = []
    rows = iter((_git(folder, "status", "--porcelain=v1", "-z") or "").split("\0"))
    for row in rows:
        if len(row) > 3:
            (created if row[:2] == "??" or "A" in row[:2] else modified).append(row[3:])
            if "R" in row[:2]:
                next(rows, None)  # skip the old name of a renamed file
    return Workspace(
        branch.strip(), (_git(folder, "rev-parse", "HEAD") or "").strip() or None, tuple(modified), tuple(created)
    )


def _git(folder: Path, *arguments: str) -> str | None:
    command = ["git", "-C", str(folder), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None
