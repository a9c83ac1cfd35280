"""The port of a running cascade (`Player`: a model, tools, validators), and a script that plays all three.

A script has one row per reply of the model, in order: a YAML file with `replies`, or JSONL of rows (the form of a
recording). A row names its phase and the model's reply:

    {phase: dig, text: "I look.", calls: [{tool: search, arguments: {q: tea}, result: "3 hits"}]}
    {phase: dig, text: "Three.", refused: "say where you found them"}
    {phase: dig, text: "Three, in the ledger."}

A call without a `result` is answered by the player's tool. `refused` is the reason for which the phase's validator
refuses the reply; a reply without it passes. `attempt` (from 1) is the sounding of a row, `evaluator` marks the choice
among soundings, `cascade` names the sub-cascade of the phase. `usage` is the provider's report.

Replies are looked up by their place (cascade, phase, attempt, number) and not by order of calls, because a run that was
killed asks for the same ones again. Raises `InvalidCascade` with file, row and key; `InputError` if the run asks for
more replies than its script has.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Protocol

from pydantic import Field, StrictInt, StrictStr, ValidationError, create_model

from ctxsteward.schemas import InputError
from ctxsteward.schemas.errors import InvalidCascade, InvalidTranscript
from ctxsteward.schemas.frozen import FrozenModel
from ctxsteward.schemas.message import Wire
from ctxsteward.store.strict_yaml import Tree, explained, show

from ..transcripts.strict_json import decode, open_input
from .config import load_tree, refused

Purpose = Literal["phase", "evaluator"]


class ModelRequest(NamedTuple):
    """One call of the model."""

    cascade: str
    """`cascade_id` of the cascade."""
    phase: str
    attempt: int | None
    """Number of the sounding, or None without soundings."""
    number: int
    """Number of the call in this attempt, from 1; retries continue the count."""
    purpose: Purpose
    request: Wire
    """Arguments of OpenAI's chat completions: `messages`, and `tools` if there are any."""


class ModelAnswer(NamedTuple):
    """The model's reply."""

    message: Wire
    """The assistant's message, as OpenAI's chat completions return it."""
    usage: Wire | None = None
    """Usage as the provider reported it: `prompt_tokens`, `completion_tokens`."""


class ToolUse(NamedTuple):
    """A call of a tool that needs its result."""

    cascade: str
    phase: str
    attempt: int | None
    number: int
    """Number of the model's reply that made the call."""
    place: int
    """Position among that reply's calls, from 0."""
    id: str
    tool: str
    arguments: str
    """Text as the model wrote it, perhaps invalid JSON."""


class ToolAnswer(NamedTuple):
    """A tool's result."""

    text: str
    is_error: bool = False


class PhaseOutput(NamedTuple):
    """A reply that ends an attempt, for its validator."""

    cascade: str
    phase: str
    attempt: int | None
    number: int
    """Number of the reply."""
    validator: str
    text: str


class EvaluatedAttempt(NamedTuple):
    """An attempt that an evaluator may choose."""

    attempt: int
    text: str


class Player(Protocol):
    """Plays the model of a run, its tools, validators and evaluator.

    Its methods may raise, and set their own time limits. After a kill, the run may repeat a request.
    """

    def answer(self, request: ModelRequest) -> ModelAnswer: ...

    def tool(self, use: ToolUse) -> ToolAnswer | None:
        """Return the result of a tool, or None for an unknown tool."""

    def verdict(self, output: PhaseOutput) -> str | None:
        """Return why an output is refused, or None if it passes. Raises `InputError` for an unknown validator."""

    def choose(self, phase: str, attempts: Sequence[EvaluatedAttempt]) -> int | None:
        """Return the number of the best attempt, or None to let the model choose by `evaluator_instructions`."""


class ScriptedCall(FrozenModel):
    """A tool call of a scripted reply."""

    tool: Annotated[StrictStr, Field(min_length=1, max_length=200)]
    arguments: dict[str, Any] | StrictStr = Field(default_factory=dict)
    id: Annotated[StrictStr, Field(min_length=1, max_length=200)] | None = None
    result: Any = None
    """Result as text, or any other value as JSON; null if a function plays the tool."""
    error: bool = False
    """Whether the result reports a failure."""


class ScriptedReply(FrozenModel):
    """One row of a script."""

    phase: Annotated[StrictStr, Field(min_length=1, max_length=57)]
    cascade: StrictStr | None = None
    attempt: Annotated[StrictInt, Field(ge=1, le=100)] | None = None
    evaluator: bool = False
    text: StrictStr = ""
    calls: tuple[ScriptedCall, ...] = ()
    refused: StrictStr | None = None
    usage: dict[str, StrictInt] | None = None

    def wire(self, number: int) -> Wire:
        """Return the assistant's message."""
        message: Wire = {"role": "assistant", "content": self.text or None}
        if self.calls:
            message["tool_calls"] = [
                {
                    "id": call.id or f"{self.phase}-{self.attempt or 0}-{number}-{index}",
                    "type": "function",
                    "function": {"name": call.tool, "arguments": _text(call.arguments)},
                }
                for index, call in enumerate(self.calls)
            ]
        elif not self.text:
            message["content"] = ""
        return message


