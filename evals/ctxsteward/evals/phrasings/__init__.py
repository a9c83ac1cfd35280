"""Read the texts of scenarios: YAML files in this folder, read once per process and validated by the classes here.

    texts("attacks", "demands", "en", "ci")
    small_talk("en").of("ci").openings

Most files are tables: kinds of texts by language, or by split and language. Other files have a class here and one
language each; rules may be tuned on ``dev``, which the split ``docs`` uses; ``held_out`` is only for reporting and for
the split ``ci``. Texts of the split ``sealed`` stand in the folder ``sealed``, in files of the same names, so that
nobody reads them while working on the others: leave it closed. An invalid file raises pydantic's `ValidationError`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any, Generic, Literal, NamedTuple, TypeVar, cast, get_args

from pydantic import BaseModel, ConfigDict, TypeAdapter
from ruamel.yaml import YAML

Language = Literal["en", "zh"]
Split = Literal["docs", "ci", "sealed"]
SPLITS: tuple[Split, ...] = get_args(Split)
Texts = tuple[str, ...]
TextsByLanguage = Mapping[Language, Texts]
TextTable = Mapping[str, Mapping[Split, TextsByLanguage] | TextsByLanguage]
"""Texts by kind, then by split and language or by language."""
SEALED = "sealed"
"""Folder of the sealed split's texts."""


class Phrasings(BaseModel):
    """Texts of a file or of a part of it."""

    model_config = ConfigDict(extra="forbid", frozen=True)


Half = TypeVar("Half")
P = TypeVar("P", bound=Phrasings)


class Halves(Phrasings, Generic[Half]):
    """The kinds of texts for development, held out, and sealed."""

    dev: Half
    held_out: Half
    sealed: Half

    def of(self, split: Split) -> Half:
        """Return the texts that a suite's split uses."""
        return {"docs": self.dev, "ci": self.held_out, "sealed": self.sealed}[split]


class CanarySentences(Phrasings):
    """Sentences that plant a value, by kind; fillers of their slots; replies."""

    kinds: Mapping[str, Texts]
    slots: Mapping[str, Texts]
    replies: Texts


class CanaryPhrasings(Phrasings):
    """Sentences that plant a value, by kind; fillers of their slots; text around them.

    The sealed sentences have slots and replies of their own.
    """

    dev: Mapping[str, Texts]
    held_out: Mapping[str, Texts]
    sealed: CanarySentences
    slots: Mapping[str, Texts]
    user_filler: Texts
    assistant_filler: Texts
    replies: Texts
    leads: Texts
    tails: Texts

    def of(self, split: Split) -> CanarySentences:
        """Return the texts that a suite's split uses."""
        if split == "sealed":
            return self.sealed
        kinds = self.dev if split == "docs" else self.held_out
        return CanarySentences(kinds=kinds, slots=self.slots, replies=self.replies)


class TaskPhrasing(NamedTuple):
    """Something to do: ``order``, ``the oak worktop``, ``ordered``."""

    do: str
    key: str
    part: str


class LifeField(Phrasings):
    """Goals, rules, tasks and choices of one field of life."""

    goals: Texts
    rules: Texts
    tasks: tuple[TaskPhrasing, ...]
    choices: Mapping[str, Texts]
    """Options by decision."""


class GoalPhrasings(Phrasings):
    """Texts about aims in one language: fields, frames for each change of an aim, questions, replies."""

    fields: Mapping[str, LifeField]
    goal: Texts
    sub_goal: Texts
    goal_changed: Texts
    goal_over: Texts
    task: Texts
    task_done: Texts
    task_dropped: Texts
    task_again: Texts
    rule_lead: Texts
    choice: Texts
    choice_changed: Texts
    about_all: Texts
    about_goals: Texts
    about_tasks: Texts
    about_rules: Texts
    about_choices: Texts
    about_one: Texts
    acks: Texts
    echoes: Texts
    agent_done: Texts
    list_lead: Texts


class SmallTalkSubject(Phrasings):
    """One field of life: nouns, questions and remarks of users, answers of assistants."""

    things: Texts
    asks: Texts
    answers: Texts


class SmallTalkPool(Phrasings):
    """Texts of small talk."""

    subjects: Mapping[str, SmallTalkSubject]
    openings: Texts
    closings: Texts
    replies: Texts
    """Short replies to any message."""
    captions: Texts
    """Lines above pasted content."""


def texts(file: str, kind: str, language: Language, split: Split) -> Texts:
    """Return the texts of one kind in a table; raise `KeyError` for an unknown kind."""
    rows: Any = table(file)[kind]
    of_language: TextsByLanguage = rows.get(split, rows)
    return of_language[language]


@cache
def table(file: str) -> TextTable:
    """Read all kinds of a table."""
    return TypeAdapter(TextTable).validate_python(read(file))


def read(file: str) -> Any:
    """Read a file of this folder and merge the sealed file of its name into it."""
    open_kinds, sealed = _yaml(f"{file}.yaml"), f"{SEALED}/{file}.yaml"
    if not files(__name__).joinpath(sealed).is_file():
        return open_kinds
    kinds = _yaml(sealed)
    if "dev" in open_kinds or "docs" in open_kinds:
        return {**open_kinds, "sealed": kinds}
    by_split = {kind: rows if "docs" in rows else {"docs": rows, "ci": rows} for kind, rows in open_kinds.items()}
    return {kind: {**rows, "sealed": kinds[kind]} for kind, rows in by_split.items()}


def _yaml(name: str) -> Any:
    return YAML(typ="safe").load(files(__name__).joinpath(name).read_text(encoding="utf-8"))


def load(file: str, kind: type[P]) -> P:
    """Read a file of this folder into its class."""
    return cast(P, _loaded(file, kind))


@cache
def _loaded(file: str, kind: type[Phrasings]) -> Phrasings:
    return kind.model_validate(read(file))


def canary_phrasings(language: Language) -> CanaryPhrasings:
    """Return the sentences that plant values."""
    return load(f"canaries.{language}", CanaryPhrasings)


def goal_phrasings(language: Language) -> Halves[GoalPhrasings]:
    """Return the texts that set goals and change them."""
    return load(f"goals.{language}", Halves[GoalPhrasings])


def small_talk(language: Language) -> Halves[SmallTalkPool]:
    """Return the texts of small talk."""
    return load(f"talk.{language}", Halves[SmallTalkPool])
