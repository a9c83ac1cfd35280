"""Subjects by name: ``ours``, a baseline, a library's strategy, and anybody's.

    my_package.context:newest      a function or a class of a module that can be imported from here
    context.py:newest              the same of a file
    https://localhost:8000/context a server (`http`)
    inspect:my_package:solver      an Inspect solver (`inspect_solver`)

Raises `InputError` that says what was found and what to write.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from ctxsteward.schemas import InputError, Wire

from ..peers import PEERS
from . import baselines
from .http import HttpSubject
from .library import LibrarySubject
from .port import Dialogue, FunctionDialogue, Strategy, Subject, Task

OURS = "ours"
DialogueType = Callable[[Task, Callable[[Wire], int]], Dialogue]
FUNCTIONS: Mapping[str, Strategy] = {
    "everything": baselines.everything,
    "window": baselines.window,
    "newest-tokens": baselines.newest_tokens,
    "masking": baselines.masking,
}
DIALOGUES: Mapping[str, DialogueType] = {
    "bm25": baselines.Bm25Dialogue,
    "random": baselines.RandomDialogue,
    "summary": baselines.SummaryDialogue,
    "offload": baselines.OffloadDialogue,
}
BASELINES = (*FUNCTIONS, *DIALOGUES)
SUBJECTS = (OURS, *BASELINES, *PEERS)
"""Names that are shipped."""
OTHERS: Mapping[str, str] = {
    "module:name": "A function or a class of a module that can be imported from here.",
    "FILE.py:name": "The same of a file.",
    "http://HOST/PATH": "A server that is asked by POST, in any language.",
    "inspect:module:name": "An Inspect solver; needs the extra `inspect`.",
}


def described() -> list[tuple[str, str]]:
    """Each shipped subject, and each way to name another, with a sentence on it."""
    ours = [(OURS, "Our builder, with the options of the run.")]
    simple = [(name, _first_sentence(each.__doc__)) for name, each in {**FUNCTIONS, **DIALOGUES}.items()]
    libraries = [
        (name, f"A library's own code, in the environment of `make adapters`. {_note(name)}") for name in PEERS
    ]
    return [*ours, *simple, *libraries, *OTHERS.items()]


def _first_sentence(text: str | None) -> str:
    return (text or "").strip().split("\n")[0]


def _note(name: str) -> str:
    return str(getattr(PEERS[name], "keywords", {}).get("note") or getattr(PEERS[name], "note", ""))


@dataclass(frozen=True, slots=True)
class NamedSubject:
    """A baseline, or what a Python path names: found in the process that asks it."""

    name: str

    def open(self, task: Task, tokens: Callable[[Wire], int]) -> Dialogue:
        if self.name in DIALOGUES:
            return DIALOGUES[self.name](task, tokens)
        strategy = FUNCTIONS.get(self.name) or loaded(self.name)
        if isinstance(strategy, type):
            return _dialogue(self.name, strategy(task, tokens))
        if hasattr(strategy, "open"):
            return _dialogue(self.name, strategy.open(task, tokens))
        return FunctionDialogue(self.name, strategy, task, tokens)


def subject_named(name: str) -> Subject | None:
    """The subject of a name; None: ours. A Python path is tried at once, so that a wrong one is told before a run."""
    if name == OURS:
        return None
    if name in PEERS:
        return LibrarySubject(name)
    if name.startswith(("http://", "https://")):
        return HttpSubject(name)
    if name not in BASELINES:
        loaded(name)
    return NamedSubject(name)


@cache
def loaded(name: str) -> Any:
    """The function, class or object that a Python path names."""
    inspect, _, path = name.rpartition("inspect:")
    place, colon, attribute = path.rpartition(":")
    if not colon or not place or not attribute:
        known = ", ".join(SUBJECTS)
        raise InputError(f"subject {name!r:.80} is none; one of: {known}; or a module:function, FILE.py:function, URL")
    module = _file(name, Path(place)) if place.endswith(".py") else _module(name, place)
    found = getattr(module, attribute, None)
    if found is None:
        raise InputError(f"subject {name}: {place} has no {attribute!r}")
    if inspect or name.startswith("inspect:"):
        return _solver(name, found)
    if not callable(found) and not hasattr(found, "open"):
        raise InputError(f"subject {name}: {found!r:.60} is neither a function nor a class; see `evals subjects`")
    return found


def _module(name: str, place: str) -> Any:
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        return import_module(place)
    except ImportError as error:
        raise InputError(f"subject {name}: {place} cannot be imported ({error}); run where it can be") from error


def _file(name: str, path: Path) -> Any:
    if not path.is_file():
        raise InputError(f"subject {name}: no file {path}")
    spec = spec_from_file_location(f"_subject_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise InputError(f"subject {name}: {path} does not run: {type(error).__name__}: {error}") from error
    return module


def _solver(name: str, found: Any) -> Strategy:
    try:
        from .inspect_solver import strategy_of
    except ImportError as error:
        raise InputError(f"subject {name} needs the extra `inspect`: pip install 'ctxsteward[inspect]'") from error
    return strategy_of(found())


def _dialogue(name: str, found: object) -> Dialogue:
    if not isinstance(found, Dialogue):
        raise InputError(f"subject {name}: {found!r:.60} has no methods `add` and `prompt`")
    return found