_Place = tuple[str | None, str, int | None, bool]
"""Cascade, phase, attempt, and whether the row is the evaluator's."""


@dataclass(frozen=True)
class ModelScript:
    """A `Player` that answers from rows."""

    source: str
    rows: Mapping[_Place, tuple[ScriptedReply, ...]]

    def answer(self, request: ModelRequest) -> ModelAnswer:
        row = self._row(request.cascade, request.phase, request.attempt, request.number, request.purpose)
        return ModelAnswer(row.wire(request.number), row.usage)

    def tool(self, use: ToolUse) -> ToolAnswer | None:
        """Return the scripted result of this call, or None."""
        row = self._row(use.cascade, use.phase, use.attempt, use.number)
        call = row.calls[use.place] if use.place < len(row.calls) else None
        return None if call is None or call.result is None else ToolAnswer(_text(call.result), call.error)

    def verdict(self, output: PhaseOutput) -> str | None:
        return self._row(output.cascade, output.phase, output.attempt, output.number).refused

    def choose(self, phase: str, attempts: Sequence[EvaluatedAttempt]) -> None:
        """Return None, because the model's choice is a row of its own."""

    @property
    def judges(self) -> frozenset[str]:
        """Phases with a refused reply."""
        return frozenset(row.phase for rows in self.rows.values() for row in rows if row.refused is not None)

    def _row(
        self, cascade: str, phase: str, attempt: int | None, number: int, purpose: Purpose = "phase"
    ) -> ScriptedReply:
        is_choice = purpose == "evaluator"
        of_cascade = ((cascade, phase), (None, phase))
        attempts = (attempt, None) if attempt is not None else (None,)
        places = [(*named, tried, is_choice) for named in of_cascade for tried in attempts]
        rows = next((self.rows[place] for place in places if place in self.rows), ())
        if not 0 < number <= len(rows):
            which = "" if attempt is None else f", attempt {attempt}"
            what = "the choice among attempts" if is_choice else f"reply {number}"
            hint = "add the rows, or let fewer turns be taken"
            raise InputError(f"{self.source}: phase {phase!r}{which} asks for {what}; it has {len(rows)}; {hint}")
        return rows[number - 1]


@dataclass(frozen=True, kw_only=True)
class FunctionPlayer:
    """A `Player` made of functions. A script plays tools and validators without a function."""

    model: Callable[[ModelRequest], ModelAnswer]
    tools: Mapping[str, Callable[..., object] | None] = field(default_factory=dict)
    validators: Mapping[str, Callable[..., object]] = field(default_factory=dict)
    evaluate: Callable[[str, Sequence[EvaluatedAttempt]], int] | None = None
    script: ModelScript | None = None

    def answer(self, request: ModelRequest) -> ModelAnswer:
        return self.model(request)

    def tool(self, use: ToolUse) -> ToolAnswer | None:
        """Return the script's result, else the function's."""
        scripted = None if self.script is None else self.script.tool(use)
        function = self.tools.get(use.tool)
        return scripted if scripted is not None or function is None else called(function, use)

    def verdict(self, output: PhaseOutput) -> str | None:
        """Return the function's verdict, else the script's."""
        function = self.validators.get(output.validator)
        if function is not None:
            return judged(function, output)
        if self.script is None:
            hint = "name a function for it, or say `refused` in the script"
            raise InputError(f"phase {output.phase!r}: nobody plays the validator {output.validator!r}; {hint}")
        return self.script.verdict(output)

    def choose(self, phase: str, attempts: Sequence[EvaluatedAttempt]) -> int | None:
        """Return the evaluator's choice, or None without an evaluator."""
        return None if self.evaluate is None else self.evaluate(phase, attempts)


def load_script(path: str | Path) -> ModelScript:
    """Read a YAML or JSON file with `replies`, or JSONL of rows."""
    if str(path).endswith((".jsonl", ".ndjson")):
        return _script(str(path), _jsonl_rows(path))
    tree = load_tree(path)
    for key in tree.value:
        if key not in ("schema_version", "replies"):
            raise refused(tree, (key,), "unknown key", "allowed: schema_version, replies")
    if tree.value.get("schema_version", 1) != 1:
        raise refused(tree, ("schema_version",), show(tree.value["schema_version"]), "write 1")
    rows = tree.value.get("replies")
    if not isinstance(rows, list):
        raise refused(tree, ("replies",), "nothing" if rows is None else show(rows), "write a list of {phase, text}")
    return _script(tree.source, (_row_of(tree, row, ("replies", str(at))) for at, row in enumerate(rows)))


