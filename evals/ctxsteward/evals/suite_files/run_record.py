"""A run that is kept as it goes: finished scenarios as JSON lines, so that a killed run goes on, and parts are merged.

    record = RunRecord.open(Path("run.jsonl"), {"verbatim": head})
    record.finished("verbatim")                 # what an earlier run of the same left
    record.keep("verbatim", scenario_result)    # as each ends
    merged([Path("1.jsonl"), Path("2.jsonl")])  # results over all scenarios of all parts

The first line of a suite is its head: all scenarios of the whole run, and the fingerprint: name and content of the
suite, settings, subject, version of the product. A record whose fingerprint differs is refused, with what differs. A
last line that was cut by a kill is dropped. Which part (`Shard`) played a scenario does not matter and is not kept.

Raises `InputError` with file and line.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from ctxsteward.schemas import InputError
from ctxsteward.schemas.eval_result import EvalResult

from ..suites.gates import Gate, Gates
from ..suites.kit.suite import EvalSuite, Metric, ScenarioResult, Setup, Split
from ..suites.results import result

NAMED = 5
"""Ids that a refusal names."""
NAMED_CHARS = 60
"""Of a setting that a refusal names: its end, where a path has its file."""


class Shard(NamedTuple):
    """One part of a run: the `number`-th of so many, from 1."""

    number: int
    of: int

    def of_ids(self, ids: Sequence[str]) -> frozenset[str]:
        """The scenarios of this part: every so-manieth in the order of their hashes, so that long ones are spread.

        >>> ids = [f"s/{n}" for n in range(10)]
        >>> sorted(len(Shard(number, 4).of_ids(ids)) for number in (1, 2, 3, 4))
        [2, 2, 3, 3]
        """
        spread = sorted(ids, key=lambda id: hashlib.sha256(id.encode()).digest())
        return frozenset(spread[self.number - 1 :: self.of])

    @classmethod
    def parse(cls, text: str) -> Shard:
        """``2/4``; raises `InputError`."""
        number, slash, of = text.partition("/")
        if not (slash and number.isdecimal() and of.isdecimal() and 1 <= int(number) <= int(of) <= 1_000):
            raise InputError(f"--shard {text:.40}: no part of a run; write 2/4 for the second of four")
        return cls(int(number), int(of))


class RunHead(BaseModel):
    """What a record says of one suite before its scenarios."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    record: Literal["run"] = "run"
    name: str
    about: str
    metrics: tuple[Metric, ...]
    scenarios: tuple[str, ...]
    """Ids of the whole run."""
    scenarios_of_ci: int | None = None
    """In records of earlier versions: from so many on, a gate was decided."""
    split: Split
    setup: dict[str, str | int | float | None]
    fingerprint: dict[str, str]
    """All that figures depend on, by name."""
    gates: dict[str, tuple[Gate, ...]] = {}
    """Of a suite file's own."""
    revision: str | None = None
    reproduce: str = ""


