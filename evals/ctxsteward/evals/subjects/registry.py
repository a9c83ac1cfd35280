"""Find subjects by name: ``ours``, a baseline, or one of your own.

    my_package.context:newest      a function or a class of a module that can be imported from here
    context.py:newest              the same of a file
    https://localhost:8000/context a server (`HttpDialogue`)
    inspect:my_package:solver      an Inspect solver (`inspect_solver`)

Raises `InputError` with the value found and what to write.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, redirect_stdout
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from inspect import signature
from pathlib import Path
from typing import Any

from ctxsteward.schemas import InputError
from ctxsteward.schemas.message import Wire

from . import answers, baselines
from .http import HttpDialogue
from .port import Dialogue, FunctionDialogue, Strategy, Subject, Task

OURS = "ours"
ADDRESSES = ("http://", "https://")
DialogueType = Callable[[Task, Callable[[Wire], int]], Dialogue]
FUNCTIONS: Mapping[str, Strategy] = {
    "everything": baselines.everything,
    "window": baselines.window,
    "newest-tokens": baselines.newest_tokens,
    "masking": baselines.masking,
}
DIALOGUES: Mapping[str, DialogueType] = {
    "bm25": baselines.Bm25Dialogue,
    "retrieval": baselines.RetrievalDialogue,
    "random": baselines.RandomDialogue,
    "summary": baselines.SummaryDialogue,
    "offload": baselines.OffloadDialogue,
}
BASELINES = (*FUNCTIONS, *DIALOGUES)
SUBJECTS = (OURS, *BASELINES)
"""Names of shipped subjects."""
OTHERS: Mapping[str, str] = {
    "module:name": "A function or a class of a module that can be imported from here.",
    "FILE.py:name": "The same of a file.",
    "http://HOST/PATH": "A server that is asked by POST, in any language.",
    "inspect:module:name": "An Inspect solver; needs the extra `inspect`.",
}


def described() -> list[tuple[str, str]]:
    """Return each shipped subject and each form of other names, with a sentence."""
    ours = [(OURS, "Our builder, with the options of the run.")]
    strategies = {**FUNCTIONS, **DIALOGUES}.items()
    simple = [(name, (strategy.__doc__ or "").strip().split("\n")[0]) for name, strategy in strategies]
    return [*ours, *simple, *OTHERS.items()]


@dataclass(frozen=True, slots=True)
class NamedSubject:
    """A baseline, a Python path or an address; each process loads it by name."""

    name: str

    def open(self, task: Task, tokens: Callable[[Wire], int]) -> Dialogue:
        if self.name.startswith(ADDRESSES):
            return HttpDialogue(self.name, task)
        if self.name in DIALOGUES:
            return DIALOGUES[self.name](task, tokens)
        strategy = FUNCTIONS.get(self.name) or loaded(self.name)
        if not isinstance(strategy, type) and not hasattr(strategy, "open"):
            return FunctionDialogue(strategy, task, tokens)
        dialogue = strategy(task, tokens) if isinstance(strategy, type) else strategy.open(task, tokens)
        if not isinstance(dialogue, Dialogue):
            raise InputError(f"subject {self.name}: {dialogue!r:.60} has no methods `add` and `prompt`")
        return dialogue


def subject_named(name: str) -> Subject | None:
    """Find a subject by name; None for ours. Loads a Python path at once, to report a wrong one before the run."""
    if name == OURS:
        return None
    if name not in BASELINES and not name.startswith(ADDRESSES):
        loaded(name)
    return NamedSubject(name)


def try_out(subject: Subject) -> None:
    """Ask a subject for the prompt of one short message; raise `InputError` if that fails.

    This reports a server that is not running, or an answer of a wrong type, before a suite is played.
    """
    try:
        with ExitStack() as stack:
            dialogue = subject.open(Task("first", FIRST_BUDGET_TOKENS), lambda wire: len(str(wire)) // 4)
            stack.callback(getattr(dialogue, "close", lambda: None))
            answers.say(dialogue, {"role": "user", "content": "Hello."})
            answers.ask(subject.name, dialogue)
    except Exception as error:  # a strategy is the caller's code
        reason = str(error) if isinstance(error, InputError) else f"{type(error).__name__}: {error}"
        reason = reason.removeprefix("subject ").removeprefix(f"{subject.name}: ")
        where = "" if isinstance(error, InputError) else answers.raised_at(error)
        what = "asked for the prompt of a conversation of one message, it failed"
        raise InputError(f"subject {subject.name}: {what}: {reason}{where}") from error


FIRST_BUDGET_TOKENS = 1_000
INSPECT = "inspect:"


@cache
def loaded(name: str) -> Any:
    """Load the function, class or object that a Python path names."""
    near = _near(name, SUBJECTS) or f"one of: {', '.join(SUBJECTS)}"
    subject = named_object("subject", name, hint=f"{near}; or ")
    if name.startswith(INSPECT):
        return _solver(name, subject)
    asked = subject if isinstance(subject, type) else getattr(subject, "open", subject)
    if not callable(asked):
        raise InputError(f"subject {name}: {subject!r:.60} is neither a function nor a class; see `evals subjects`")
    _check_call(
        name, asked, ("conversation",) if asked is subject and not isinstance(subject, type) else ("task", "tokens")
    )
    return subject


def named_object(what: str, name: str, hint: str = "write ") -> Any:
    """Load ``module:name`` or ``FILE.py:name``; errors call it `what`."""
    if "://" in name:
        raise InputError(f"{what} {name:.80}: an address begins with http:// or https://")
    place, colon, attribute = name.removeprefix(INSPECT).rpartition(":")
    if name.endswith(".py") and Path(name).is_file():
        raise InputError(f"{what} {name}: which of its functions? write {name}:NAME; {_functions_of(what, name)}")
    if not colon or not place or not attribute:
        raise InputError(f"unknown {what} {name!r:.80}; {hint}a module:function, FILE.py:function, URL")
    module = _imported(f"{what} {name}", place)
    value = getattr(module, attribute, None)
    if value is None:
        near = _near(attribute, [public for public in vars(module) if not public.startswith("_")])
        raise InputError(f"{what} {name}: {place} has no {attribute!r}; {near or _functions_of(what, place)}")
    return value


def _functions_of(what: str, place: str) -> str:
    module = _imported(f"{what} {place}", place)
    names = [name for name, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__]
    return f"it has {', '.join(names[:8])}" if names else "it defines none"


def _check_call(name: str, asked: Callable[..., object], arguments: Sequence[str]) -> None:
    try:
        signature(asked).bind(*arguments)
    except TypeError as error:
        raise InputError(f"subject {name}: it is called with ({', '.join(arguments)}): {error}") from error
    except ValueError:  # a callable written in C may have no signature
        return


def _near(name: str, names: Iterable[str]) -> str:
    near = get_close_matches(name, names, n=1)
    return f"did you mean {near[0]!r}?" if near else ""


def _imported(named: str, place: str) -> Any:
    """Import a module, or run a file as a script whose folder can be imported from."""
    path = Path(place)
    is_file = path.suffix == ".py"
    if is_file and not path.is_file():
        raise InputError(f"{named}: no file {path}")
    folder = str(path.absolute().parent) if is_file else str(Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        with redirect_stdout(sys.stderr):
            return _run(path) if is_file else import_module(place)
    except (Exception, SystemExit) as error:
        what = "does not run" if is_file else "cannot be imported"
        raise InputError(f"{named}: {place} {what}: {type(error).__name__}: {error}") from error


def _run(path: Path) -> Any:
    spec = spec_from_file_location(f"_subject_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def _solver(name: str, maker: Any) -> Strategy:
    try:
        from .inspect_solver import strategy_of
    except ImportError as error:
        raise InputError(f"subject {name} needs the extra `inspect`: pip install 'ctxsteward[inspect]'") from error
    try:
        solver = maker() if callable(maker) else maker
    except TypeError as error:
        raise InputError(f"subject {name}: it is called without arguments: {error}") from error
    if not callable(solver):
        raise InputError(f"subject {name}: {type(solver).__name__} {solver!r:.60} is no solver; name what makes one")
    return strategy_of(solver)
