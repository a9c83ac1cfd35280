"""The frozen cases: those shipped as `cases.json` beside this module, and an application's own out of a file.

    name: desk/1
    cases:
      - id: parcel
        language: en                    # default: en
        messages: [{role: user, content: My parcel AX-1 is lost.}, {role: assistant, content: Noted.}]
        canaries: [{text: AX-1, says: The lost parcel is AX-1.}]
        question: Which parcel was lost?
    held:
      - {id: short, event: Please answer in two sentences.}

A case is a conversation, facts said in it (canaries) and a question that asks for them. A held case is one thing that
somebody asks for, which an active record should have anticipated. Ids are unique, also beside the shipped ones. The
shipped cases are conversations of our own, in English and Chinese.

Raises `InputError` (file and line, key, what was found, what to do), `InputTooLarge`.
Source: written for this suite; the state design (input at every boundary).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Annotated, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, StrictStr, ValidationError, model_validator

from ctxsteward.schemas import InputError, Wire
from ctxsteward.schemas.profile import EntryId

from ..forms import Form, read, said

SHIPPED = "cases.json"
MAX_BYTES = 1 << 20

Language = Annotated[StrictStr, Field(pattern=r"^[a-z]{2,3}$")]
Text = Annotated[StrictStr, Field(min_length=1, max_length=20_000)]


class Canary(NamedTuple):
    """A fact that was said."""

    text: str
    """What must stand in the envelope."""
    says: str
    """The fact as a sentence: what no record may gainsay."""


class Held(NamedTuple):
    """Something that somebody asks for."""

    id: str
    event: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One conversation to replay."""

    id: str
    language: str
    messages: tuple[Wire, ...]
    canaries: tuple[Canary, ...]
    question: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """Cases under a name; other cases are another name."""

    name: str
    cases: tuple[Case, ...]
    held: tuple[Held, ...]

    def holding(self, held: Iterable[Held]) -> Suite:
        """The suite with these held cases instead."""
        return replace(self, held=tuple(held))

    def with_(self, other: Suite) -> Suite:
        """Both suites as one; raises `InputError` where they share an id."""
        shared = sorted(self.ids & other.ids)
        if shared:
            raise InputError(f"gate cases: {shared[0]!r} is in {self.name!r} already; give it another id")
        names = [name for name in (self.name, other.name) if name]
        return Suite(name=" + ".join(names), cases=(*self.cases, *other.cases), held=(*self.held, *other.held))

    @property
    def ids(self) -> frozenset[str]:
        """Of all cases."""
        return frozenset([case.id for case in self.cases] + [held.id for held in self.held])

    @property
    def digest(self) -> str:
        """SHA-256 of what is replayed; held cases are not."""
        plain = [[one.id, one.messages, one.canaries, one.question] for one in self.cases]
        return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()


def shipped() -> Suite:
    """The suite that comes with the steward."""
    return read_suite((files(__package__) / SHIPPED).read_text(encoding="utf-8"))


def read_suite(text: str) -> Suite:
    """A suite from JSON text; raises `InputError`."""
    try:
        return _suite(_SuiteFile.model_validate(json.loads(text)))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise InputError(f"gate cases: {where}: {said(first['msg'])}; see {SHIPPED} for a suite") from error
    except ValueError as error:
        raise InputError(f"gate cases: no JSON ({error}); see {SHIPPED} for a suite") from error


def load_suite(path: str) -> Suite:
    """An application's own cases, from a YAML or JSON file."""
    return _suite(read(path, _SuiteFile, _FORM))


# -- the file -----------------------------------------------------------------------------------------------------


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class _Message(_Value):
    role: Literal["user", "assistant"]
    content: Text


class _Canary(_Value):
    text: Text
    says: Text


class _Held(_Value):
    id: EntryId
    language: Language = "en"
    event: Text


class _Case(_Value):
    id: EntryId
    language: Language = "en"
    messages: Annotated[list[_Message], Field(min_length=1, max_length=400)]
    canaries: Annotated[list[_Canary], Field(max_length=50)] = []
    question: Text

    @model_validator(mode="after")
    def _is_said(self) -> _Case:
        unsaid = [one.text for one in self.canaries if not any(one.text in each.content for each in self.messages)]
        if unsaid:
            raise ValueError(f"no message says the canary {unsaid[0]!r:.60}")
        return self


class _SuiteFile(_Value):
    schema_version: Literal[1] = 1
    name: Annotated[StrictStr, Field(min_length=1, max_length=80)]
    cases: Annotated[list[_Case], Field(max_length=50)] = []
    held: Annotated[list[_Held], Field(max_length=1_000)] = []

    @model_validator(mode="after")
    def _is_one_each(self) -> _SuiteFile:
        ids = [case.id for case in self.cases] + [held.id for held in self.held]
        twice = next((id for id in ids if ids.count(id) > 1), None)
        if twice is not None:
            raise ValueError(f"the id {twice!r} is there twice")
        return self


def _suite(found: _SuiteFile) -> Suite:
    return Suite(
        name=found.name, cases=tuple(map(_case, found.cases)),
        held=tuple(Held(each.id, each.event) for each in found.held),
    )  # fmt: skip


def _case(found: _Case) -> Case:
    return Case(
        id=found.id, language=found.language, question=found.question,
        messages=tuple(each.model_dump() for each in found.messages),
        canaries=tuple(Canary(each.text, each.says) for each in found.canaries),
    )  # fmt: skip


_FORM = Form(what="gate cases", max_bytes=MAX_BYTES, max_depth=8, expected="write a mapping with: name, cases, held")
