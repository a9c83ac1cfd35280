"""Read a suite file: one YAML file, with conversations in it or in a file of JSON lines beside it.

    suite = load_suite("my-suite.yaml")
    result = played(suite.eval_suite, suite.jobs, Setup(), gates=suite.gates, play=play_job, …)

`SuiteFile` checks every field by itself. This module checks the references between parts: ids, figures, gates, places,
and whether the values that an ask wants were said. It reports the first fault.

Raises `InputError` with file, line, field, what was found and what to do, and `InputTooLarge`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from ctxsteward.envelope.transcripts.strict_json import decode, open_input
from ctxsteward.schemas import InputError, InvalidMessage, Message
from ctxsteward.schemas.errors import InvalidTranscript
from ctxsteward.schemas.eval_suite import AskJudge, SuiteAsk, SuiteFile, SuiteScenario
from ctxsteward.schemas.message import Wire
from ctxsteward.schemas.profile import ProfileDocument
from ctxsteward.store.profiles.text import Profile
from ctxsteward.store.strict_yaml import DocumentKind, read_mapping, read_text, show, written

from ..canaries import normalize, shows
from ..document_faults import PlacedPart, checked, refused
from ..prompt_cost import Prices, openai_faults
from ..suites.catalogue import NAMES
from ..suites.gates import Gates, for_all, gates_of
from ..suites.kit.model_judges import JUDGED
from ..suites.kit.said_texts import texts_of
from ..suites.kit.suite import Draw, EvalSuite, Metric
from .file_scenarios import FIGURES, FileAsk, FileScenario, play_file

MAX_BYTES = 16 << 20
MAX_DEPTH = 60
ROLES = ("user", "assistant", "tool")


def _refuse_key(where: str, key: str, found: str, todo: str) -> InputError:
    return refused(where, written(key.split(".")), found, todo)


_YAML = DocumentKind(
    what="suite",
    refuse=_refuse_key,
    max_bytes=MAX_BYTES,
    max_depth=MAX_DEPTH,
    expected="write a mapping with schema_version, name, about, scenarios",
)


class PlacedScenario(NamedTuple):
    """A conversation of the file and its place, with its asks and their places."""

    value: SuiteScenario
    part: PlacedPart
    asks: list[tuple[SuiteAsk, PlacedPart]]


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSuite:
    """A suite that was read."""

    path: Path
    document: SuiteFile
    eval_suite: EvalSuite
    jobs: tuple[FileScenario, ...]
    gates: Gates
    digest: str
    """SHA-256 of everything that figures depend on: the file, its conversations, its profiles."""

    @property
    def is_draft(self) -> bool:
        return self.document.status == "draft"


def load_suite(path: str | Path) -> FileSuite:
    """Read a suite and the files that it names."""
    path = Path(path)
    tree = read_mapping(read_text(path, _YAML), str(path), _YAML)
    root = PlacedPart(tree.place)
    document = checked(SuiteFile, tree.value, root, "eval_suite")
    placed = _with_asks_apart(document, _scenarios(document, path, root), root)
    metrics = _metrics(document, root)
    if document.judge.kind == "model" or any(ask.judge for conversation in placed for ask, _ in conversation.asks):
        metrics.append(JUDGED)
    gates = _gates(document, metrics, root)
    metric_by_name = {metric.name: metric for metric in metrics}
    profiles: dict[str, ProfileDocument] = {}
    jobs = tuple(
        _scenario(
            document,
            number,
            conversation,
            metric_by_name,
            _profile(conversation.value.profile, conversation.part, document, root, path, profiles),
        )
        for number, conversation in enumerate(placed)
    )
    suite = EvalSuite(
        name=document.name,
        about=document.about,
        metrics=tuple(metrics),
        play=play_file,
        scenarios=len(jobs),
        make=lambda draw: jobs[draw.number],
    )
    content = [
        document.model_dump(mode="json", exclude={"gates", "status", "scenarios", "asks"}),
        [conversation.value.model_dump(mode="json") for conversation in placed],
        [ask.model_dump(mode="json") for ask in document.asks],
        {name: profile.model_dump(mode="json") for name, profile in sorted(profiles.items())},
    ]
    digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
    return FileSuite(path=path, document=document, eval_suite=suite, jobs=jobs, gates=gates, digest=digest)


# -- figures and gates -------------------------------------------------------------------------------------------


def _metrics(document: SuiteFile, root: PlacedPart) -> list[Metric]:
    if document.name in NAMES:
        raise root.at("name").refused(f"the name of a shipped suite, {document.name!r}", "choose another")
    metrics = list(FIGURES)
    for number, metric in enumerate(document.metrics):
        part = root.at("metrics", number, "name")
        if metric.name in {other.name for other in (*FIGURES, JUDGED)}:
            raise part.refused(f"{metric.name!r}, which every suite file has", "choose another, or leave it out")
        if metric.name in {other.name for other in metrics}:
            raise part.refused(f"{metric.name!r} a second time", "keep one of the two")
        if metric.kind == "count" and metric.better == "higher" and "better" in metric.model_fields_set:
            raise root.at("metrics", number, "better").refused(
                "'higher' for a count of what is missing", "write lower, or leave it out"
            )
        better = "lower" if metric.kind == "count" else metric.better
        metrics.append(Metric(name=metric.name, about=metric.about, kind=metric.kind, better=better))
    return metrics


def _gates(document: SuiteFile, metrics: Sequence[Metric], root: PlacedPart) -> Gates:
    names = [metric.name for metric in metrics]
    for name in document.gates:
        if name not in names:
            raise root.at("gates", name).refused("no figure of this name", f"there are: {', '.join(names)}")
    read = {name: tuple(gates_of(gate, root.at("gates", name))) for name, gate in document.gates.items()}
    return for_all(read, required=False, allow_undecided=document.allow_undecided)


# -- conversations -----------------------------------------------------------------------------------------------


def _scenarios(document: SuiteFile, path: Path, root: PlacedPart) -> Iterator[PlacedScenario]:
    """Yield conversations with the asks inside them."""
    rows: Iterable[tuple[SuiteScenario, PlacedPart]]
    if isinstance(document.scenarios, tuple):
        rows = ((scenario, root.at("scenarios", number)) for number, scenario in enumerate(document.scenarios))
    else:
        rows = _lines(_beside(path, document.scenarios, root.at("scenarios")), root.at("scenarios"))
    for scenario, part in rows:
        yield PlacedScenario(scenario, part, [(ask, part.at("asks", n)) for n, ask in enumerate(scenario.asks)])


def _beside(suite: Path, name: str, named: PlacedPart) -> Path:
    """Find a file in the suite's folder or below it; a stranger's suite must not read anything else."""
    folder = suite.resolve().parent
    hint = "name a file in the suite's folder or below it; copy it there if it lies elsewhere"
    try:
        path = (folder / name).resolve()  # follows links, so that no link leads outside
    except (OSError, ValueError, RuntimeError) as error:  # a null character, a loop of links
        raise named.refused(f"{show(name)} cannot be a file: {error}", hint) from error
    if not path.is_relative_to(folder):
        raise named.refused(f"{show(name)} lies outside the suite's folder", hint)
    return suite.parent / name


def _lines(path: Path, named: PlacedPart) -> Iterator[tuple[SuiteScenario, PlacedPart]]:
    """Yield the conversations of a file of JSON lines."""
    if not path.is_file():
        raise named.refused(f"no file {path}", "name a file of JSON lines beside this one, or write a list here")
    empty = True
    for line in open_input(path).lines():
        empty = False
        number = line.number
        part = PlacedPart(lambda keys, number=number: f"{path}:{number}")  # type: ignore[misc]
        try:
            value = decode(line.data, str(path), "")
        except InvalidTranscript as error:
            raise part.refused(error.found, error.hint) from error
        if not isinstance(value, dict):
            raise part.refused(show(value), 'write one conversation a line: {"id": …, "messages": […]}')
        yield checked(SuiteScenario, value, part, "eval_scenario"), part
    if empty:
        raise refused(str(path), "", "the file is empty", "write one conversation a line")


def _with_asks_apart(
    document: SuiteFile, scenarios: Iterable[PlacedScenario], root: PlacedPart
) -> list[PlacedScenario]:
    """Join the asks of the document to their conversations; raise `InputError` for duplicate and unknown ids."""
    placed: dict[str, PlacedScenario] = {}
    for scenario in scenarios:
        if scenario.value.id in placed:
            first = placed[scenario.value.id].part
            repeated = f"{scenario.value.id!r} a second time, as at {first.where((*first.keys, 'id'))}"
            raise scenario.part.at("id").refused(repeated, "give each conversation an id of its own")
        placed[scenario.value.id] = scenario
    for number, ask in enumerate(document.asks):
        part = root.at("asks", number)
        if ask.scenario not in placed:
            ids = ", ".join(list(placed)[:5]) + (", …" if len(placed) > 5 else "")
            raise part.at("scenario").refused(f"no conversation {ask.scenario!r}", f"there are: {ids}")
        placed[ask.scenario].asks.append((ask, part))
    return list(placed.values())


def _scenario(
    document: SuiteFile,
    number: int,
    placed: PlacedScenario,
    metrics: Mapping[str, Metric],
    profile: ProfileDocument | None,
) -> FileScenario:
    scenario, part, _ = placed
    _check_messages(scenario.messages, part)
    _check_tools(scenario.tools, part)
    texts = [normalize(scenario.system or ""), *(normalize("\n".join(texts_of(wire))) for wire in scenario.messages)]
    return FileScenario(
        draw=Draw(document.name, "ci", number),
        name=scenario.id,
        metrics=tuple(metrics.values()),
        messages=scenario.messages,
        asks=tuple(
            replace(_ask(ask, at, scenario, texts, metrics), number=number, asked=_asked(ask, at, document))
            for number, (ask, at) in enumerate(placed.asks, 1)
        ),
        system=scenario.system,
        tools=scenario.tools,
        profile=profile,
        budget_tokens=scenario.budget_tokens or document.budget_tokens,
        stale_always=document.judge.stale == "always",
        prices=Prices(cached=document.judge.cached_price),
    )


def _check_messages(messages: Sequence[Wire], part: PlacedPart) -> None:
    for number, wire in enumerate(messages):
        at = part.at("messages", number)
        if wire.get("role") in ("system", "developer"):
            raise at.at("role").refused(f"the role {wire['role']!r}", "write the operator's words into `system`")
        if wire.get("role") not in ROLES:
            raise at.at("role").refused(show(wire.get("role")), f"write one of: {', '.join(ROLES)}")
        try:
            Message.from_wire(wire)
        except InvalidMessage as error:
            raise at.at(error.field).refused(error.found, f"write {error.expected}") from error
    try:
        faults = openai_faults({"messages": messages})
    except (AttributeError, KeyError, TypeError) as error:
        raise part.at("messages").refused(f"a tool call without id or function ({error})", "write it whole") from error
    if faults:
        raise part.at("messages").refused(f"no provider would accept it: {faults[0]}", "correct the conversation")


def _check_tools(tools: Sequence[Wire], part: PlacedPart) -> None:
    for number, tool in enumerate(tools):
        function = tool.get("function")
        if not isinstance(function, dict) or not isinstance(function.get("name"), str):
            hint = 'write {"type": "function", "function": {"name": …, "parameters": …}}'
            raise part.at("tools", number).refused("not a tool declaration of OpenAI chat", hint)


def _ask(
    ask: SuiteAsk, part: PlacedPart, scenario: SuiteScenario, texts: Sequence[str], metrics: Mapping[str, Metric]
) -> FileAsk:
    """Check an ask and convert it; `texts` are the system prompt and each message, normalized."""
    messages = scenario.messages
    if ask.after > len(messages):
        raise part.at("after").refused(
            f"{ask.after}, but the conversation has {len(messages)} messages", "name one of them"
        )
    if ask.after < len(messages) and messages[ask.after]["role"] == "tool":
        raise part.at("after").refused(f"{ask.after}, between a tool call and its result", "ask behind the result")
    for number, of in enumerate(ask.of):
        if of > ask.after:
            raise part.at("of", number).refused(f"message {of}, which is said later", f"name 1 to {ask.after}")
    own = [name for name in metrics if name == "shown" or name not in {metric.name for metric in (*FIGURES, JUDGED)}]
    if ask.metric not in own:
        raise part.at("metric").refused(f"{ask.metric!r}", f"write one of: {', '.join(own)}; or add it to `metrics`")
    made = FileAsk(
        metric=ask.metric,
        after=ask.after,
        question=ask.question,
        wants=ask.wants,
        avoids=ask.avoids,
        kind=ask.kind,
        of=ask.of,
        own=None if ask.metric == "shown" else metrics[ask.metric],
        label=None if ask.label is None else ask.label == "yes",
    )
    _check_values(ask, part, "\n".join(texts[: ask.after + 1]), is_kept_out=made.is_kept_out)
    return made


def _asked(ask: SuiteAsk, part: PlacedPart, document: SuiteFile) -> str:
    """Return the question for model judges about an ask; empty if there is none."""
    kept_out = {metric.name for metric in document.metrics if metric.kind == "rate" and metric.better == "lower"}
    is_default = document.judge.kind == "model" and ask.wants and ask.metric not in kept_out
    judge = ask.judge or (AskJudge() if is_default else None)
    if judge is None:
        return ""
    if judge.statement is not None and judge.question is not None:
        raise part.at("judge").refused("a statement and a question", "keep one of the two")
    if judge.statement is not None:
        return f"Is this true, by the text alone?\n{judge.statement}"
    if judge.question is not None:
        return f"Answer by the text alone.\n{judge.question}"
    if not ask.wants:
        raise part.at("judge").refused("neither a statement nor a question", "write one, or what the ask `wants`")
    avoids = f" It is not {', '.join(ask.avoids)} any more." if ask.avoids else ""
    answer = f"To the question “{ask.question}” the answer is: {', '.join(ask.wants)}.{avoids}"
    return f"Is this true, by the text alone?\n{answer}"


def _check_values(ask: SuiteAsk, part: PlacedPart, text: str, *, is_kept_out: bool) -> None:
    """Refuse an ask whose answer is in its question or was never said, because it distinguishes no strategies."""
    question = normalize(ask.question)
    if not ask.wants:
        if ask.judge is None:
            raise part.at("wants").refused("nothing", "write at least one, or what a model judges under `judge`")
        for name in ("avoids", "of", "metric"):
            if name in ask.model_fields_set:
                raise part.at(name).refused("about `wants`, which is empty", "leave it out, or say what is wanted")
    for number, value in enumerate(ask.wants):
        at = part.at("wants", number)
        if value in ask.avoids:
            raise at.refused(f"{value!r}, which is also to be avoided", "keep one of the two")
        if shows(question, value):
            raise at.refused(f"{value!r}, which the question itself says", "ask without it")
        if not is_kept_out and not shows(text, value):
            what = f"{value!r}, which stands in none of the first {ask.after} messages"
            raise at.refused(what, "write it as it was said, or ask later")


def _profile(
    named: str | None,
    part: PlacedPart,
    document: SuiteFile,
    root: PlacedPart,
    path: Path,
    read: dict[str, ProfileDocument],
) -> ProfileDocument | None:
    """Return the profile that a scenario names, else the suite's; each file is read once into `read`."""
    name, at = (named, part) if named is not None else (document.profile, root)
    if name is None:
        return None
    if name not in read:
        file = _beside(path, name, at.at("profile"))
        try:
            read[name] = Profile.load(file)
        except InputError as error:
            raise at.at("profile").refused(str(error), "name a profile file, or leave it out") from error
    return read[name]
