"""The frozen cases, shipped as `cases.json` beside this module: conversations of our own, in English and Chinese.

A case is a conversation, facts said in it (canaries) and a question that asks for them. A held case is one thing that
somebody asks for, which an active record should have anticipated. Whoever has held cases of their own tenant adds them.

Raises `InputError`. Source: written for this suite.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, NamedTuple

from ctxsteward.schemas import InputError, Wire

SHIPPED = "cases.json"
VERSION = 1


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
        return Suite(name=self.name, cases=self.cases, held=tuple(held))


def shipped() -> Suite:
    """The suite that comes with the steward."""
    return read_suite((files(__package__) / SHIPPED).read_text(encoding="utf-8"))


def read_suite(text: str) -> Suite:
    """A suite from JSON text; raises `InputError`."""
    try:
        tree: dict[str, Any] = json.loads(text)
        if tree["schema_version"] != VERSION:
            raise InputError(f"gate cases: version {tree['schema_version']!r}; this program reads {VERSION}")
        return Suite(
            name=tree["name"],
            cases=tuple(map(_case, tree["cases"])),
            held=tuple(Held(id=each["id"], event=each["event"]) for each in tree["held"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"gate cases: not a suite ({type(error).__name__}: {error}); see {SHIPPED} for one") from error


def _case(tree: dict[str, Any]) -> Case:
    return Case(
        id=tree["id"], language=tree["language"], messages=tuple(tree["messages"]), question=tree["question"],
        canaries=tuple(Canary(text=each["text"], says=each["says"]) for each in tree["canaries"]),
    )  # fmt: skip