class KeptScenario(BaseModel):
    """One finished scenario of a record."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    record: Literal["scenario"] = "scenario"
    suite: str
    result: ScenarioResult


_LINE: TypeAdapter[RunHead | KeptScenario] = TypeAdapter(
    Annotated[RunHead | KeptScenario, Field(discriminator="record")]
)


def run_head(
    suite: EvalSuite,
    ids: Sequence[str],
    setup: Setup,
    *,
    split: Split,
    content: str,
    gates: Gates,
    revision: str | None,
    reproduce: str,
) -> RunHead:
    """The head of a run; `content` and `gates` are those of a suite file, nothing for a shipped suite."""
    described = setup.describe()
    fingerprint = {
        "suite": suite.name,
        "content of the suite": content,
        "scenarios": f"{len(ids)} ({_digest(list(ids))})",
        "product": f"ctxsteward {version('ctxsteward')}",
        "revision": revision or "",
        "subject": "ours" if setup.subject is None else _with_content(setup.subject.name),
        "profile": "" if setup.profile is None else _digest(setup.profile.model_dump(mode="json")),
    } | ({"judges": ", ".join(map(_with_content, setup.judges))} if setup.judges else {})
    fingerprint |= {name: str(value) for name, value in described.items() if name not in ("subject", "judges")}
    return RunHead(
        name=suite.name,
        about=suite.about,
        metrics=suite.metrics,
        scenarios=tuple(ids),
        split=split,
        setup=described,
        fingerprint=fingerprint,
        gates=dict(gates),
        revision=revision,
        reproduce=reproduce,
    )


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


def _with_content(name: str) -> str:
    """The name of a subject or a judge, with what its file says where it is one."""
    file = Path(name.removeprefix("inspect:").rpartition(":")[0])
    if file.suffix == ".py" and file.is_file():
        return f"{name} {hashlib.sha256(file.read_bytes()).hexdigest()[:16]}"
    return name


@dataclass(slots=True)
class RunRecord:
    """A record that is written."""

    path: Path
    kept: dict[str, dict[str, ScenarioResult]] = field(default_factory=dict)
    """By suite and id: what was there when it was opened."""

    @classmethod
    def open(cls, path: Path, heads: Iterable[RunHead]) -> RunRecord:
        """Go on with a record, or begin one; raises `InputError` where it is of another run."""
        record = cls(path)
        known: dict[str, RunHead] = {}
        if path.exists():
            known = record._read()
            _drop_cut_line(path)
        for head in heads:
            if head.name not in known:
                record._write(head)
            elif told := differences(known[head.name], head):
                raise InputError(f"--resume {path}: a run of something else: {told}; name another file, or run as then")
        return record

    def finished(self, suite: str, ids: Iterable[str]) -> list[ScenarioResult]:
        """Scenarios of these that were played already."""
        there = self.kept.get(suite, {})
        return [there[id] for id in ids if id in there]

    def keep(self, suite: str, scenario: ScenarioResult) -> None:
        """Write a scenario that has ended."""
        self._write(KeptScenario(suite=suite, result=scenario))

    def _read(self) -> dict[str, RunHead]:
        heads: dict[str, RunHead] = {}
        for line in lines(self.path):
            if isinstance(line, RunHead):
                heads[line.name] = line
            else:
                self.kept.setdefault(line.suite, {})[line.result.id] = line.result
        return heads

    def _write(self, line: RunHead | KeptScenario) -> None:
        try:
            with self.path.open("ab") as file:
                file.write(_LINE.dump_json(line) + b"\n")
        except OSError as error:
            raise InputError(f"--resume {self.path}: cannot be written ({error.strerror})") from error


def differences(was: RunHead, now: RunHead) -> str:
    """What two runs do not have in common, in words; empty where figures may be put together."""
    names = dict.fromkeys((*was.fingerprint, *now.fingerprint))
    told = [
        f"{name} was {was.fingerprint.get(name, 'not set')[-NAMED_CHARS:] or 'not set'} and is "
        f"{now.fingerprint.get(name, 'not set')[-NAMED_CHARS:] or 'not set'}"
        for name in names
        if was.fingerprint.get(name) != now.fingerprint.get(name)
    ]
    return ", ".join(told)


_BEGINS = b'{"record":"run"'


def lines(path: Path) -> Iterator[RunHead | KeptScenario]:
    """What a record says, line by line, but for a last line that was cut."""
    for number, row in enumerate(_bytes(path).split(b"\n")[:-1], 1):
        try:
            yield _LINE.validate_json(row)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            field_name = ".".join(str(part) for part in first["loc"][1:])
            told = f"`{field_name}`: {first['msg'].lower()}" if field_name else "no line of a run"
            raise InputError(f"{path}:{number}: {told}; name a file that --resume wrote") from error


def _bytes(path: Path) -> bytes:
    try:
        data = path.read_bytes()
    except OSError as error:
        reason = (error.strerror or "unreadable").lower()
        raise InputError(f"{path}: {reason}; name a file that --resume wrote") from error
    if not data.startswith(_BEGINS[: len(data)]):
        raise InputError(f"{path}: no record of a run; name a file that --resume wrote")
    return data


def _drop_cut_line(path: Path) -> None:
    """Cut off a last line that a kill left unfinished, of a file that is a record."""
    data = _bytes(path)
    if data and not data.endswith(b"\n"):
        with path.open("rb+") as file:
            file.truncate(data.rfind(b"\n") + 1)


# -- parts put together ------------------------------------------------------------------------------------------


class MergedRun(NamedTuple):
    """One suite over all its parts."""

    head: RunHead
    played: tuple[ScenarioResult, ...]
    """In the order of the whole run."""

    def result(self, gates: Gates, when: str) -> EvalResult:
        """The figures over all scenarios, with gates judged over the whole."""
        head = self.head
        made = result(
            head,
            self.played,
            split=head.split,
            setup=head.setup,
            gates=gates,
            when=when,
            revision=head.revision,
            reproduce=head.reproduce,
        )
        return made.model_copy(update={"product": head.fingerprint["product"]})


def merged(paths: Sequence[Path]) -> list[MergedRun]:
    """The suites of some records, each over all its parts; raises `InputError` where parts are missing or differ."""
    heads: dict[str, tuple[RunHead, Path]] = {}
    played: dict[str, dict[str, ScenarioResult]] = {}
    for path in paths:
        for line in lines(path):
            if isinstance(line, KeptScenario):
                played.setdefault(line.suite, {}).setdefault(line.result.id, line.result)
                continue
            first, where = heads.setdefault(line.name, (line, path))
            if told := differences(first, line):
                raise InputError(f"{path}: not of one run with {where}: {told}; merge parts of one run")
    if not heads:
        raise InputError(f"{paths[0]}: nothing in it; name files that --resume wrote")
    return [_whole(head, played.get(name, {})) for name, (head, _) in heads.items()]


def _whole(head: RunHead, played: Mapping[str, ScenarioResult]) -> MergedRun:
    missing = [id for id in head.scenarios if id not in played]
    if missing:
        told = ", ".join(missing[:NAMED]) + (", …" if len(missing) > NAMED else "")
        what = f"{head.name}: {len(missing)} of {len(head.scenarios)} scenarios are in no part: {told}"
        raise InputError(f"{what}; run the parts that lack them, with --resume where one was killed")
    return MergedRun(head, tuple(played[id] for id in head.scenarios))