def script_of(rows: Iterable[Mapping[str, Any]], source: str = "script") -> ModelScript:
    """Make a script of dicts."""
    tree = Tree({}, {}, source)
    return _script(source, (_row_of(tree, dict(row), (str(at),)) for at, row in enumerate(rows)))


def _script(source: str, rows: Iterable[ScriptedReply]) -> ModelScript:
    placed: dict[_Place, tuple[ScriptedReply, ...]] = {}
    for row in rows:
        place = (row.cascade, row.phase, row.attempt, row.evaluator)
        placed[place] = (*placed.get(place, ()), row)
    return ModelScript(source, placed)


def _jsonl_rows(path: str | Path) -> Iterator[ScriptedReply]:
    raw = open_input(path)
    try:
        for line in raw.lines():
            where = f"{raw.source}: line {line.number}"
            yield _row_of(Tree({}, {}, where), decode(line.data, raw.source, f"line {line.number}"), ())
    except InvalidTranscript as error:
        raise InvalidCascade(f"{error.source}: {error.where}", "", error.found, error.hint) from error


def _row_of(tree: Tree, row: object, keys: tuple[str, ...]) -> ScriptedReply:
    if not isinstance(row, dict):
        raise refused(tree, keys, show(row), "write {phase, text}")
    try:
        return ScriptedReply.model_validate(row)
    except ValidationError as error:
        inner, found, todo = explained(row, error.errors(include_url=False)[0], ScriptedReply)
        raise refused(tree, (*keys, *inner), found, todo) from error


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


# -- functions ------------------------------------------------------------------------------------------------------


def tool_schema(name: str, function: Callable[..., object] | None) -> Wire:
    """Return a tool's schema for OpenAI's chat completions; a scripted tool takes any arguments.

    Raises `InputError` for a function whose arguments JSON Schema cannot describe.

    >>> def look(place: str, deep: bool = False) -> str:
    ...     "Look there."
    >>> tool_schema("look", look)["function"]["parameters"]["required"]
    ['place']
    """
    parameters: Wire = {"type": "object"}
    described: Wire = {"name": name, "parameters": parameters}
    if function is not None:
        try:
            described["parameters"] = _arguments_schema(name, function)
        except Exception as error:  # annotations are the caller's code; pydantic raises many kinds of errors for them
            what = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
            hint = "annotate them with types that JSON has, under names without a leading underscore"
            raise InputError(f"tool {name!r}: its arguments cannot be described ({what}); {hint}") from error
        if function.__doc__:
            described["description"] = inspect.cleandoc(function.__doc__).split("\n\n")[0]
    return {"type": "function", "function": described}


def _arguments_schema(name: str, function: Callable[..., object]) -> Wire:
    fields: dict[str, Any] = {}
    for argument in inspect.signature(function, eval_str=True).parameters.values():
        if argument.kind in (argument.VAR_POSITIONAL, argument.VAR_KEYWORD):
            continue
        if argument.name.startswith("_") and argument.default is argument.empty:
            raise NameError(f"{argument.name} is a name that models are not told")
        is_open = argument.annotation is argument.empty
        default = ... if argument.default is argument.empty else argument.default
        fields[argument.name] = (Any if is_open else argument.annotation, default)
    made = create_model(name, **fields).model_json_schema()
    return {key: value for key, value in made.items() if key != "title"}


def called(function: Callable[..., object], use: ToolUse) -> ToolAnswer:
    """Call a function for a tool use. Errors, bad arguments included, become the result that the model sees.

    A value without a JSON form is shown as Python prints it, half a surrogate pair as ``?``.
    """
    try:
        arguments = json.loads(use.arguments or "{}")
        if not isinstance(arguments, dict):
            return ToolAnswer("error: arguments are a JSON object", is_error=True)
        text, is_error = _text(function(**arguments)), False
    except Exception as error:  # a tool is the caller's code and may raise anything; the model may try again
        text, is_error = f"error: {type(error).__name__}: {error}"[:2_000], True
    return ToolAnswer(_well_formed(text), is_error)


def judged(function: Callable[..., object], output: PhaseOutput) -> str | None:
    """Return a validator's verdict from what it returned: valid, (valid, reason), or {valid, reason}."""
    given: Any = function(output.text)
    valid, reason = given if isinstance(given, tuple) and len(given) == 2 else (given, "")
    if isinstance(given, Mapping):
        valid, reason = given.get("valid"), given.get("reason") or ""
    if not isinstance(valid, bool):
        hint = "give True or False, (valid, reason), or {valid, reason}"
        raise InputError(f"validator {output.validator!r} gave {given!r:.60}; {hint}")
    return None if valid else _well_formed(str(reason or "not valid"))


def _well_formed(text: str) -> str:
    return text.encode("utf-8", "replace").decode()
